"""Registry of the membership attacks on text classifiers, simplest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.registry import Entry, find, make

Level = Literal["sample", "user"]
Needs = Literal["nothing", "shadows", "the same samples"]


class ClassifierAttack(Protocol):
    """The protocol of attacks that score samples or users by how likely they are members."""

    def fit(self, shadows: Any) -> Any:
        """Learn from shadow models: `Shadows`, or a list of `Outputs` where the entry allows."""
        ...

    def scores(self, target: Outputs) -> NDArray[np.float64]:
        """Return the score of each sample or user, higher where a member is likelier."""
        ...


@dataclass(frozen=True)
class ClassifierAttackEntry(Entry):
    """The registry entry of a classifier attack: its class, level and needs."""

    level: Level
    needs: Needs
    """Shadow models: none, any, or ones queried with the target's own samples."""
    has_feature: bool = False
    """Whether one of the five features can be chosen."""
    learns_from_users: bool = False
    """Whether it needs member and non-member users of shadow models."""
    asks_members: bool = True
    """Whether its shadow models must be trained on some of the samples, if it needs any."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that define this entry."""

    def can_use(self, shadows: Shadows | Sequence[Outputs] | None) -> bool:
        """Return whether the attack can be run with the given shadow models."""
        if self.needs == "nothing":
            return True
        if self.needs == "shadows":
            return shadows is not None
        return isinstance(shadows, Shadows)


_HERE = "leakscope.core.attacks.membership.classifiers"
_S21 = "Shejwalkar et al. (2021)"

CLASSIFIER_ATTACKS: Mapping[str, ClassifierAttackEntry] = {
    "feature": ClassifierAttackEntry(
        "Feature alone",
        "Ranks samples by one feature of the classifier's output; needs no shadow model.",
        f"{_S21}, appendix A.1",
        f"{_HERE}.thresholds:FeatureScore",
        level="sample",
        needs="nothing",
        has_feature=True,
        formula=r"F(M_\theta(x), y)",
    ),
    "threshold": ClassifierAttackEntry(
        "Class threshold",
        "Compares one feature of the output with a threshold for the class, set on shadow models.",
        f"{_S21}, Algorithm 1",
        f"{_HERE}.thresholds:ClassThreshold",
        level="sample",
        needs="shadows",
        has_feature=True,
        formula=r"\tau_y = \arg\max_\tau \sum_{i \in D_y} 1\{f_i \ge \tau\} + "
        r"\sum_{i \in D'_y} 1\{f_i < \tau\}",
    ),
    "lira_online": ClassifierAttackEntry(
        "LiRA, online",
        "Compares how well two normal distributions explain the output: one of models trained on "
        "the sample, one of models not trained on it.",
        "Carlini et al. (2022)",
        f"{_HERE}.lira:LiRA",
        level="sample",
        needs="the same samples",
        fixed={"is_online": True},
        formula=r"\log \frac{N(\varphi; \mu_{in}, \sigma_{in}^2)}"
        r"{N(\varphi; \mu_{out}, \sigma_{out}^2)},\quad \varphi = \log \frac{p_y}{1 - p_y}",
    ),
    "lira_offline": ClassifierAttackEntry(
        "LiRA, offline",
        "Measures how rarely a model not trained on the sample is this confident about it.",
        "Carlini et al. (2022)",
        f"{_HERE}.lira:LiRA",
        level="sample",
        needs="the same samples",
        asks_members=False,
        fixed={"is_online": False},
        formula=r"1 - P[Z > \varphi],\quad Z \sim N(\mu_{out}, \sigma_{out}^2)",
    ),
    "rmia_online": ClassifierAttackEntry(
        "RMIA, online",
        "Divides the target's confidence by that of reference models, and ranks this ratio among "
        "other samples.",
        "Zarifzadeh et al. (2024)",
        f"{_HERE}.rmia:RMIA",
        level="sample",
        needs="the same samples",
        fixed={"is_online": True},
        formula=r"P_z\left[\frac{p_\theta(x) / p(x)}{p_\theta(z) / p(z)} \ge \gamma\right]",
    ),
    "rmia_offline": ClassifierAttackEntry(
        "RMIA, offline",
        "The same, but only with reference models not trained on the sample.",
        "Zarifzadeh et al. (2024)",
        f"{_HERE}.rmia:RMIA",
        level="sample",
        needs="the same samples",
        asks_members=False,
        fixed={"is_online": False},
        formula=r"p(x) \approx \tfrac{1}{2}\left[(1 + a)\,p_{out}(x) + (1 - a)\right]",
    ),
    "bavaria": ClassifierAttackEntry(
        "BaVarIA",
        "A likelihood ratio that allows for uncertain means and variances with few shadow models.",
        "after Brännvall (2026); its prior and ψ are ours",
        f"{_HERE}.bavaria:BaVarIA",
        level="sample",
        needs="the same samples",
        formula=r"\log \frac{t_{2\alpha'}(\psi; \theta'_{in}, s_{in}^2)}"
        r"{t_{2\alpha'}(\psi; \theta'_{out}, s_{out}^2)},"
        r"\quad \psi = 2\,\text{asinh}\frac{\varphi}{2}",
    ),
    "user_statistic": ClassifierAttackEntry(
        "User statistic",
        "Ranks users by one statistic of their samples' feature, such as the mean.",
        f"{_S21}, Algorithm 2",
        f"{_HERE}.users:UserStatistic",
        level="user",
        needs="nothing",
        has_feature=True,
        learns_from_users=True,
        formula=r"1\{F_{avg} \ge \tau\}",
    ),
    "user_learned": ClassifierAttackEntry(
        "Learned user statistics",
        "A logistic regression on mean, minimum, maximum and variance, trained on shadow models.",
        f"{_S21}, Algorithm 3",
        f"{_HERE}.users:LearnedStatistics",
        level="user",
        needs="shadows",
        has_feature=True,
        learns_from_users=True,
        formula=r"\mathcal{A}(F_{avg}, F_{min}, F_{max}, F_{var})",
    ),
    "user_votes": ClassifierAttackEntry(
        "Sample votes",
        "Each of the user's samples votes by its class threshold; half of the votes decide.",
        f"{_S21}, Algorithm 4",
        f"{_HERE}.users:Votes",
        level="user",
        needs="shadows",
        has_feature=True,
        formula=r"1\{\text{avg}_j\, 1\{f_j \ge \tau_{y_j}\} \ge \tfrac{1}{2}\}",
    ),
    "user_likelihood": ClassifierAttackEntry(
        "Summed likelihood ratios",
        "Adds up the log-likelihood ratios of a user's samples: how much better a model trained on "
        "the sample explains the output.",
        "ours, of Carlini et al. (2022) and Brännvall (2026)",
        f"{_HERE}.user_likelihood:SummedLikelihood",
        level="user",
        needs="the same samples",
        formula=r"\sum_j \log P(\varphi_j \mid in) - \log P(\varphi_j \mid out)",
    ),
    "user_inference": ClassifierAttackEntry(
        "User inference",
        "How much more confident the target is in the user's samples than reference models are.",
        "Kandpal et al. (2024)",
        f"{_HERE}.user_likelihood:UserInference",
        level="user",
        needs="the same samples",
        asks_members=False,
        formula=r"\frac{1}{m} \sum_j \log p_\theta(y_j \mid x_j) - \log p_{ref}(y_j \mid x_j)",
    ),
}


def make_attack(name: str, **settings: Any) -> ClassifierAttack:
    """Build an unfitted classifier attack by its registry name.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value outside its range; the message names what is.
    """
    entry = find(CLASSIFIER_ATTACKS, name, "attack")
    attack: ClassifierAttack = make(entry, name, settings, fixed=entry.fixed)
    return attack
