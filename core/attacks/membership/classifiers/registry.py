"""The attacks on text classifiers, in the order in which a reader should meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.registry import Entry, find, make

__all__ = ["CLASSIFIER_ATTACKS", "ClassifierAttack", "ClassifierAttackEntry", "make_attack"]

Level = Literal["sample", "user"]
Needs = Literal["nothing", "shadows", "the same samples"]


class ClassifierAttack(Protocol):
    """An attack that says of samples, or of users, how likely a model was trained on them."""

    def fit(self, shadows: Any) -> Any:
        """Learn from shadow models: `Shadows`, or a list of `Outputs` where the entry allows."""
        ...

    def scores(self, target: Outputs) -> NDArray[np.float64]:
        """Return the score of each sample or user, higher where a member is likelier."""
        ...


@dataclass(frozen=True)
class ClassifierAttackEntry(Entry):
    """What a user should know before choosing an attack, and where its class is."""

    level: Level
    needs: Needs
    """Shadow models: none, any, or such as answered for the very samples of the target."""
    has_feature: bool = False
    """Whether one of the five features can be chosen."""
    learns_from_users: bool = False
    """Whether it needs users of shadow models who were trained on, and others who were not."""
    asks_members: bool = True
    """Whether it needs shadow models that were trained on some of the samples, if any at all."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that make this entry what it is."""

    def can_use(self, shadows: Shadows | Sequence[Outputs] | None) -> bool:
        """Return whether such shadow models are enough for it."""
        if self.needs == "nothing":
            return True
        if self.needs == "shadows":
            return shadows is not None
        return isinstance(shadows, Shadows)


_HERE = "core.attacks.membership.classifiers"
_S21 = "Shejwalkar et al. (2021)"

CLASSIFIER_ATTACKS: Mapping[str, ClassifierAttackEntry] = {
    "feature": ClassifierAttackEntry(
        "Feature alone",
        "Ranks samples by one number of the answer; needs no model of the attacker's own.",
        f"{_S21}, appendix A.1",
        f"{_HERE}.thresholds:FeatureScore",
        level="sample",
        needs="nothing",
        has_feature=True,
        formula=r"F(M_\theta(x), y)",
    ),
    "threshold": ClassifierAttackEntry(
        "Threshold of the class",
        "Holds one number of the answer against a threshold that shadow models gave its class.",
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
        "Compares how well two normal distributions explain the answer: of models trained on the "
        "sample, and of models that were not.",
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
        "Asks how seldom a model that was not trained on the sample is so sure of it.",
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
        "Counts the other samples that the target stands out less on, held against models beside.",
        "Zarifzadeh et al. (2024)",
        f"{_HERE}.rmia:RMIA",
        level="sample",
        needs="the same samples",
        fixed={"is_online": True},
        formula=r"P_z\left[\frac{p_\theta(x) / p(x)}{p_\theta(z) / p(z)} \ge \gamma\right]",
    ),
    "rmia_offline": ClassifierAttackEntry(
        "RMIA, offline",
        "The same with models alone that were not trained on the sample.",
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
        "The likelihood ratio where few shadow models leave mean and variance in doubt.",
        "after Brännvall (2026); its prior and ψ are ours",
        f"{_HERE}.bavaria:BaVarIA",
        level="sample",
        needs="the same samples",
        formula=r"\log \frac{t_{2\alpha'}(\psi; \theta'_{in}, s_{in}^2)}"
        r"{t_{2\alpha'}(\psi; \theta'_{out}, s_{out}^2)},"
        r"\quad \psi = 2\,\text{asinh}\frac{\varphi}{2}",
    ),
    "user_statistic": ClassifierAttackEntry(
        "User's statistic",
        "Ranks users by one statistic of their samples' numbers, such as the mean.",
        f"{_S21}, Algorithm 2",
        f"{_HERE}.users:UserStatistic",
        level="user",
        needs="nothing",
        has_feature=True,
        learns_from_users=True,
        formula=r"1\{F_{avg} \ge \tau\}",
    ),
    "user_learned": ClassifierAttackEntry(
        "User's statistics, learned",
        "A logistic regression on mean, minimum, maximum and variance, trained on shadow users.",
        f"{_S21}, Algorithm 3",
        f"{_HERE}.users:LearnedStatistics",
        level="user",
        needs="shadows",
        has_feature=True,
        learns_from_users=True,
        formula=r"\mathcal{A}(F_{avg}, F_{min}, F_{max}, F_{var})",
    ),
    "user_votes": ClassifierAttackEntry(
        "Votes of the samples",
        "Each sample of the user votes by the threshold of its class; half of the votes decide.",
        f"{_S21}, Algorithm 4",
        f"{_HERE}.users:Votes",
        level="user",
        needs="shadows",
        has_feature=True,
        formula=r"1\{\text{avg}_j\, 1\{f_j \ge \tau_{y_j}\} \ge \tfrac{1}{2}\}",
    ),
    "user_likelihood": ClassifierAttackEntry(
        "Summed likelihood ratios",
        "Adds up, over all samples of a user, how much likelier each answer is of a model that was "
        "trained on it (log-likelihood ratios).",
        "ours, of Carlini et al. (2022) and Brännvall (2026)",
        f"{_HERE}.user_likelihood:SummedLikelihood",
        level="user",
        needs="the same samples",
        formula=r"\sum_j \log P(\varphi_j \mid in) - \log P(\varphi_j \mid out)",
    ),
    "user_inference": ClassifierAttackEntry(
        "User inference",
        "The mean by which the target is surer of the user's samples than models beside.",
        "Kandpal et al. (2024)",
        f"{_HERE}.user_likelihood:UserInference",
        level="user",
        needs="the same samples",
        asks_members=False,
        formula=r"\frac{1}{m} \sum_j \log p_\theta(y_j \mid x_j) - \log p_{ref}(y_j \mid x_j)",
    ),
}


def make_attack(name: str, **settings: Any) -> ClassifierAttack:
    """Build an attack by name.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value outside its range; the message names what is.
    """
    entry = find(CLASSIFIER_ATTACKS, name, "attack")
    attack: ClassifierAttack = make(entry, name, settings, fixed=entry.fixed)
    return attack
