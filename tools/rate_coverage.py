"""Measure the coverage of confidence intervals of TPR at a fixed FPR.

`python -m tools.rate_coverage` draws scores of members and non-members whose true rates are known,
counts how often the interval of `tpr_at_fpr` holds them, and that of Clopper & Pearson above the
same threshold as if it were known, and writes results/rate-coverage.json;
`python -m tools.figures` writes the table beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.roc import tpr_at_fpr
from leakscope.core.intervals import clopper_pearson
from leakscope.core.results.tables import markdown_table
from leakscope.core.storage.artifacts import read_json, write_json

OUT = Path(__file__).resolve().parents[1] / "results" / "rate-coverage.json"
N_RUNS = 1000
_TEXTS = 10
"""Of each user, where texts come by users."""


@dataclass(frozen=True)
class Setting:
    """A simulation setting: sample size, within-user correlation, FPR and shift.

    Attributes
    ----------
    n_units : int
        Members, and as many non-members: texts, or users where `likeness` is above 0.
    likeness : float
        Share of the variance of scores that all texts of a user have in common.
    fpr : float
    shift : float
        By how many standard deviations members score higher.
    """

    n_units: int
    likeness: float
    fpr: float
    shift: float

    @property
    def truth(self) -> float:
        """The true TPR at the FPR, as scores are normal with variance 1."""
        return float(1 - ndtr(ndtri(1 - self.fpr) - self.shift))


def settings() -> Iterator[Setting]:
    """Yield the settings to simulate: those with at least one expected false positive."""
    for shift in (1.0, 2.5):
        for n_units in (100, 300, 1000):
            for fpr in (0.1, 0.01, 0.001):
                if n_units * fpr >= 1:
                    yield Setting(n_units, 0.0, fpr, shift)
        for n_units in (30, 100):
            for likeness in (0.1, 0.5):
                for fpr in (0.1, 0.01):
                    if n_units * fpr >= 1:
                        yield Setting(n_units, likeness, fpr, shift)


def measured(setting: Setting, n_runs: int = N_RUNS, *, seed: int = 0) -> dict[str, Any]:
    """Simulate a setting; return how often each interval covers the true TPR, and its width.

    Parameters
    ----------
    n_runs : int
        Draws of all scores.
    """
    rng = np.random.default_rng([seed, setting.n_units, round(1e4 * setting.fpr)])
    n_each = _TEXTS if setting.likeness else 1
    users = np.repeat(np.arange(2 * setting.n_units), n_each)
    units = users.tolist() if setting.likeness else None
    members = users < setting.n_units
    held = {"melded": 0, "known": 0}
    widths = {"melded": 0.0, "known": 0.0}
    resolution = ""
    for _ in range(n_runs):
        shared = rng.normal(size=2 * setting.n_units)[users] * setting.likeness**0.5
        scores = shared + rng.normal(size=len(users)) * (1 - setting.likeness) ** 0.5
        scores[members] += setting.shift
        at = tpr_at_fpr(Ranking(scores, members, units), setting.fpr)
        found = int((scores[members] > at.threshold).sum())
        intervals = {
            "melded": at.tpr.ci95,
            "known": clopper_pearson(found, int(members.sum())),
        }
        for name, interval in intervals.items():
            held[name] += interval.low <= setting.truth <= interval.high
            widths[name] += (interval.high - interval.low) / n_runs
        resolution = at.resolution
    return {
        **asdict(setting),
        "truth": setting.truth,
        "n_runs": n_runs,
        "resolution": resolution,
        **{f"covered_{name}": n / n_runs for name, n in held.items()},
        **{f"width_{name}": width for name, width in widths.items()},
    }


def markdown(told: dict[str, Any] | None = None) -> str:
    """Render the Markdown table of coverages from results, by default the written ones."""
    told = read_json(OUT) if told is None else told
    rows = told["settings"]
    columns = (
        "members, and non-members",
        "FPR",
        "true TPR",
        "resolution",
        "covered",
        "width",
        "covered as if the threshold were known",
        "width",
    )
    lines = [
        (
            _describe_units(row),
            f"{100 * row['fpr']:g} %",
            f"{row['truth']:.3f}",
            row["resolution"],
            f"{100 * row['covered_melded']:.1f} %",
            f"{row['width_melded']:.3f}",
            f"{100 * row['covered_known']:.1f} %",
            f"{row['width_known']:.3f}",
        )
        for row in rows
    ]
    least = min(row["covered_melded"] for row in rows)
    worst = min(row["covered_known"] for row in rows)
    return "\n".join(
        [
            "# Coverage of the interval of a true-positive rate",
            "",
            "The threshold of a false-positive rate comes from the same non-members that are "
            "scored. `tpr_at_fpr` allows for that, and for texts of one user (`melded_interval`); "
            "the interval of Clopper & Pearson above that threshold does not. Normal scores, "
            f"{rows[0]['n_runs']:,} draws of each setting; nominal coverage 95 %. Least coverage: "
            f"{100 * least:.1f} % and {100 * worst:.1f} %. Repeat it: `python -m "
            "tools.rate_coverage`.",
            "",
            *markdown_table(columns, lines),
            "",
        ]
    )


def _describe_units(row: dict[str, Any]) -> str:
    """Format the size of a setting's sample in words."""
    if not row["likeness"]:
        return f"{row['n_units']:,} texts"
    return f"{row['n_units']:,} users of {_TEXTS} texts, {row['likeness']:.0%} in common"


def main(arguments: list[str] | None = None) -> int:
    """Simulate every setting and write the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.rate_coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=N_RUNS, help=f"of each (default: {N_RUNS})")
    n_runs = parser.parse_args(arguments).runs
    write_json(OUT, {"settings": [measured(each, n_runs) for each in settings()]}, is_public=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
