"""What the audit of mechanisms catches: runs in which a mechanism broken on purpose is refuted.

A cell a mechanism and a flaw, or none: so many audits, each with a seed of its own. In a true
mechanism every refutation is an error; of a broken one, every audit that passes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    choice_plan,
    shipped_choice,
)
from core.defences.metric_dp.audit.flawed_choices import FLAWED_CHOICES, FlawedChoice
from core.defences.metric_dp.audit.flaws import FLAWS, BrokenMechanism
from core.defences.metric_dp.audit.mechanism import ALPHA, VERSION, Audit, audit, shipped
from core.defences.registry import DEFENCES
from core.intervals import wilson_interval
from core.protocols import Defence
from core.results import Score
from core.specs import setting
from core.studies.rows import Cell, Row
from core.studies.tables import markdown_table

__all__ = ["BY_NOISE", "MECHANISMS", "TRUE", "AuditStudy", "markdown", "measure"]

BY_NOISE = ("text_to_text", "token_representation", "sequence_representation")
"""Those that move vectors; they are audited by their noise, or by where it leads."""
MECHANISMS = (*BY_NOISE, *CHOICES)
TRUE = "as it ships"
"""What stands in the place of a flaw where there is none."""


@dataclass(frozen=True, kw_only=True)
class AuditStudy:
    """How often the audit refutes each mechanism as it ships, and with each flaw."""

    mechanisms: tuple[str, ...] = setting(MECHANISMS, "mechanisms by name", choices=MECHANISMS)
    eta: float = setting(75.0, "η at which those that add noise are audited", low=1e-12, high=1e12)
    strength: float = setting(
        2.0, "ε, or η, at which those that choose a token are audited", low=1e-3, high=1e6
    )
    n_runs: int = setting(100, "audits of each, seeds one after the other", low=1)
    seed: int = setting(0, "of the first audit", low=0)
    alpha: float = setting(ALPHA, "chance that an audit refutes a true mechanism", low=0, high=1)

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
        return [
            {
                "study": "audit",
                "audit_version": VERSION,
                "mechanism": mechanism,
                "flaw": flaw,
                **({"strength": self.strength} if mechanism in CHOICES else {"eta": self.eta}),
                "n_runs": self.n_runs,
                "seed": self.seed,
                "alpha": self.alpha,
            }
            for mechanism in self.mechanisms
            for flaw in (TRUE, *(FLAWED_CHOICES if mechanism in CHOICES else FLAWS))
        ]


def uses(cell: Cell) -> Cell:
    """Return the defence that a cell calls a mechanism."""
    return {"defence": cell["mechanism"]}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Audit one mechanism again and again; the tests that refute it are counted."""
    n = cell["n_runs"]
    run = _of_choice(cell) if cell["mechanism"] in CHOICES else _of_noise(cell)
    found = [run(seed) for seed in range(cell["seed"], cell["seed"] + n)]
    n_refuted = sum(each.is_refuted for each in found)
    score = Score(100 * n_refuted / n, wilson_interval(n_refuted, n), n)
    facts = {"n_tests": len(found[0].p_values), "n_draws": found[0].n_draws, "by": _by(found)}
    return [Row(scores={"refuted": score}, facts=facts)]


def _of_noise(cell: Cell) -> Callable[[int], Audit]:
    """Return what audits a mechanism that adds noise, with a seed."""
    name, eta = cell["mechanism"], cell["eta"]
    kind, make = DEFENCES[name].acts_on, shipped(name, eta)
    if cell["flaw"] != TRUE:
        make = partial(_broken, kind, cell["flaw"], eta)
    return lambda seed: audit(make, kind, eta, seed=seed, alpha=cell["alpha"])


def _of_choice(cell: Cell) -> Callable[[int], Audit]:
    """Return the same of one that chooses a token."""
    name, strength = cell["mechanism"], cell["strength"]
    make = shipped_choice(name, strength)
    if cell["flaw"] != TRUE:
        make = partial(_broken_choice, name, cell["flaw"], strength)
    return lambda seed: audit_choice(
        make, choice_plan(name, strength, seed), seed=seed, alpha=cell["alpha"]
    )


def _broken_choice(name: str, flaw: str, strength: float, seed: int | None) -> Defence:
    made: Any = FlawedChoice(name=name, flaw=flaw, strength=strength, seed=seed)
    defence: Defence = made
    return defence


def _broken(kind: str, flaw: str, eta: float, seed: int | None) -> Defence:
    made: Any = BrokenMechanism(kind=kind, flaw=flaw, eta=eta, seed=seed)
    defence: Defence = made
    return defence


def _by(found: Sequence[Audit]) -> list[list[Any]]:
    """Return the tests that refuted, the most frequent first, with their number of audits."""
    counts = Counter(name for each in found for name in each.refuted_by)
    return [[name, n] for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def markdown(rows: Sequence[Row]) -> str:
    """Return the table of detection: how many audits refute, and by which test most often."""
    columns = ["mechanism", "flaw", "refuted, %", "most often by (audits)"]
    lines = [_line(row) for row in rows]
    return _head(rows) + "\n".join(markdown_table(columns, lines)) + "\n"


def _line(row: Row) -> list[str]:
    title = DEFENCES[row["mechanism"]].title
    if row.error:
        return [title, row["flaw"], "–", f"failed: {row.error}"]
    most = "; ".join(f"{name} ({n})" for name, n in row["by"][:2])
    return [title, row["flaw"], row.said("refuted", is_bold=row["flaw"] == TRUE), most]


def _head(rows: Sequence[Row]) -> str:
    first = next((row for row in rows if not row.error), None)
    if first is None:
        return "# What the audit of mechanisms catches\n\n"
    return (
        "# What the audit of mechanisms catches\n\n"
        f"{first['n_runs']} audits of each, seeds from {first['seed']}, {_at(rows)}; "
        f"each of {first['n_draws']:,} draws, at a level of "
        f"{first['alpha']:.0%} over all its tests (Holm's correction): a true mechanism may be "
        "refuted that often. The interval is Wilson's, of 95 %. *As it ships* should not be "
        "refuted; all others should.\n\n"
    )


def _at(rows: Sequence[Row]) -> str:
    """Return at which η, and which ε, mechanisms were audited."""
    etas = dict.fromkeys(row["eta"] for row in rows if "eta" in row)
    strengths = dict.fromkeys(row["strength"] for row in rows if "strength" in row)
    told = [f"η = {eta:g}" for eta in etas]
    told += [f"of those that choose a token at ε, or η, = {each:g}" for each in strengths]
    return f"at {', '.join(told)}" if etas else ", ".join(told)
