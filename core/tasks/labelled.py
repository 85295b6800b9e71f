"""A linear classifier on frozen vectors: what labelled texts tell of an encoder."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.corpora import Columns, load_corpus
from core.corpora.near_duplicates import near_duplicates
from core.corpora.tables import open_table
from core.errors import InvalidInputError
from core.protocols import Encoder
from core.results import Score
from core.tasks.outcomes import Hits
from core.units import units_or_none

__all__ = ["LABEL_COLUMN", "SPLIT_COLUMN", "LabelledTask", "read_labelled"]

LABEL_COLUMN = "label"
"""Of the classes, where no other is named."""

SPLIT_COLUMN = "split"
"""Of the official split, where a file has one: train, test and dev or validation."""

N_FOLDS = 5
"""Where there is no official split, a run is tested on one part of so many."""

_TESTS = ("dev", "validation", "val", "test")
"""What is tested on, the first that there is: by these figures people choose, and the test part of
a split stays unseen.
"""


@dataclass(frozen=True)
class LabelledTask:
    """Texts with classes: half of the picture of what protected vectors are still good for.

    Attributes
    ----------
    splits : tuple of str
        Of each text, to which part of the official split it belongs; empty where there is none.
    """

    measure: ClassVar[str] = "accuracy"

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    splits: tuple[str, ...] = ()

    @property
    def has_official_split(self) -> bool:
        """Whether every run is tested on the same texts."""
        return self._official() is not None

    def score(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Score:
        """Return the accuracy of a ridge classifier on frozen vectors, in per cent."""
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Return on which test texts a ridge classifier on frozen vectors is right.

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
        """Return the same of texts that are told by their places."""
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
        """Return the unit of some texts, by their places; None where none is a copy of another."""
        return units_or_none([self.texts[i] for i in rows])

    def parts(
        self, *, n_train: int = 0, n_test: int = 0, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which texts are trained on and which are tested on; no text is in both.

        Those of the official split, else a fifth for testing: another fifth under each of five
        seeds, so that their errors average out. No text is tested on that nearly repeats one that
        is trained on, or stands nearly whole in one.
        """
        known, held, repeats = self.sides(n_train=n_train, n_test=n_test, seed=seed)
        held = np.delete(held, repeats)
        rng = np.random.default_rng([seed, 1])
        known, held = _some(known, n_train, rng), _some(held, n_test, rng)
        n_classes = min(len({self.labels[i] for i in side}) for side in (known, held))
        if len(known) < max(n_train, 2) or len(held) < max(n_test, 2) or n_classes < 2:
            raise InvalidInputError(
                f"{self.name} needs {n_train + n_test or 'some'} texts of two classes to train on "
                f"and to test on, and has {len(self.texts)} of {len(set(self.labels))}, of which "
                f"{len(repeats)} nearly repeat others."
            )
        return known, held

    def n_near_duplicates(self, *, n_train: int = 0, n_test: int = 0, seed: int) -> int:
        """Return how many texts are not tested on, as they nearly repeat training texts."""
        return len(self.sides(n_train=n_train, n_test=n_test, seed=seed)[-1])

    def sides(
        self, *, n_train: int = 0, n_test: int = 0, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], list[int]]:
        """Return both sides, and the places among those held of texts that repeat known ones.

        What is in both word for word is tested on, and not trained on.
        """
        known, held = self._official() or self._fold(seed, n_train, n_test)
        texts = [self.texts[i] for i in held]
        tested = frozenset(texts)
        known = np.array([i for i in known if self.texts[i] not in tested], np.intp)
        return known, held, _repeats(tuple(texts), tuple(self.texts[i] for i in known))

    def _official(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """Return the texts to train and to test on of the official split, if there is one."""
        part = np.array(self.splits)
        known = np.flatnonzero(part == "train")
        for name in _TESTS:
            held = np.flatnonzero(part == name)
            if len(known) and len(held):
                return known, held
        return None

    def _fold(
        self, seed: int, n_train: int, n_test: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        n, (round_, fold) = len(self.texts), divmod(seed, N_FOLDS)
        order = np.random.default_rng([round_]).permutation(n)
        size = n // N_FOLDS
        if n_train and n_test:  # what is asked for may leave no fifth
            size = max(size, min(n_test, n - n_train))
        held = np.roll(order, -fold * size)[: max(size, 1)]
        return np.setdiff1d(order, held), held


@lru_cache(maxsize=64)
def _repeats(held: tuple[str, ...], known: tuple[str, ...]) -> list[int]:
    return sorted(near_duplicates(held, known))


def _some(rows: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    shuffled: NDArray[np.intp] = rng.permutation(rows)
    return shuffled[:n] if n else shuffled


def read_labelled(
    name: str, path: Path, text: str | None = None, label: str = LABEL_COLUMN
) -> LabelledTask:
    """Read a labelled file of any kind that corpora may have; its longest texts by default.

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
