"""Rows of the trade-off study as points: one per defence and strength, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.errors import ArtifactError
from core.store import read_json
from core.studies.scores import Score, mean_over_seeds

__all__ = ["SHIPPED", "Point", "Tradeoff", "load_tradeoff", "markdown", "strength"]

SHIPPED = ASSETS / "tradeoff"
"""What was measured for the bundled encoder."""

_STRENGTHS = {
    "eta": "η {:g}",
    "sigma": "σ {:g}",
    "decimals": "to {:g} decimals",
    "dimension": "to {:g} dimensions",
}


@dataclass(frozen=True)
class Point:
    """A defence at one strength.

    Attributes
    ----------
    utility : dict
        Task to score.
    leakage : Score
        Token-set F1 of the attack trained on protected vectors.
    token_inversion : Score or None
        Share of tokens that come back, where tokens are perturbed.
    """

    defence: str
    settings: tuple[tuple[str, Any], ...]
    utility: dict[str, Score]
    leakage: Score
    token_inversion: Score | None

    @property
    def label(self) -> str:
        """The strength in words, such as `η 75`."""
        return strength(dict(self.settings))


@dataclass(frozen=True)
class Tradeoff:
    """All points of a study, and the facts of its making."""

    points: tuple[Point, ...]
    facts: dict[str, Any]

    @property
    def tasks(self) -> list[str]:
        """The tasks in the order measured."""
        return list(self.points[0].utility)

    @property
    def undefended(self) -> Point:
        """The encoder without any defence."""
        return next(point for point in self.points if point.defence == "none")


def load_tradeoff(path: Path) -> Tradeoff:
    """Read what `python -m core.studies.tradeoff` wrote, and average it over seeds.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    data = read_json(path)
    try:
        rows = data["rows"]
        keys = dict.fromkeys((row["defence"], tuple(row["settings"].items())) for row in rows)
        points = tuple(_point(defence, settings, rows) for defence, settings in keys)
        found = Tradeoff(points, {key: value for key, value in data.items() if key != "rows"})
        _ = found.undefended, found.tasks
    except (KeyError, TypeError, AttributeError, StopIteration, IndexError) as error:
        raise ArtifactError(
            f"{path} is not the result of `python -m core.studies.tradeoff`. Make it anew."
        ) from error
    return found


def strength(settings: dict[str, Any]) -> str:
    """Return settings in a few words.

    Examples
    --------
    >>> strength({"eta": 75.0}), strength({"dimension": 96}), strength({})
    ('η 75', 'to 96 dimensions', '')
    """
    return ", ".join(_STRENGTHS.get(k, f"{k} {{}}").format(v) for k, v in settings.items())


def markdown(found: Tradeoff) -> str:
    """Return all points as a Markdown table: mean over seeds [95 % interval], guessing first."""
    facts, base = found.facts, found.undefended
    tasks = found.tasks
    chance = ["guessing", "", *(f"{base.utility[t].chance:.1f}" for t in tasks)]
    lines = [
        ["defence", "strength", *tasks, "words recovered, F1", "tokens back, %"],
        ["---"] * (len(tasks) + 4),
        [*chance, f"{base.leakage.chance:.1f}", ""],
    ]
    for point in found.points:
        back = point.token_inversion
        scores = [_said(point.utility[task]) for task in tasks]
        lines.append(
            [point.defence, point.label, *scores, _said(point.leakage), _said(back) if back else ""]
        )
    head = (
        "# Utility against leakage\n\n"
        f"Encoder {facts['encoder']}, frozen. Accuracy in per cent of a linear classifier on "
        f"{facts['n_train']} training and {facts['n_test']} test texts (a random subset of each "
        f"task), STS-b: Spearman × 100 on {facts['n_test']} pairs. Words recovered: the attack "
        f"{facts['attack'][0]}, trained on the protected vectors of {facts['n_auxiliary']} "
        f"sentences, on {facts['n_targets']} others; n is per seed, seeds {facts['seeds']}. "
        "Means over seeds with 95 % intervals: the greater of the error within a seed and the "
        f"spread between seeds. {facts['seconds'] / 60:.0f} minutes on two x86 cores.\n\n"
    )
    return head + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _said(score: Score) -> str:
    return f"{score.value:.1f} [{score.ci95.low:.1f}, {score.ci95.high:.1f}]"


def _point(
    defence: str, settings: tuple[tuple[str, Any], ...], rows: Sequence[dict[str, Any]]
) -> Point:
    own = [r for r in rows if r["defence"] == defence and tuple(r["settings"].items()) == settings]
    tasks = dict.fromkeys(
        r["task"] for r in own if r["measure"] != "token_set_f1" and r["task"] != "token_inversion"
    )
    back = [r for r in own if r["task"] == "token_inversion"]
    return Point(
        defence,
        settings,
        {task: mean_over_seeds([r for r in own if r["task"] == task]) for task in tasks},
        mean_over_seeds([r for r in own if r["measure"] == "token_set_f1"]),
        mean_over_seeds(back) if back else None,
    )
