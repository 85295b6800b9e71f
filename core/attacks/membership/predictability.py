"""Test whether features that do not come from the model predict membership.

They must not: an attack may use such features, too, and their effect looks like a leak. The shadow
design (`classifiers.evaluation.check_design`) and the texts (`blind_baseline`) are checked in this
way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.ranking import Ranking, units_are_pure
from leakscope.core.attacks.membership.roc import auc
from leakscope.core.results import Score
from leakscope.core.units import cluster_ids

ALPHA = 0.005
"""Level of the test: it rejects about 5 of 1,000 fair splits."""

N_PERMUTATIONS = 599
N_FOLDS = 5

MOST_UNITS = 1000
"""The most samples or users that are tested; a random subset of more."""

_MOST_WORDS = 20_000
_MOST_CHARACTERS = 100_000
"""The most characters of one unit's texts that are used."""

_RIDGE = 1.0
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictability:
    """How well membership is predicted without the model: AUC and permutation p-value.

    Attributes
    ----------
    auc : Score
        AUC of a cross-validated prediction; chance is one half.
    p_value : float
        Share of permutations of the members that are predicted at least as well.
    """

    auc: Score
    p_value: float

    @property
    def is_above_chance(self) -> bool:
        """Whether members are predicted significantly better than by chance."""
        return self.p_value <= ALPHA

    def to_dict(self) -> dict[str, Any]:
        """Return AUC and test result as a JSON-able record."""
        return {
            **self.auc.to_record("auc"),
            "n_units": self.auc.n,
            "p_value": self.p_value,
            "n_permutations": N_PERMUTATIONS,
            "is_above_chance": self.is_above_chance,
        }


def predictability(features: Any, members: NDArray[np.bool_], *, seed: int = 0) -> Predictability:
    """Test whether features of independent units predict membership, by 5-fold cross-validation.

    The model is a ridge regression of membership, a linear classifier of which all permutations of
    the members are fitted at once. The p-value is that of its AUC among these permutations. More
    than 1,000 units are sampled.

    Parameters
    ----------
    features : array or sparse matrix, shape (n, n_features)
    members : ndarray of bool, shape (n,)
    seed : int
        Of the folds, of the permutations and of the bootstrap.

    Examples
    --------
    >>> members = np.arange(60) % 2 == 0
    >>> found = predictability(np.where(members, 1.0, 0.0)[:, None], members)
    >>> found.auc.value, found.is_above_chance
    (1.0, True)
    """
    rng = np.random.default_rng([seed, 41])
    if len(members) > MOST_UNITS:
        chosen = np.sort(rng.permutation(len(members))[:MOST_UNITS])
        features, members = features[chosen], members[chosen]
    if members.all() or not members.any() or not features.shape[1]:
        return Predictability(Score(0.5, n=len(members), chance=0.5), 1.0)
    fold = rng.permutation(np.arange(len(members)) % N_FOLDS)
    permuted = np.array([rng.permutation(members) for _ in range(N_PERMUTATIONS)], np.float64)
    outcomes = np.concatenate([members[None].astype(np.float64), permuted]).T
    predicted = _cross_validate(features, outcomes, fold).round(12)
    areas = _column_aucs(predicted, outcomes)
    n_as_good = int((areas[1:] >= areas[0] - 1e-12).sum())
    score = auc(Ranking(predicted[:, 0], members), seed=seed)
    return Predictability(score, (1 + n_as_good) / (1 + N_PERMUTATIONS))


def _cross_validate(features: Any, outcomes: _Array, fold: NDArray[np.int64]) -> _Array:
    """Fit ridge regressions by cross-validation; return their predictions, a column per outcome."""
    product = features @ features.T
    kernel = np.asarray(product.todense() if hasattr(product, "todense") else product, np.float64)
    predicted = np.zeros_like(outcomes)
    for i in np.unique(fold):
        known, held = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        inner, outer = kernel[np.ix_(known, known)], kernel[np.ix_(held, known)]
        mean = inner.mean(axis=0)
        outer = outer - mean - outer.mean(axis=1, keepdims=True) + mean.mean()
        inner = inner - mean - mean[:, None] + mean.mean()
        target = outcomes[known] - outcomes[known].mean(axis=0)
        predicted[held] = outer @ np.linalg.solve(inner + _RIDGE * np.eye(len(known)), target)
    return predicted


def _column_aucs(predicted: _Array, outcomes: _Array) -> _Array:
    """Return the AUC of each column of predictions for its column of outcomes."""
    from scipy.stats import rankdata  # slow to import; pages that show results do not need it

    ranks = rankdata(predicted, axis=0)
    n_members = outcomes.sum(axis=0)
    above = (ranks * outcomes).sum(axis=0) - n_members * (n_members + 1) / 2
    areas: _Array = above / (n_members * (len(outcomes) - n_members))
    return areas


def blind_baseline(
    texts: Sequence[str],
    members: NDArray[np.bool_],
    units: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> Predictability:
    """Test how well texts' words and lengths predict membership, without the model.

    CheckMIABench (2026) asks it of every benchmark of membership inference: an attack that never
    sees the model must stay near chance on the same split, or the split leaks. Members and
    non-members of two sources or of two dates differ in their words, and every attack finds that.

    Features are the tf-idf of words and of pairs of words, and the logarithms of the numbers of
    characters and of words. Where each unit is a member as a whole, such as a user or a book, its
    texts are one.

    Parameters
    ----------
    texts : sequence of str, (n,)
    members : ndarray of bool, shape (n,)
    units : sequence, optional
        The user or document of each text.

    Examples
    --------
    >>> old, new = ["a letter sent by post"] * 30, ["a message sent by phone"] * 30
    >>> blind_baseline(old + new, np.arange(60) < 30).is_above_chance
    True
    >>> blind_baseline(old + new, np.arange(60) % 2 == 0).is_above_chance
    False
    """
    rows = cluster_ids(units, len(texts))
    if len(np.unique(rows)) < len(rows) and units_are_pure(rows, members):
        joined: list[list[str]] = [[] for _ in range(int(rows.max()) + 1)]
        for row, text in zip(rows.tolist(), texts, strict=True):
            joined[row].append(text)
        texts = ["\n".join(own) for own in joined]
        members = members[np.unique(rows, return_index=True)[1]]
    return predictability(_text_features(texts), members, seed=seed)


def _text_features(texts: Sequence[str]) -> Any:
    """Compute a sparse feature matrix of texts: tf-idf of words and bigrams, and lengths."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    cut = [text[:_MOST_CHARACTERS] for text in texts]
    lengths = np.log1p([[len(text), len(text.split())] for text in texts])
    lengths = (lengths - lengths.mean(axis=0)) / np.maximum(lengths.std(axis=0), 1e-9)
    parts = [sparse.csr_matrix(lengths)]
    words = TfidfVectorizer(
        ngram_range=(1, 2),
        max_features=_MOST_WORDS,
        sublinear_tf=True,
        token_pattern=r"(?u)\b\w+\b",
    )
    with suppress(ValueError):  # no text has a word
        parts.append(words.fit_transform(cut))
    return sparse.csr_matrix(sparse.hstack(parts))
