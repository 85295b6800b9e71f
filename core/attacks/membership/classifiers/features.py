"""Five membership features of a classifier's output for a sample, and the scaled logit.

S21 is Shejwalkar et al. (2021), “Membership inference attacks against NLP classification models”,
appendix A.1. The functions take probabilities (n, n_classes) and labels (n,), and return (n,).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.registry import Entry, find

FLOOR = 1e-30
"""The least probability in a logarithm; zero probabilities are clipped to it."""

_Array = NDArray[np.float64]
_Labels = NDArray[np.int64]


def confidence(probabilities: _Array, labels: _Labels) -> _Array:
    """Return each sample's probability of its true class.

    Implements feature (4) of S21, after Shokri et al. (2017): p_y. Differs from the paper: nothing.

    Examples
    --------
    >>> confidence(np.array([[0.7, 0.2, 0.1]]), np.array([1])).tolist()
    [0.2]
    """
    return np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]


def rest(probabilities: _Array, labels: _Labels) -> _Array:
    """Return each sample's probability of all wrong classes, Σ_{c≠y} p_c: 1 - p_y without rounding.

    Where p_y rounds to 1, the sum of the others still distinguishes 1e-12 from 1e-20.
    """
    others = probabilities.copy()
    np.put_along_axis(others, labels[:, None], 0.0, axis=1)
    total: _Array = others.sum(axis=1)
    return total


def loss(probabilities: _Array, labels: _Labels) -> _Array:
    """Return each sample's cross-entropy loss in nats; members have less.

    Implements feature (1) of S21: -log p_y. Differs from the paper: a probability of 0 counts as
    `FLOOR`, so that the loss is finite.

    Examples
    --------
    >>> loss(np.array([[0.5, 0.5]]), np.array([0])).round(4).tolist()
    [0.6931]
    """
    return -_log(confidence(probabilities, labels))


def modified_entropy(probabilities: _Array, labels: _Labels) -> _Array:
    """Return each sample's modified entropy in nats: 0 if the output is certain and right.

    Implements the definition of Song & Mittal (2021):
    -(1 - p_y) log p_y - Σ_{c≠y} p_c log(1 - p_c). Members have less.
    Differs from S21's feature (2), which cites it and prints log p_c in the sum: that would call
    a wrong answer that is sure of itself as good as a right one.

    Examples
    --------
    >>> p = np.array([[0.5, 0.25, 0.25]])
    >>> modified_entropy(p, np.array([0])).round(4).tolist()  # ½ log 2 + 2 · ¼ · log 4/3
    [0.4904]
    """
    top = probabilities.argmax(axis=1)
    without = 1.0 - probabilities  # exact enough unless a class has nearly all probability
    np.put_along_axis(without, top[:, None], rest(probabilities, top)[:, None], axis=1)
    terms = probabilities * _log(without)
    np.put_along_axis(terms, labels[:, None], 0.0, axis=1)
    own = -rest(probabilities, labels) * _log(confidence(probabilities, labels))
    entropy: _Array = own - terms.sum(axis=1)
    return entropy


def rank(probabilities: _Array, labels: _Labels) -> _Array:
    """Return the rank of each sample's true class, 1 for the likeliest; members have less.

    Implements feature (3) of S21: 1 + |{c : p_c > p_y}|. Differs from the paper, which does not
    say what ties are: each class that is as likely as the true one counts a half.

    Examples
    --------
    >>> rank(np.array([[0.4, 0.3, 0.3]]), np.array([2])).tolist()
    [2.5]
    """
    own = confidence(probabilities, labels)[:, None]
    above = (probabilities > own).sum(axis=1)
    alike = (probabilities == own).sum(axis=1) - 1
    place: _Array = 1.0 + above + alike / 2
    return place


def correctness(probabilities: _Array, labels: _Labels) -> _Array:
    """Return 1 for each sample whose likeliest class is the true one, else 0.

    Implements feature (5) of S21, after Yeom et al. (2018): 1{y = argmax_c p_c}. Of classes that
    are equally likely, the first is answered. Differs from the paper: nothing.

    Examples
    --------
    >>> correctness(np.array([[0.6, 0.4], [0.6, 0.4]]), np.array([0, 1])).tolist()
    [1.0, 0.0]
    """
    return (probabilities.argmax(axis=1) == labels).astype(np.float64)


def scaled_logit(probabilities: _Array, labels: _Labels) -> _Array:
    """Return each sample's scaled logit φ = log(p_y / (1 - p_y)), nearly normal over models.

    Implements the scaling of Carlini et al. (2022) in its stable form: the logarithm of p_y less
    that of what the other classes have together. Differs from the paper: 0 counts as `FLOOR` on
    either side, so that |φ| ≤ 69.1.

    Examples
    --------
    >>> scaled_logit(np.array([[0.8, 0.15, 0.05]]), np.array([0])).round(4).tolist()  # log 4
    [1.3863]
    """
    return _log(confidence(probabilities, labels)) - _log(rest(probabilities, labels))


def _log(probabilities: _Array) -> _Array:
    """Return the logarithm of probabilities clipped to [FLOOR, 1]."""
    found: _Array = np.log(np.clip(probabilities, FLOOR, 1.0))
    return found


@dataclass(frozen=True)
class FeatureEntry(Entry):
    """The registry entry of a feature; `path` names a function of probabilities and labels."""

    is_lower_for_members: bool = True
    is_label_only: bool = False
    """Whether it needs only the predicted label, not its probability."""


_HERE = "leakscope.core.attacks.membership.classifiers.features"

FEATURES: Mapping[str, FeatureEntry] = {
    "loss": FeatureEntry(
        "Loss",
        "The negative logarithm of the true class's probability.",
        "Yeom et al. (2018); Shejwalkar et al. (2021), appendix A.1",
        f"{_HERE}:loss",
        formula=r"-\log p_y",
    ),
    "modified_entropy": FeatureEntry(
        "Modified entropy",
        "How uncertain the output is, or how confident in a wrong class.",
        "Song & Mittal (2021)",
        f"{_HERE}:modified_entropy",
        formula=r"-(1-p_y)\log p_y - \sum_{c\neq y} p_c \log(1-p_c)",
    ),
    "rank": FeatureEntry(
        "Rank",
        "The rank of the true class among all classes.",
        "Song & Shmatikov (2019); Shejwalkar et al. (2021), appendix A.1",
        f"{_HERE}:rank",
        formula=r"1 + |\{c : p_c > p_y\}|",
    ),
    "confidence": FeatureEntry(
        "Confidence",
        "The probability of the true class.",
        "Shokri et al. (2017); Shejwalkar et al. (2021), appendix A.1",
        f"{_HERE}:confidence",
        formula=r"p_y",
        is_lower_for_members=False,
    ),
    "correctness": FeatureEntry(
        "Correctness",
        "Whether the predicted class is the true class.",
        "Yeom et al. (2018); Shejwalkar et al. (2021), appendix A.1",
        f"{_HERE}:correctness",
        formula=r"1\{y = \arg\max_c p_c\}",
        is_lower_for_members=False,
        is_label_only=True,
    ),
}
"""In the order of the paper."""


def feature_of(name: str, outputs: Outputs) -> tuple[_Array, int]:
    """Return one feature's value for each sample, and its sign: -1 if members have less, else 1.

    Raises
    ------
    InvalidInputError
        No such feature; the message names those that there are.
    """
    entry = find(FEATURES, name, "feature")
    values: _Array = entry.kind(outputs.probabilities, outputs.labels)
    return values, -1 if entry.is_lower_for_members else 1


def member_score(name: str, outputs: Outputs) -> _Array:
    """Return one feature's value for each sample, signed so that members have more of it.

    Raises
    ------
    InvalidInputError
        As `feature_of`.
    """
    values, sign = feature_of(name, outputs)
    return sign * values
