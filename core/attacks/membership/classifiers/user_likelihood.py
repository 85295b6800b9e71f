"""User level by likelihoods: what shadow models say of the very texts of a user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.aligned import Aligned
from core.attacks.membership.classifiers.bavaria import BaVarIA
from core.attacks.membership.classifiers.features import loss
from core.attacks.membership.classifiers.lira import LiRA
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.sides import sides_of
from core.attacks.membership.classifiers.users import users_of
from core.errors import NotFittedError
from core.specs import setting, validate_settings

__all__ = ["SummedLikelihood", "UserInference"]

_Array = NDArray[np.float64]


class _OfSamples(Protocol):
    def fit(self, shadows: Shadows) -> _OfSamples: ...

    def scores(self, target: Outputs) -> _Array: ...


_KINDS: Mapping[str, Callable[[], _OfSamples]] = {"bavaria": BaVarIA, "lira": LiRA}


@dataclass
class SummedLikelihood:
    """Add up what a user's texts say: the log-likelihood ratio of all of them, if independent."""

    of: str = setting("bavaria", "whose ratios are added", choices=tuple(_KINDS))

    def fit(self, shadows: Shadows) -> SummedLikelihood:
        """Fit the attack on samples.

        Raises
        ------
        InvalidInputError
            No such attack, or what it refuses.
        """
        validate_settings(self)
        self.samples_ = _KINDS[self.of]().fit(shadows)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return Σ_j log P(φ_j | in) − log P(φ_j | out) of each user, in nats.

        Texts of one user are trained on together and are alike, so that the sum is too sure of
        itself; it ranks users all the same.

        Raises
        ------
        NotFittedError, InvalidInputError
            Not fitted, or other samples than those of the shadow models.
        """
        if not hasattr(self, "samples_"):
            raise NotFittedError("SummedLikelihood knows no shadow models: call fit.")
        return users_of(target).sums(self.samples_.scores(target))


@dataclass
class UserInference(Aligned):
    """Whether the target is surer of the user's texts than models that never saw them."""

    def fit(self, shadows: Shadows) -> UserInference:
        """Take what models say of samples that they were not trained on.

        Raises
        ------
        InvalidInputError
            All shadow models were trained on all samples.
        """
        logs = np.stack([-loss(m.probabilities, m.labels) for m in shadows.models()])
        sides = sides_of(logs, shadows.members, shadows.labels)
        self.reference_ = sides.outside_mean()
        self.labels_ = shadows.labels
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the mean over a user's texts of log p_θ(y|x) − log p_ref(y|x), in nats.

        Implements the statistic of Kandpal et al. (2024), whose likelihoods are of texts under
        language models; here it is that of the label under classifiers. Differs from the paper:
        log p_ref is the mean over several reference models, those that were not trained on the
        text; where there is none, that of the others, shifted as on average.

        Raises
        ------
        NotFittedError, InvalidInputError
            As `Aligned.check`.
        """
        self.check(target)
        own = -loss(target.probabilities, target.labels)
        return users_of(target).means(own - self.reference_)
