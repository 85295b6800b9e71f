"""A linear classifier on frozen vectors: what labelled texts tell of an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.stats import binomtest

from core.corpora import Columns, load_corpus
from core.errors import InvalidInputError
from core.protocols import Encoder
from core.results import Interval, Score

__all__ = ["LABEL_COLUMN", "LabelledTask", "read_labelled"]

LABEL_COLUMN = "label"
"""Of the classes, where no other is named."""


@dataclass(frozen=True)
class LabelledTask:
    """Texts with classes: half of the picture of what protected vectors are still good for."""

    measure: ClassVar[str] = "accuracy"

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def score(self, encoder: Encoder, *, n_train: int, n_test: int, seed: int) -> Score:
        """Return the accuracy of a ridge classifier on frozen vectors, in per cent.

        Its penalty is chosen by leave-one-out on the training texts. The interval is that of
        Clopper and Pearson over the test texts; chance is the share of their most frequent class.

        Raises
        ------
        InvalidInputError
            Fewer texts than asked for, or one class only.
        """
        from sklearn.linear_model import RidgeClassifierCV

        if len(self.texts) < n_train + n_test or len(set(self.labels)) < 2:
            raise InvalidInputError(
                f"{self.name} needs {n_train + n_test} texts of two classes, and has "
                f"{len(self.texts)} of {len(set(self.labels))}."
            )
        rows = np.random.default_rng(seed).permutation(len(self.texts))[: n_train + n_test]
        labels = np.array(self.labels)[rows]
        vectors = encoder.encode([self.texts[i] for i in rows])
        known, held = slice(0, n_train), slice(n_train, None)
        scale = max(float(vectors[known].std()), 1e-12)
        classifier = RidgeClassifierCV(alphas=np.logspace(-1, 5, 13))
        classifier.fit(vectors[known] / scale, labels[known])
        n_right = int((classifier.predict(vectors[held] / scale) == labels[held]).sum())
        interval = binomtest(n_right, n_test).proportion_ci(method="exact")
        _, counts = np.unique(labels[held], return_counts=True)
        return Score(
            100 * n_right / n_test,
            Interval(100 * float(interval.low), 100 * float(interval.high)),
            n_test,
            100 * int(counts.max()) / n_test,
        )


def read_labelled(
    name: str, path: Path, text: str | None = None, label: str = LABEL_COLUMN
) -> LabelledTask:
    """Read a labelled file of any kind that corpora may have; its longest texts by default."""
    corpus = load_corpus(path, columns=Columns(text=text, label=label))
    documents = [d for d in corpus.documents if d.label is not None]
    return LabelledTask(
        name, tuple(d.text for d in documents), tuple(str(d.label) for d in documents)
    )
