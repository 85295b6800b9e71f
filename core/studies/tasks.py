"""What embeddings are good for: a linear classifier on frozen vectors, and semantic similarity."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from core.corpora import Columns, load_corpus
from core.errors import InvalidInputError
from core.metrics import spearman_correlation
from core.protocols import Encoder, Vectors
from core.results import Interval

__all__ = ["LabelledTask", "PairTask", "Utility", "read_labelled", "read_pairs"]


@dataclass(frozen=True)
class Utility:
    """A score of a task.

    Attributes
    ----------
    value, chance : float
        In [0, 100]; chance is the share of the most frequent class, or no correlation.
    ci95 : Interval
        Over the test texts alone: Clopper–Pearson for accuracy, bootstrap for correlation.
    n : int
        Test texts, or pairs.
    """

    measure: str
    value: float
    ci95: Interval
    chance: float
    n: int


@dataclass(frozen=True)
class LabelledTask:
    """Texts with classes: half of the picture of what protected vectors are still good for."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def score(self, encoder: Encoder, *, n_train: int, n_test: int, seed: int) -> Utility:
        """Return the accuracy of a ridge classifier on frozen vectors.

        Its penalty is chosen by leave-one-out on the training texts.

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
        return Utility(
            "accuracy",
            100 * n_right / n_test,
            Interval(100 * interval.low, 100 * interval.high),
            100 * counts.max() / n_test,
            n_test,
        )


@dataclass(frozen=True)
class PairTask:
    """Pairs of texts with a human score of their similarity."""

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    def score(self, encoder: Encoder, *, n_train: int, n_test: int, seed: int) -> Utility:
        """Return Spearman's correlation of the vectors' cosine with the human scores."""
        del n_train  # nothing is trained
        rows = np.random.default_rng(seed).permutation(len(self.scores))[:n_test]
        one = encoder.encode([self.first[i] for i in rows])
        two = encoder.encode([self.second[i] for i in rows])
        cosines, scores = _cosines(one, two), np.array(self.scores)[rows]
        value, ends = spearman_correlation(cosines, scores, seed=seed)
        interval = Interval(100 * ends.low, 100 * ends.high)
        return Utility("spearman", 100 * value, interval, 0.0, len(rows))


def read_labelled(name: str, path: Path, text: str = "text", label: str = "label") -> LabelledTask:
    """Read a labelled file of any kind that corpora may have."""
    corpus = load_corpus(path, columns=Columns(text=text, label=label))
    documents = [d for d in corpus.documents if d.label is not None]
    return LabelledTask(
        name, tuple(d.text for d in documents), tuple(str(d.label) for d in documents)
    )


def read_pairs(name: str, path: Path, *, language: str = "en", split: str = "test") -> PairTask:
    """Read the STS benchmark: Parquet with sentence1, sentence2, score, split and lang.

    Raises
    ------
    InvalidInputError
        Another table; the message names the columns that are needed.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(path, columns=["sentence1", "sentence2", "score", "split", "lang"])
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInputError(
            f"{path}: must be Parquet with sentence1, sentence2, score, split and lang ({error})."
        ) from error
    chosen = table[(table.lang == language) & (table.split == split)]
    return PairTask(
        name, tuple(chosen.sentence1), tuple(chosen.sentence2), tuple(map(float, chosen.score))
    )


def _cosines(one: Vectors, two: Vectors) -> NDArray[np.float64]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    dots: NDArray[np.float64] = np.einsum("ij,ij->i", one, two, dtype=np.float64)
    return dots / np.maximum(lengths, 1e-12)
