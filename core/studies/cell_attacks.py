"""The attack of a study's cell: its settings, made ready to fit, named, and what it scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.attacks.registry import ATTACKS, make_attack
from core.protocols import InversionAttack
from core.results import Scores
from core.specs import AttackSpec, settings_of
from core.studies.runner import Cell

__all__ = ["attack_of", "attack_said", "has_setting", "score_entries", "settings_for"]


def has_setting(attack: str, setting: str) -> bool:
    """Whether an attack has a setting of that name."""
    return setting in settings_of(ATTACKS[attack].kind)


def settings_for(attack: str, given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return those of the settings given to all attacks that this one has."""
    return {name: value for name, value in given if has_setting(attack, name)}


def attack_of(cell: Cell) -> InversionAttack:
    """Return a cell's attack, yet to be fitted, under the cell's seed where it takes one.

    Raises
    ------
    InvalidInputError
        A setting outside its range.
    """
    settings = dict(cell["settings"])
    if has_setting(cell["attack"], "seed"):
        settings["seed"] = cell["seed"]
    return make_attack(AttackSpec.of(cell["attack"], settings))


def attack_said(row: Mapping[str, Any]) -> str:
    """Return a row's attack with its settings, such as `msp (epochs=8)`."""
    settings = ", ".join(f"{name}={value}" for name, value in row["settings"].items())
    return f"{row['attack']} ({settings})" if settings else str(row["attack"])


def score_entries(scores: Scores) -> dict[str, Any]:
    """Return what a row tells of its scores."""
    interval = scores.token_set_f1_ci95
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "token_set_f1": scores.token_set_f1,
        "token_set_f1_ci95": [interval.low, interval.high],
    }
