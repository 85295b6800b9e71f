"""User-level attacks: whether the model was trained on a user's texts, from several samples.

S21 is Shejwalkar et al. (2021), §2.2, §2.3 and appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import FEATURES, feature_of
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.thresholds import (
    ClassThreshold,
    accuracy_threshold,
    feature_setting,
    shadow_outputs,
)
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.registry import find
from leakscope.core.specs import setting, validate_settings

STATISTICS = ("mean", "min", "max", "variance")
"""Statistics of a user's values, in the order of the paper's feature vector."""

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Users:
    """The users of samples, with each sample's user and each user's membership.

    Attributes
    ----------
    names : tuple of str
        Distinct, in alphabetical order.
    rows : int array (n,)
        The user number of each sample.
    members : bool array (n_users,)
        Whether the model was trained on any text of the user.
    """

    names: tuple[str, ...]
    rows: NDArray[np.intp]
    members: NDArray[np.bool_]

    def sums(self, values: _Array) -> _Array:
        """Sum the samples' values by user; return one sum per user."""
        found = np.bincount(self.rows, weights=values, minlength=len(self.names))
        return found.astype(np.float64)

    def means(self, values: _Array) -> _Array:
        """Average the samples' values by user; return one mean per user."""
        return self.sums(values) / np.bincount(self.rows, minlength=len(self.names))


def users_of(outputs: Outputs) -> Users:
    """Group a classifier's samples by user; raise InvalidInputError if users are missing.

    Raises
    ------
    InvalidInputError
        Users are missing, or that of a sample is.
    """
    if outputs.users is None:
        raise InvalidInputError(
            "User-level attacks need the user of each sample. Add a column `user`."
        )
    if "" in outputs.users:
        row = outputs.users.index("")
        raise InvalidInputError(
            f"Sample {row} has no user. Name one for each sample, or leave such samples out."
        )
    names, rows = _number_users(outputs.users)
    held = np.bincount(rows, weights=outputs.members, minlength=len(names)) > 0
    return Users(names, rows, held)


@lru_cache(maxsize=4)
def _number_users(users: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the sorted distinct user names, and the number of each sample's user, cached."""
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


def _shadow_statistics(
    feature: str, shadows: Shadows | Sequence[Outputs]
) -> tuple[_Array, NDArray[np.bool_]]:
    """Compute statistics of a feature, and membership, of each user of each shadow model."""
    found, members = [], []
    for model in shadow_outputs(shadows):
        users = users_of(model)
        found.append(statistics_of(feature_of(feature, model)[0], users))
        members.append(users.members)
    held = np.concatenate(members)
    if held.all() or not held.any():
        kind = "members" if held.all() else "non-members"
        raise InvalidInputError(
            f"The users of the shadow models are all {kind}; user-level attacks need both."
        )
    return np.concatenate(found), held


@dataclass
class UserStatistic:
    """An attack that compares one statistic of a user's values with a threshold (S21, Alg. 2)."""

    feature: str = feature_setting()
    statistic: str = setting(
        "mean", "of the values of a user", choices=STATISTICS, paper="S21, Table 2"
    )

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> UserStatistic:
        """Choose the threshold on the users of shadow models (S21, Algorithm 2, lines 2–4)."""
        found, held = _shadow_statistics(self.feature, shadows)
        self.threshold_ = accuracy_threshold(self._sign() * found[:, self._column()], held)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return one statistic of each target user, signed so that members have more.

        Implements S21, Algorithm 2, line 5, before its threshold: none is needed to rank. The
        statistic is of the unsigned feature, so that the maximum of the loss is that of the text
        with the highest loss. Differs from the paper: nothing.
        """
        found = statistics_of(feature_of(self.feature, target)[0], users_of(target))
        scores: _Array = self._sign() * found[:, self._column()]
        return scores

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return a mask of the target's users who are called members.

        Raises
        ------
        NotFittedError
            There is no threshold yet.
        """
        if not hasattr(self, "threshold_"):
            raise NotFittedError("UserStatistic has no threshold. Call fit with shadow models.")
        return self.scores(target) >= self.threshold_

    def _column(self) -> int:
        """Check the settings and return the column index of the chosen statistic."""
        validate_settings(self)
        return STATISTICS.index(self.statistic)

    def _sign(self) -> int:
        """Return -1 if members have less of the feature, else 1."""
        return -1 if find(FEATURES, self.feature, "feature").is_lower_for_members else 1


@dataclass
class LearnedStatistics:
    """An attack by logistic regression on four statistics of a user's values (S21, Alg. 3)."""

    feature: str = feature_setting()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> LearnedStatistics:
        """Fit the regression on the users of shadow models (S21, Algorithm 3, lines 2–4).

        Differs from the paper, which does not say: the four numbers are scaled to unit variance,
        and the classes weigh alike.
        """
        from sklearn.linear_model import LogisticRegression

        found, held = _shadow_statistics(self.feature, shadows)
        self.mean_, self.scale_ = found.mean(axis=0), np.maximum(found.std(axis=0), 1e-12)
        learned = LogisticRegression(class_weight="balanced", max_iter=1000)
        learned.fit((found - self.mean_) / self.scale_, held)
        self.weights_, self.bias_ = learned.coef_[0], float(learned.intercept_[0])
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the membership log-odds of each target user (S21, Algorithm 3, lines 5–6).

        Raises
        ------
        NotFittedError
            Nothing was learned before.
        """
        if not hasattr(self, "weights_"):
            raise NotFittedError("LearnedStatistics is not fitted. Call fit.")
        found = statistics_of(feature_of(self.feature, target)[0], users_of(target))
        scores: _Array = ((found - self.mean_) / self.scale_) @ self.weights_ + self.bias_
        return scores

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return a mask of the target's users who are called members."""
        return self.scores(target) >= 0


@dataclass
class Votes:
    """An attack in which a user's texts vote by `ClassThreshold`, half decide (S21, Alg. 4)."""

    feature: str = feature_setting()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> Votes:
        """Choose the threshold of each class on shadow models (S21, Algorithm 4, line 2)."""
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
            raise NotFittedError("Votes has no thresholds. Call fit with shadow models.")
        decided = self.samples_.decide(target)
        return users_of(target).means(decided.astype(np.float64))

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return a mask of the users called members: those with at least half of the votes."""
        return self.scores(target) >= 0.5
