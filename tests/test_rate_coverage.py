"""The interval of a true-positive rate holds the truth as often as it says."""

from __future__ import annotations

import pytest

from leakscope.core.storage.artifacts import read_json
from tools.rate_coverage import OUT, Setting, markdown, measured, settings

LEAST = 0.93


def test_what_was_measured_covers_in_every_setting() -> None:
    rows = read_json(OUT)["settings"]
    told = [(row["n_units"], row["likeness"], row["fpr"], row["shift"]) for row in rows]
    assert told == [(s.n_units, s.likeness, s.fpr, s.shift) for s in settings()]
    assert [row for row in rows if row["covered_melded"] < LEAST or row["n_runs"] < 1000] == []
    assert min(row["covered_known"] for row in rows) < 0.75, "as if the threshold were known"
    assert f"{100 * min(row['covered_melded'] for row in rows):.1f} %" in markdown()


@pytest.mark.parametrize(
    "setting",
    [Setting(100, 0.0, 0.1, 1.0), Setting(100, 0.0, 0.01, 2.5), Setting(30, 0.5, 0.1, 1.0)],
    ids=["a hundred texts", "one expected", "users"],
)
def test_a_part_of_it_measured_again_covers_and_is_not_needlessly_wide(setting: Setting) -> None:
    found = measured(setting, 150, seed=1)
    assert found["covered_melded"] >= 0.91  # LEAST less twice the error of 150 draws
    assert found["covered_known"] < found["covered_melded"]
    assert found["width_melded"] < 1 if setting.fpr == 0.01 else found["width_melded"] < 0.5
