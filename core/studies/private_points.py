"""What was measured of differentially private training, number by number, as the page reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.results import Score
from core.studies.provenance import Provenance

__all__ = ["PrivateHead", "PrivateModel", "PrivateTraining", "Spent"]


@dataclass(frozen=True)
class Spent:
    """The ε that a training spent, by both packages' accountants; `tight` by a sharper one.

    Attributes
    ----------
    of_group : float or None
        The ε of ten texts of one person together; None where a row is older than that.
    """

    opacus: float
    dp_accounting: float
    tight: float | None
    noise_multiplier: float
    n_steps: int
    of_group: float | None = None

    @property
    def apart(self) -> float:
        """By which share of 1 the two that count alike differ."""
        return abs(self.opacus - self.dp_accounting) / self.opacus


@dataclass(frozen=True)
class PrivateHead:
    """Classifiers on frozen vectors, trained to keep to an ε; infinite without a promise.

    Attributes
    ----------
    accuracy, change : Score
        Per cent, and points beside the same training without clipping and noise.
    auc, control : Score
        Of the strongest attack on membership, and where that is dealt by lot; shares of 1.
    spent, attacked : Spent or None
        Of what is used, and of what is attacked: both are trained, on other texts.
    """

    task: str
    hidden: int
    epsilon: float
    accuracy: Score
    change: Score
    auc: Score
    control: Score
    strongest: tuple[str, ...]
    n_train: int
    n_members: int
    n_seeds: int
    spent: Spent | None
    attacked: Spent | None

    @property
    def head(self) -> str:
        """What stands between vectors and classes."""
        return f"{self.hidden} units" if self.hidden else "linear"


@dataclass(frozen=True)
class PrivateModel:
    """Language models with planted canaries, trained to keep to an ε; infinite without one.

    Attributes
    ----------
    of_copies : float or None
        The ε of a canary with all its copies.
    """

    epsilon: float
    exposure: Score
    controls: Score
    bits_a_token: float
    n_train: int
    n_canaries: int
    insertions: int
    n_seeds: int
    spent: Spent | None
    of_copies: float | None


@dataclass(frozen=True)
class PrivateTraining:
    """What the study of private training measured."""

    heads: tuple[PrivateHead, ...]
    models: tuple[PrivateModel, ...]
    delta: float
    provenances: tuple[Provenance | None, ...]
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once."""
        return list(dict.fromkeys(head.task for head in self.heads))

    def of(self, task: str) -> list[PrivateHead]:
        """Return the classifiers of a task, ε growing."""
        own = [head for head in self.heads if head.task == task]
        return sorted(own, key=lambda head: (head.hidden, head.epsilon))

    @property
    def apart(self) -> float:
        """By which share of 1 the two accountants differ at most; NaN where nothing was spent."""
        spent = [each for head in self.heads for each in (head.spent, head.attacked)]
        spent += [model.spent for model in self.models]
        return max((each.apart for each in spent if each is not None), default=math.nan)
