"""User-level attacks by likelihoods of shadow models on the user's own texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.bavaria import BaVarIA
from leakscope.core.attacks.membership.classifiers.features import loss
from leakscope.core.attacks.membership.classifiers.lira import LiRA
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.shadow_model_attack import (
    ShadowModelAttack,
    split_in_out,
)
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.errors import NotFittedError
from leakscope.core.specs import setting, validate_settings

_Array = NDArray[np.float64]


_KINDS: Mapping[str, type[BaVarIA | LiRA]] = {"bavaria": BaVarIA, "lira": LiRA}


@dataclass
class SummedLikelihood:
    """An attack that sums the log-likelihood ratios of a user's texts, as if independent."""

    of: str = setting(
        "bavaria", "the sample-level attack whose ratios are added", choices=tuple(_KINDS)
    )

    def fit(self, shadows: Shadows) -> SummedLikelihood:
        """Fit the sample-level attack on shadow models.

        Raises
        ------
        InvalidInputError
            No such attack, or what it refuses.
        """
        validate_settings(self)
        self.samples_ = _KINDS[self.of]().fit(shadows)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the summed log-likelihood ratio of each of the target's users, in nats.

        Texts of one user are trained on together and are similar, so the sum is overconfident; it
        still ranks users.

        Raises
        ------
        NotFittedError, InvalidInputError
            Not fitted, or other samples than those of the shadow models.
        """
        if not hasattr(self, "samples_"):
            raise NotFittedError("SummedLikelihood has no shadow models. Call fit.")
        return users_of(target).sums(self.samples_.scores(target))


@dataclass
class UserInference(ShadowModelAttack):
    """An attack that compares the target's likelihood of a user's texts with reference models'."""

    def fit(self, shadows: Shadows) -> UserInference:
        """Compute the reference log-likelihood of each sample from OUT models.

        Raises
        ------
        InvalidInputError
            All shadow models were trained on all samples.
        """
        logs = np.stack([-loss(m.probabilities, m.labels) for m in shadows.models()])
        sides = split_in_out(logs, shadows.members, shadows.labels)
        self.reference_ = sides.outside_mean()
        self.labels_ = shadows.labels
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return each user's mean of log p_θ(y|x) − log p_ref(y|x) over texts, in nats.

        Implements the statistic of Kandpal et al. (2024), whose likelihoods are of texts under
        language models; here it is that of the label under classifiers. Differs from the paper:
        log p_ref is the mean over several reference models, those that were not trained on the
        text; where there is none, that of the others, minus the average shift.

        Raises
        ------
        NotFittedError, InvalidInputError
            As `ShadowModelAttack.check`.
        """
        self.check(target)
        own = -loss(target.probabilities, target.labels)
        return users_of(target).means(own - self.reference_)
