"""The study of the mechanism audit: how often it refutes true and deliberately broken mechanisms.

A cell is a mechanism with a flaw or without: a number of audits, each with a seed of its own. In a
true mechanism every refutation is an error; in a broken one, every audit that passes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    choice_factory,
    choice_plan,
)
from leakscope.core.defences.metric_dp.audit.flaws import (
    FLAWED_CHOICES,
    FLAWS,
    NUMBER_FLAWS,
    BrokenMechanism,
    FlawedChoice,
)
from leakscope.core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    CHOICE,
    DIMENSION,
    PROMISE,
    VERSIONS,
    Audit,
    audit,
    defence_factory,
    list_untested,
)
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.intervals import wilson_interval
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import setting

BY_NOISE = ("text_to_text", "token_representation", "sequence_representation")
"""Mechanisms that add noise to vectors, audited by the noise or by the chosen tokens."""
MECHANISMS = (*BY_NOISE, *CHOICES)
TRUE = "as it ships"
"""The name of the missing flaw."""

_TITLES = {
    "numbers": "Mechanisms that release numbers",
    "text": "Text to text",
    CHOICE: "Mechanisms that choose a token",
}


def planted_flaws(mechanism: str) -> tuple[str, ...]:
    """Return the names of the deliberate flaws that the study plants in a mechanism."""
    if mechanism in CHOICES:
        return tuple(FLAWED_CHOICES)
    return tuple(FLAWS if _kind_of(mechanism) == "text" else NUMBER_FLAWS)


def _kind_of(mechanism: str) -> str:
    """Return what an audited mechanism acts on, or CHOICE for one that chooses a token."""
    return CHOICE if mechanism in CHOICES else DEFENCES[mechanism].acts_on


@dataclass(frozen=True, kw_only=True)
class AuditStudy:
    """Settings of the audit study: mechanisms, strengths and the number of audits."""

    mechanisms: tuple[str, ...] = setting(MECHANISMS, "mechanisms by name", choices=MECHANISMS)
    eta: float = setting(75.0, "η for the audit of mechanisms that add noise", low=1e-12, high=1e12)
    strength: float = setting(
        2.0, "ε, or η, for the audit of mechanisms that choose a token", low=1e-3, high=1e6
    )
    dimension: int = setting(
        DIMENSION, "dimension for the audit of mechanisms that release numbers", low=2, high=10_000
    )
    n_runs: int = setting(100, "audits per mechanism, with successive random seeds", low=1)
    seed: int = setting(0, "random seed of the first audit", low=0)
    alpha: float = setting(ALPHA, "chance that an audit refutes a correct mechanism", low=0, high=1)

    def cells(self) -> list[Cell]:
        """Return one cell per mechanism and planted flaw, and one for the flawless mechanism."""
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
            for flaw in (TRUE, *planted_flaws(mechanism))
        ]

    def _strength(self, mechanism: str) -> dict[str, float]:
        """Return the cell entries of a mechanism's strength and dimension."""
        if mechanism in CHOICES:
            return {"strength": self.strength}
        if _kind_of(mechanism) == "text":
            return {"eta": self.eta}
        return {"eta": self.eta, "dimension": self.dimension}


def uses(cell: Cell) -> Cell:
    """Return {"defence": …}: the registry entry of the cell's mechanism, which it measures."""
    return {"defence": cell["mechanism"]}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Audit a cell's mechanism n_runs times; return one row with the per cent of refutations."""
    n = cell["n_runs"]
    run = _audit_runner(cell)
    found = [run(seed) for seed in range(cell["seed"], cell["seed"] + n)]
    n_refuted = sum(each.is_refuted for each in found)
    score = Score(100 * n_refuted / n, wilson_interval(n_refuted, n), n)
    facts = {
        "n_tests": len(found[0].p_values),
        "n_draws": found[0].n_draws,
        "by": _refuting_tests(found),
    }
    return [Row(scores={"refuted": score}, facts=facts)]


def _audit_runner(cell: Cell) -> Callable[[int], Audit]:
    """Return a function that audits a cell's mechanism, with its planted flaw, under a seed."""
    name, flaw, alpha = cell["mechanism"], cell["flaw"], cell["alpha"]
    make: Any
    if name in CHOICES:
        strength = cell["strength"]
        make = choice_factory(name, strength)
        if flaw != TRUE:
            make = lambda seed: FlawedChoice(name=name, flaw=flaw, strength=strength, seed=seed)  # noqa: E731
        return lambda seed: audit_choice(
            make, choice_plan(name, strength, seed), seed=seed, alpha=alpha
        )
    kind, eta = DEFENCES[name].acts_on, cell["eta"]
    make = defence_factory(name, eta)
    if flaw != TRUE:
        make = lambda seed: BrokenMechanism(kind=kind, flaw=flaw, eta=eta, seed=seed)  # noqa: E731
    dimension = cell.get("dimension", DIMENSION)
    return lambda seed: audit(make, kind, eta, seed=seed, alpha=alpha, dimension=dimension)


def _refuting_tests(found: Sequence[Audit]) -> list[list[Any]]:
    """Return [test, number of audits] pairs of the tests that refuted, most frequent first."""
    counts = Counter(name for each in found for name in each.refuted_by)
    return [[name, n] for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: how many audits refute each mechanism, by what tests."""
    columns = ["mechanism", "flaw", "refuted, %", "most often by (audits)"]
    lines = [_table_row(row) for row in rows]
    table = "\n".join(markdown_table(columns, lines)) + "\n"
    return f"{_introduction(rows)}{table}{_untested_section(rows)}"


def _table_row(row: Row) -> list[str]:
    """Return the table cells of a row: mechanism, flaw, per cent refuted, refuting tests."""
    title = DEFENCES[row["mechanism"]].title
    if row.error:
        return [title, row["flaw"], "–", f"failed: {row.error}"]
    most = row["by"][:2]
    most += [each for each in row["by"][2:] if each[0].startswith(PROMISE)][:1]
    told = "; ".join(f"{name} ({n})" for name, n in most)
    return [title, row["flaw"], row.format("refuted", is_bold=row["flaw"] == TRUE), told]


def _introduction(rows: Sequence[Row]) -> str:
    """Format the title and paragraph above the table: numbers of audits and draws, the level."""
    title = "# What the mechanism audit catches\n\n"
    measured = [row for row in rows if not row.error]
    if not measured:
        return title
    first, draws = measured[0], sorted({row["n_draws"] for row in measured})
    return (
        f"{title}{first['n_runs']} audits of each mechanism, random seeds from {first['seed']}, "
        f"{_describe_strengths(rows)}. Each audit uses {' or '.join(f'{n:,}' for n in draws)} "
        f"draws, at a level of {first['alpha']:.0%} over all its tests (Holm's correction): it "
        "may refute a correct mechanism that often. The interval is Wilson's 95 % interval. "
        "Audits should not refute *as it ships*, and should refute all others.\n\n"
        "Tests named *promise* bound the odds of outputs from below, and refute the guarantee "
        "itself. All others compare the outputs with the distribution that the proof of the "
        "guarantee assumes. If they refute a mechanism, its guarantee may still hold, but is no "
        "longer proven.\n\n"
    )


def _describe_strengths(rows: Sequence[Row]) -> str:
    """Describe the η, ε and dimensions of the audited mechanisms, as part of a sentence."""
    etas = dict.fromkeys(row["eta"] for row in rows if "eta" in row)
    strengths = dict.fromkeys(row["strength"] for row in rows if "strength" in row)
    dimensions = dict.fromkeys(row["dimension"] for row in rows if "dimension" in row)
    told = [f"η = {eta:g}" for eta in etas]
    told += [f"in {each} dimensions for mechanisms that release numbers" for each in dimensions]
    told += [f"at ε, or η, = {each:g} for mechanisms that choose a token" for each in strengths]
    return f"at {', '.join(told)}" if etas else ", ".join(told)


def _untested_section(rows: Sequence[Row]) -> str:
    """Return the Markdown section on what the audits of these mechanisms do not test."""
    kinds = dict.fromkeys(_kind_of(row["mechanism"]) for row in rows)
    lists = {("numbers" if kind in ("tokens", "vector") else kind): kind for kind in kinds}
    parts = [
        f"{_TITLES[title]}:\n\n" + "".join(f"- {each}\n" for each in list_untested(kind))
        for title, kind in lists.items()
    ]
    return "\n## What the audit does not test\n\n" + "\n".join(parts)
