"""What the audit of mechanisms catches: runs in which a mechanism broken on purpose is refuted.

A cell is a mechanism with a flaw or without: a number of audits, each with a seed of its own. In a
true mechanism every refutation is an error; in a broken one, every audit that passes it.
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
from core.defences.metric_dp.audit.flaws import FLAWS, NUMBER_FLAWS, BrokenMechanism
from core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    DIMENSION,
    PROMISE,
    VERSIONS,
    Audit,
    audit,
    shipped,
)
from core.defences.metric_dp.audit.untested import CHOICE, untested_of
from core.defences.registry import DEFENCES
from core.intervals import wilson_interval
from core.protocols import Defence
from core.results import Score
from core.specs import setting
from core.studies.rows import Cell, Row
from core.studies.tables import markdown_table

__all__ = ["BY_NOISE", "MECHANISMS", "TRUE", "AuditStudy", "flaws_of", "markdown", "measure"]

BY_NOISE = ("text_to_text", "token_representation", "sequence_representation")
"""Those that move vectors; they are audited by their noise, or by where it leads."""
MECHANISMS = (*BY_NOISE, *CHOICES)
TRUE = "as it ships"
"""What stands in the place of a flaw where there is none."""

_TITLES = {
    "numbers": "Mechanisms that release numbers",
    "text": "Text to text",
    CHOICE: "Mechanisms that choose a token",
}


def flaws_of(mechanism: str) -> tuple[str, ...]:
    """Return the flaws that are planted in a mechanism."""
    if mechanism in CHOICES:
        return tuple(FLAWED_CHOICES)
    return tuple(FLAWS if _kind_of(mechanism) == "text" else NUMBER_FLAWS)


def _kind_of(mechanism: str) -> str:
    return CHOICE if mechanism in CHOICES else DEFENCES[mechanism].acts_on


@dataclass(frozen=True, kw_only=True)
class AuditStudy:
    """How often the audit refutes each mechanism as it ships, and with each flaw."""

    mechanisms: tuple[str, ...] = setting(MECHANISMS, "mechanisms by name", choices=MECHANISMS)
    eta: float = setting(75.0, "η at which those that add noise are audited", low=1e-12, high=1e12)
    strength: float = setting(
        2.0, "ε, or η, at which those that choose a token are audited", low=1e-3, high=1e6
    )
    dimension: int = setting(
        DIMENSION, "dimension at which those that release numbers are audited", low=2, high=10_000
    )
    n_runs: int = setting(100, "audits of each, seeds one after the other", low=1)
    seed: int = setting(0, "of the first audit", low=0)
    alpha: float = setting(ALPHA, "chance that an audit refutes a true mechanism", low=0, high=1)

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
        return [
            {
                "study": "audit",
                "audit_version": VERSIONS[_kind_of(mechanism)],
                "mechanism": mechanism,
                "flaw": flaw,
                **self._strength(mechanism),
                "n_runs": self.n_runs,
                "seed": self.seed,
                "alpha": self.alpha,
            }
            for mechanism in self.mechanisms
            for flaw in (TRUE, *flaws_of(mechanism))
        ]

    def _strength(self, mechanism: str) -> dict[str, float]:
        if mechanism in CHOICES:
            return {"strength": self.strength}
        if _kind_of(mechanism) == "text":
            return {"eta": self.eta}
        return {"eta": self.eta, "dimension": self.dimension}


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
    dimension = cell.get("dimension", DIMENSION)
    return lambda seed: audit(make, kind, eta, seed=seed, alpha=cell["alpha"], dimension=dimension)


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
    """Return the table of detection: how many audits refute, and by which tests most often."""
    columns = ["mechanism", "flaw", "refuted, %", "most often by (audits)"]
    lines = [_line(row) for row in rows]
    table = "\n".join(markdown_table(columns, lines)) + "\n"
    return f"{_head(rows)}{table}{_untested(rows)}"


def _line(row: Row) -> list[str]:
    title = DEFENCES[row["mechanism"]].title
    if row.error:
        return [title, row["flaw"], "–", f"failed: {row.error}"]
    most = row["by"][:2]
    most += [each for each in row["by"][2:] if each[0].startswith(PROMISE)][:1]
    told = "; ".join(f"{name} ({n})" for name, n in most)
    return [title, row["flaw"], row.said("refuted", is_bold=row["flaw"] == TRUE), told]


def _head(rows: Sequence[Row]) -> str:
    title = "# What the audit of mechanisms catches\n\n"
    measured = [row for row in rows if not row.error]
    if not measured:
        return title
    first, draws = measured[0], sorted({row["n_draws"] for row in measured})
    return (
        f"{title}{first['n_runs']} audits of each, seeds from {first['seed']}, {_at(rows)}; "
        f"each of {' or '.join(f'{n:,}' for n in draws)} draws, at a level of "
        f"{first['alpha']:.0%} over all its tests (Holm's correction): a true mechanism may be "
        "refuted that often. The interval is Wilson's, of 95 %. *As it ships* should not be "
        "refuted; all others should.\n\n"
        "Tests named *promise* bound the odds of outputs from below, and refute the guarantee "
        "itself. All others compare the outputs with the law that the guarantee's proof needs: a "
        "mechanism that they refute may still keep its promise, but nothing proves that it "
        "does.\n\n"
    )


def _at(rows: Sequence[Row]) -> str:
    """Return at which η, ε and dimension mechanisms were audited."""
    etas = dict.fromkeys(row["eta"] for row in rows if "eta" in row)
    strengths = dict.fromkeys(row["strength"] for row in rows if "strength" in row)
    dimensions = dict.fromkeys(row["dimension"] for row in rows if "dimension" in row)
    told = [f"η = {eta:g}" for eta in etas]
    told += [f"of those that release numbers in {each} dimensions" for each in dimensions]
    told += [f"of those that choose a token at ε, or η, = {each:g}" for each in strengths]
    return f"at {', '.join(told)}" if etas else ", ".join(told)


def _untested(rows: Sequence[Row]) -> str:
    """Return what the audits of these mechanisms do not test."""
    kinds = dict.fromkeys(_kind_of(row["mechanism"]) for row in rows)
    lists = {("numbers" if kind in ("tokens", "vector") else kind): kind for kind in kinds}
    parts = [
        f"{_TITLES[title]}:\n\n" + "".join(f"- {each}\n" for each in untested_of(kind))
        for title, kind in lists.items()
    ]
    return "\n## What the audit does not test\n\n" + "\n".join(parts)
