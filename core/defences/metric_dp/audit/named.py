"""The audit of any mechanism that ships, by its name."""

from __future__ import annotations

from functools import partial
from typing import Any

from core.defences.metric_dp.audit import mechanism as noise
from core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    choice_plan,
    shipped_choice,
)
from core.defences.metric_dp.audit.elsewhere import drawn_by_processes
from core.defences.metric_dp.audit.mechanism import ALPHA, DIMENSION, Audit
from core.defences.registry import DEFENCES
from core.protocols import OnProgress, no_progress

__all__ = ["audit_named"]


def audit_named(
    name: str,
    strength: float,
    *,
    seed: int = 0,
    alpha: float = ALPHA,
    dimension: int = DIMENSION,
    has_processes: bool = False,
    on_progress: OnProgress = no_progress,
) -> Audit:
    """Test a mechanism of the registry at its ε or η.

    Parameters
    ----------
    dimension : int
        Of the encoder's vectors, for mechanisms that release numbers.
    has_processes : bool
        Whether two other processes draw as well, which takes seconds.

    Raises
    ------
    InvalidInputError
        No such ε or η or dimension, or alpha is no probability.
    CoreError
        Another process could not be run.
    """
    told: dict[str, Any] = {"seed": seed, "alpha": alpha, "on_progress": on_progress}
    if has_processes:
        told["elsewhere"] = partial(drawn_by_processes, name, seed)
    if name in CHOICES:
        return audit_choice(
            shipped_choice(name, strength), choice_plan(name, strength, seed), **told
        )
    make, kind = noise.shipped(name, strength), DEFENCES[name].acts_on
    return noise.audit(make, kind, strength, dimension=dimension, **told)
