"""The tables of adversarial training: how wide intervals are, and which weights are none."""

from __future__ import annotations

import pytest

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.training.adversarial_tables import settings_from_rows


@pytest.mark.parametrize("hides", ["words", "attribute"])
@pytest.mark.parametrize(("group", "half"), [("book", 3.0), ("", 1.5)])
def test_targets_of_the_same_documents_are_one_sample_over_seeds(
    hides: str, group: str, half: float
) -> None:
    """As in the trade-off: of four seeds the interval is as wide as of one, not half as wide."""
    rows = [
        Row(
            {
                "encoder": "minilm",
                "hides": hides,
                "defence_kind": "none",
                "weight": 0.0,
                "seed": seed,
                "group": group,
            },
            {"read": Score(30.0, Interval(27.0, 33.0), 100, 5.0)},
            {"when": "after", "attacker": "linear"},
        )
        for seed in range(4)
    ]
    (found,) = settings_from_rows(rows)
    (read,) = found.after.values()
    assert (read.value, read.n) == (30.0, 100 if group else 400)
    assert (read.ci95.low, read.ci95.high) == pytest.approx((30 - half, 30 + half))
