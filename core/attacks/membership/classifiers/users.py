"""Was the model trained on this user's texts? Several samples of one user, taken together.

S21 is Shejwalkar et al. (2021), §2.2, §2.3 and appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.features import FEATURES, feature_of
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.thresholds import (
    ClassThreshold,
    a_feature,
    models_of,
    threshold_of,
)
from core.errors import InvalidInputError, NotFittedError
from core.registry import find
from core.specs import setting, validate_settings

__all__ = [
    "STATISTICS",
    "LearnedStatistics",
    "UserStatistic",
    "Users",
    "Votes",
    "statistics_of",
    "users_of",
]

STATISTICS = ("mean", "min", "max", "variance")
"""Of the values of a user, in the order of the paper's feature vector."""

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Users:
    """The users of some samples.

    Attributes
    ----------
    names : tuple of str
        Each once, in the order of the alphabet.
    rows : int array (n,)
        Of each sample, the number of its user.
    members : bool array (n_users,)
        Whether the model was trained on any text of the user.
    """

    names: tuple[str, ...]
    rows: NDArray[np.intp]
    members: NDArray[np.bool_]

    def sums(self, values: _Array) -> _Array:
        """Return the sum of each user's values."""
        found = np.bincount(self.rows, weights=values, minlength=len(self.names))
        return found.astype(np.float64)

    def means(self, values: _Array) -> _Array:
        """Return the mean of each user's values."""
        return self.sums(values) / np.bincount(self.rows, minlength=len(self.names))


def users_of(outputs: Outputs) -> Users:
    """Return whose the samples are.

    Raises
    ------
    InvalidInputError
        It is not said, or of a sample it is not.
    """
    if outputs.users is None:
        raise InvalidInputError(
            "An attack on users needs the user of each sample. Give a column `user`."
        )
    if "" in outputs.users:
        row = outputs.users.index("")
        raise InvalidInputError(
            f"Sample {row} has no user. Name one for each sample, or leave such samples out."
        )
    names, rows = _numbered(outputs.users)
    held = np.bincount(rows, weights=outputs.members, minlength=len(names)) > 0
    return Users(names, rows, held)


@lru_cache(maxsize=4)
def _numbered(users: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the names, sorted, and which each sample has; all models share those of a target."""
    names, rows = np.unique(np.array(users, dtype=object), return_inverse=True)
    rows.setflags(write=False)
    return tuple(names.tolist()), rows


def statistics_of(values: _Array, users: Users) -> _Array:
    """Return the mean, minimum, maximum and variance of each user's values, (n_users, 4).

    The variance is that of the values themselves, with n in the denominator: 0 of one text.

    Examples
    --------
    >>> users = Users(("a", "b"), np.array([0, 0, 1]), np.array([True, False]))
    >>> statistics_of(np.array([1.0, 3.0, 5.0]), users).tolist()
    [[2.0, 1.0, 3.0, 1.0], [5.0, 5.0, 5.0, 0.0]]
    """
    order = np.argsort(users.rows, kind="stable")
    ranked = values[order]
    starts = np.searchsorted(users.rows[order], np.arange(len(users.names)))
    mean = users.means(values)
    variance = users.means((values - mean[users.rows]) ** 2)
    low, high = np.minimum.reduceat(ranked, starts), np.maximum.reduceat(ranked, starts)
    return np.stack([mean, low, high, variance], axis=1)


def _of_models(
    feature: str, shadows: Shadows | Sequence[Outputs]
) -> tuple[_Array, NDArray[np.bool_]]:
    """Return the statistics of the users of all shadow models, and who was trained on."""
    found, members = [], []
    for model in models_of(shadows):
        users = users_of(model)
        found.append(statistics_of(feature_of(feature, model)[0], users))
        members.append(users.members)
    held = np.concatenate(members)
    if held.all() or not held.any():
        kind = "members" if held.all() else "non-members"
        raise InvalidInputError(
            f"The users of the shadow models are all {kind}: an attack on users learns from both."
        )
    return np.concatenate(found), held


@dataclass
class UserStatistic:
    """Algorithm 2: one number of a user's values against a threshold."""

    feature: str = a_feature()
    statistic: str = setting(
        "mean", "of the values of a user", choices=STATISTICS, paper="S21, Table 2"
    )

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> UserStatistic:
        """Find the threshold on the users of shadow models (S21, Algorithm 2, lines 2–4)."""
        found, held = _of_models(self.feature, shadows)
        self.threshold_ = threshold_of(self._sign() * found[:, self._column()], held)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the statistic of each user, turned as the feature is.

        Implements S21, Algorithm 2, line 5, before its threshold: none is needed to rank. The
        statistic is of the feature as it is defined, so that the maximum of the loss is that of
        the text that is known worst. Differs from the paper: nothing.
        """
        found = statistics_of(feature_of(self.feature, target)[0], users_of(target))
        scores: _Array = self._sign() * found[:, self._column()]
        return scores

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return which users are called members.

        Raises
        ------
        NotFittedError
            There is no threshold yet.
        """
        if not hasattr(self, "threshold_"):
            raise NotFittedError("UserStatistic has no threshold: call fit with shadow models.")
        return self.scores(target) >= self.threshold_

    def _column(self) -> int:
        validate_settings(self)
        return STATISTICS.index(self.statistic)

    def _sign(self) -> int:
        return -1 if find(FEATURES, self.feature, "feature").is_lower_for_members else 1


@dataclass
class LearnedStatistics:
    """Algorithm 3: logistic regression on the mean, minimum, maximum and variance."""

    feature: str = a_feature()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> LearnedStatistics:
        """Train on the users of shadow models (S21, Algorithm 3, lines 2–4).

        Differs from the paper, which does not say: the four numbers are scaled to unit variance,
        and the classes weigh alike.
        """
        from sklearn.linear_model import LogisticRegression

        found, held = _of_models(self.feature, shadows)
        self.mean_, self.scale_ = found.mean(axis=0), np.maximum(found.std(axis=0), 1e-12)
        learned = LogisticRegression(class_weight="balanced", max_iter=1000)
        learned.fit((found - self.mean_) / self.scale_, held)
        self.weights_, self.bias_ = learned.coef_[0], float(learned.intercept_[0])
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the log-odds of each user (S21, Algorithm 3, lines 5–6); from 0 on, a member.

        Raises
        ------
        NotFittedError
            Nothing was learned before.
        """
        if not hasattr(self, "weights_"):
            raise NotFittedError("LearnedStatistics has learned nothing: call fit.")
        found = statistics_of(feature_of(self.feature, target)[0], users_of(target))
        scores: _Array = ((found - self.mean_) / self.scale_) @ self.weights_ + self.bias_
        return scores

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return which users are called members."""
        return self.scores(target) >= 0


@dataclass
class Votes:
    """Algorithm 4: each text votes by Algorithm 1, and half of the votes decide."""

    feature: str = a_feature()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> Votes:
        """Find the threshold of each class (S21, Algorithm 4, line 2)."""
        self.samples_ = ClassThreshold(self.feature).fit(shadows)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the share of each user's texts that are called members.

        Implements S21, Algorithm 4, lines 3–5, before its majority. Differs from the paper:
        nothing.

        Raises
        ------
        NotFittedError
            No thresholds were found before.
        """
        if not hasattr(self, "samples_"):
            raise NotFittedError("Votes has no thresholds: call fit with shadow models.")
        decided = self.samples_.decide(target)
        return users_of(target).means(decided.astype(np.float64))

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return which users are called members: those with at least half of the votes."""
        return self.scores(target) >= 0.5
