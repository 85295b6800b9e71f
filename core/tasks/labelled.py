"""Classification task: a linear classifier on frozen vectors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns, load_corpus
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.readers.tables import open_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.results import Score
from leakscope.core.tasks.outcomes import Hits
from leakscope.core.units import units_or_none

LABEL_COLUMN = "label"
"""Default column of the class labels."""

SPLIT_COLUMN = "split"
"""Column of the official split, if a file has one: train, test and dev or validation."""

N_FOLDS = 5
"""Number of cross-validation folds if there is no official split."""

_TESTS = ("dev", "validation", "val", "test")
"""Names of the test part, the first available one being used. The dev part comes first: settings
are chosen on it, so that the test part stays unseen."""


@dataclass(frozen=True)
class LabelledTask:
    """A text-classification task that scores an encoder's vectors.

    Attributes
    ----------
    splits : tuple of str
        Part of the official split of each text; empty if there is none.
    """

    measure: ClassVar[str] = "accuracy"

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    splits: tuple[str, ...] = ()

    @property
    def has_official_split(self) -> bool:
        """Whether every run is tested on the same texts."""
        return self._official_split() is not None

    def score(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Score:
        """Encode the texts, train a ridge classifier and return its test accuracy in per cent."""
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Encode texts, train a ridge classifier; return which test texts it classifies correctly.

        Its penalty is chosen by leave-one-out on the training texts. Chance is the share of the
        most frequent class among the test texts.

        Parameters
        ----------
        n_train, n_test : int
            Texts of each side at most; 0 for all.
        seed : int
            Of the fold, and of the drawing where there are more texts: the same for every encoder.

        Raises
        ------
        InvalidInputError
            Fewer texts than asked for, or one class only.
        """
        known, held = self.parts(n_train=n_train, n_test=n_test, seed=seed)
        return self.tested(encoder, known, held)

    def tested(self, encoder: Encoder, known: NDArray[np.intp], held: NDArray[np.intp]) -> Hits:
        """Encode, train on the rows `known`, test on the rows `held`; return the Hits."""
        from sklearn.linear_model import RidgeClassifierCV

        labels = np.array(self.labels)
        vectors = encoder.encode([self.texts[i] for i in (*known, *held)])
        seen, unseen = vectors[: len(known)], vectors[len(known) :]
        scale = max(float(seen.std()), 1e-12)
        classifier = RidgeClassifierCV(alphas=np.logspace(-1, 5, 13))
        classifier.fit(seen / scale, labels[known])
        right = classifier.predict(unseen / scale) == labels[held]
        _, counts = np.unique(labels[held], return_counts=True)
        return Hits(right, 100 * int(counts.max()) / len(held), self.units(held))

    def units(self, rows: NDArray[np.intp]) -> tuple[Hashable, ...] | None:
        """Return the sampling unit of the text at each given row; None if all are distinct."""
        return units_or_none([self.texts[i] for i in rows])

    def parts(
        self, *, n_train: int = 0, n_test: int = 0, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw train and test indices without shared or nearly repeated texts.

        Those of the official split, else a fifth for testing: another fifth under each of five
        seeds, so that their errors average out. No text is tested on that nearly repeats one that
        is trained on, or stands nearly whole in one.
        """
        known, held, repeats = self.sides(n_train=n_train, n_test=n_test, seed=seed)
        held = np.delete(held, repeats)
        rng = np.random.default_rng([seed, 1])
        known, held = _sample(known, n_train, rng), _sample(held, n_test, rng)
        n_classes = min(len({self.labels[i] for i in side}) for side in (known, held))
        if len(known) < max(n_train, 2) or len(held) < max(n_test, 2) or n_classes < 2:
            raise InvalidInputError(
                f"{self.name} needs {n_train + n_test or 'some'} texts of two classes to train on "
                f"and to test on, and has {len(self.texts)} of {len(set(self.labels))}, of which "
                f"{len(repeats)} nearly repeat others."
            )
        return known, held

    def n_near_duplicates(self, *, n_train: int = 0, n_test: int = 0, seed: int) -> int:
        """Return how many test texts are left out because they nearly repeat training texts."""
        return len(self.sides(n_train=n_train, n_test=n_test, seed=seed)[-1])

    def sides(
        self, *, n_train: int = 0, n_test: int = 0, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], list[int]]:
        """Split all texts; return train indices, test indices, and which of these to leave out.

        What is in both word for word is tested on, and not trained on.
        """
        known, held = self._official_split() or self._draw_fold(seed, n_train, n_test)
        texts = [self.texts[i] for i in held]
        tested = frozenset(texts)
        known = np.array([i for i in known if self.texts[i] not in tested], np.intp)
        return known, held, _near_duplicate_rows(tuple(texts), tuple(self.texts[i] for i in known))

    def _official_split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """Return the train and test indices of the official split; None if there is none."""
        part = np.array(self.splits)
        known = np.flatnonzero(part == "train")
        for name in _TESTS:
            held = np.flatnonzero(part == name)
            if len(known) and len(held):
                return known, held
        return None

    def _draw_fold(
        self, seed: int, n_train: int, n_test: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw a cross-validation fold by the seed; return its train and test indices."""
        n, (round_, fold) = len(self.texts), divmod(seed, N_FOLDS)
        order = np.random.default_rng([round_]).permutation(n)
        size = n // N_FOLDS
        if n_train and n_test:  # what is asked for may leave no fifth
            size = max(size, min(n_test, n - n_train))
        held = np.roll(order, -fold * size)[: max(size, 1)]
        return np.setdiff1d(order, held), held


@lru_cache(maxsize=64)
def _near_duplicate_rows(held: tuple[str, ...], known: tuple[str, ...]) -> list[int]:
    """Return the positions of held-out texts that nearly repeat known texts, cached."""
    return sorted(near_duplicates(held, known))


def _sample(rows: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw n of the rows at random; all of them, shuffled, if n is 0."""
    shuffled: NDArray[np.intp] = rng.permutation(rows)
    return shuffled[:n] if n else shuffled


def read_labelled(
    name: str, path: Path, text: str | None = None, label: str = LABEL_COLUMN
) -> LabelledTask:
    """Read a labelled file as a LabelledTask; a column `split` is the official split.

    A column `split` is the official split. Texts without a label are left out, so that a test set
    whose labels are kept back is none.
    """
    table = open_table(path)
    has_split = table is not None and SPLIT_COLUMN in table.names
    # A document has no field for its part: the author's stands in.
    columns = Columns(text=text, label=label, author=SPLIT_COLUMN if has_split else None)
    documents = [d for d in load_corpus(path, columns=columns).documents if d.label is not None]
    return LabelledTask(
        name,
        tuple(d.text for d in documents),
        tuple(str(d.label) for d in documents),
        tuple((d.author or "").lower() for d in documents) if has_split else (),
    )
