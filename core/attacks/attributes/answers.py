"""Results of attribute inference: ranks of the true labels, accuracies and confusions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import balanced_interval, bootstrap_interval, ratio_interval
from leakscope.core.results import Interval, Score

_CHUNK = 4096

_UNEQUAL = 1.1


@dataclass(frozen=True)
class Answers:
    """The rank that an attack gives to the true label of each target.

    Attributes
    ----------
    ranks : ndarray of int64, shape (n,)
        0 where the true label is the likeliest.
    truth : ndarray of int64, shape (n,)
        The number of the true label.
    groups : sequence or None
        The sampling unit of each target (`leakscope.core.units.units_of`): intervals resample
        units, because texts of one unit are similar; None if each target is its own unit.
    """

    ranks: NDArray[np.int64]
    truth: NDArray[np.int64]
    groups: Sequence[Hashable] | None = None

    def hits(self, k: int) -> NDArray[np.float64]:
        """Return 1 for each target whose true label is among the k highest-ranked, else 0."""
        return (self.ranks < k).astype(np.float64)

    def chance(self, k: int) -> float:
        """Return the top-k accuracy of the best constant answer: the k most frequent labels."""
        counts = np.sort(np.bincount(self.truth))[::-1]
        return float(counts[:k].sum() / len(self.truth))

    def top(self, k: int, seed: int = 0) -> Score:
        """Compute the top-k accuracy in [0, 1] with an interval from a bootstrap of groups.

        NO_INTERVAL if all targets are of one group, because nothing shows how groups differ.
        """
        hits = self.hits(k)
        found = bootstrap_interval(hits, groups=self.groups, bounds=(0.0, 1.0), seed=seed)
        return Score(float(hits.mean()), found, len(hits), self.chance(k))

    @property
    def is_unequal(self) -> bool:
        """Whether one label has over 10 % more targets than an equal share."""
        return self.chance(1) * len(np.unique(self.truth)) > _UNEQUAL

    def balanced(self, seed: int = 0) -> Score:
        """Compute the balanced accuracy in [0, 1]: the mean over labels of the recall of each.

        Implements Brodersen et al. (2010), Eq. 1 with two labels, for any number of them. An
        answer that ignores the text reaches 1 / |S|, however unequal the labels are. The interval
        is `leakscope.core.intervals.balanced_interval`, by a bootstrap of groups.
        """
        hits = self.hits(1)
        labels, own = np.unique(self.truth, return_inverse=True)
        value = float(np.mean([hits[own == i].mean() for i in range(len(labels))]))
        found = balanced_interval(hits, own, groups=self.groups, seed=seed)
        return Score(value, found, len(hits), 1 / len(labels))


def label_ranks(scores: NDArray[np.float32], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of the true label in each row of scores, 0 for the best; ties by index.

    Examples
    --------
    >>> label_ranks(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), np.array([2, 1])).tolist()
    [1, 1]
    """
    found = []
    for start in range(0, len(scores), _CHUNK):
        part, true = scores[start : start + _CHUNK], truth[start : start + _CHUNK]
        own = part[np.arange(len(part)), true][:, None]
        is_before = np.arange(part.shape[1]) < true[:, None]
        found.append(((part > own) | ((part == own) & is_before)).sum(1))
    return np.concatenate(found).astype(np.int64)


def difference(one: Answers, other: Answers, k: int, seed: int = 0) -> Score:
    """Compute the difference of two attacks' top-k accuracies, with a paired interval.

    Raises
    ------
    InvalidInputError
        They are not answers to the same targets.
    """
    _check_same_targets(one, other)
    gained = one.hits(k) - other.hits(k)
    found = bootstrap_interval(gained, groups=one.groups, bounds=(-1.0, 1.0), seed=seed)
    return Score(float(gained.mean()), found, len(gained), 0.0)


def ratio(one: Answers, other: Answers, k: int, seed: int = 0) -> Score:
    """Compute the ratio of two attacks' top-k accuracies, with a paired interval.

    Each draw of the bootstrap uses the same groups for both sums. NaN if the other finds none.

    Raises
    ------
    InvalidInputError
        They are not answers to the same targets.
    """
    _check_same_targets(one, other)
    hits, below = one.hits(k), other.hits(k)
    if not below.any():
        return Score(float("nan"), n=len(hits))
    found = ratio_interval(hits, below, groups=one.groups, seed=seed)
    ends = Interval(max(0.0, found.low), found.high, found.level)
    return Score(float(hits.sum() / below.sum()), ends, len(hits), 1.0)


def topic_share(same: Answers, other: Answers, k: int = 1, seed: int = 0) -> Score:
    """Compute the share of an attack's gain over chance that is lost on texts of other groups.

    1 - (a_other - c) / (a_same - c), a being the accuracy from labelled texts of the targets' own
    groups and from other groups of the same labels, and c that of guessing. The lost share comes
    from what the texts of a group have in common, such as the names and places of a book, not from
    the author. The interval is from a paired bootstrap of groups. NaN if a_same is no better than
    guessing.

    Raises
    ------
    InvalidInputError
        They are not answers to the same targets.
    """
    _check_same_targets(same, other)
    chance = same.chance(k)
    gained, left = same.hits(k) - chance, other.hits(k) - chance
    if gained.mean() <= 0:
        return Score(float("nan"), n=len(gained))
    found = ratio_interval(left, gained, groups=same.groups, seed=seed)
    ends = Interval(1.0 - found.high, 1.0 - found.low, found.level)
    return Score(1.0 - float(left.mean() / gained.mean()), ends, len(gained), 0.0)


def _check_same_targets(one: Answers, other: Answers) -> None:
    """Raise InvalidInputError unless both results are of the same targets and groups."""
    if not np.array_equal(one.truth, other.truth) or one.groups != other.groups:
        raise InvalidInputError("Answers to different targets cannot be compared.")


@dataclass(frozen=True)
class Confusion:
    """The labels that an attack confuses most often.

    Attributes
    ----------
    labels : tuple of str
        The labels with the most mistakes, the worst first.
    shares : ndarray of float64, shape (k, k + 1)
        Share of each label's targets that is answered with each of them, and with any other.
    pairs : tuple of (str, str, float)
        True label, answered label, and share of the true label's targets; over all labels.
    """

    labels: tuple[str, ...]
    shares: NDArray[np.float64]
    pairs: tuple[tuple[str, str, float], ...]


def most_confused(
    truth: NDArray[np.int64], predicted: NDArray[np.int64], labels: Sequence[str], k: int = 12
) -> Confusion:
    """Find the k labels with the most mistakes and the k most frequently confused pairs."""
    counts = np.zeros((len(labels), len(labels)))
    np.add.at(counts, (truth, predicted), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    wrong = shares * (1 - np.eye(len(labels)))
    worst = np.argsort(-(wrong.sum(0) + wrong.sum(1)), kind="stable")[:k]
    among = shares[np.ix_(worst, worst)]
    rest = np.maximum(shares[worst].sum(1) - among.sum(1), 0.0)
    places = np.argsort(-wrong, axis=None, kind="stable")[:k]
    pairs = [divmod(int(place), len(labels)) for place in places]
    return Confusion(
        tuple(labels[i] for i in worst),
        np.column_stack([among, rest]),
        tuple((labels[i], labels[j], float(wrong[i, j])) for i, j in pairs if wrong[i, j] > 0),
    )
