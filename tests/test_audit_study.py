"""The table of what the audit catches: what it must hold, and that it is made of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.core.defences.metric_dp.audit.choices import CHOICES
from leakscope.core.defences.metric_dp.audit.flaws import FLAWED_CHOICES, FLAWS, NUMBER_FLAWS
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability.mechanism_audit import (
    BY_NOISE,
    MECHANISMS,
    TRUE,
    AuditStudy,
    markdown,
    measure,
    planted_flaws,
)

RESULTS = Path(__file__).parents[1] / "results"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(RESULTS / "audit.json", "audit")


def test_flaws_are_caught_and_true_mechanisms_pass(rows: list[Row]) -> None:
    assert {(r["mechanism"], r["flaw"]) for r in rows} == {
        (name, flaw) for name in MECHANISMS for flaw in (TRUE, *planted_flaws(name))
    }
    assert {*CHOICES} < {*MECHANISMS}
    flaws = [set(planted_flaws(name)) for name in (*BY_NOISE, "tem")]
    assert flaws == [{*FLAWS}, {*NUMBER_FLAWS}, {*NUMBER_FLAWS}, {*FLAWED_CHOICES}]
    assert len(NUMBER_FLAWS) >= len(FLAWS) + 10
    for row in rows:
        score = row.scores["refuted"]
        assert score.n == 100
        assert score.value <= 5 if row["flaw"] == TRUE else score.value >= 95, row["flaw"]


def test_a_cell_counts_its_audits(tmp_path: Path) -> None:
    study = AuditStudy(mechanisms=("sequence_representation",), n_runs=3, seed=40)
    cells = {cell["flaw"]: cell for cell in study.cells()}
    (caught,) = measure(cells["noise ÷ 1.2"], tmp_path)
    assert caught.scores["refuted"].value == 100 and caught.scores["refuted"].n == 3
    assert ["norm: Gamma(n, 1/η)", 3] in caught["by"]
    (passed,) = measure({**cells[TRUE], "alpha": 1e-4}, tmp_path)
    assert passed.scores["refuted"].value == 0 and passed["by"] == []


def test_one_that_chooses_a_token_is_audited_at_its_own_strength(tmp_path: Path) -> None:
    study = AuditStudy(mechanisms=("custext",), n_runs=2, seed=40, strength=3.0)
    cells = {cell["flaw"]: cell for cell in study.cells()}
    assert {*cells} == {TRUE, *FLAWED_CHOICES} and "eta" not in cells[TRUE]
    (caught,) = measure(cells["10 % left as they are"], tmp_path)
    (passed,) = measure({**cells[TRUE], "alpha": 1e-4}, tmp_path)
    assert (caught.scores["refuted"].value, passed.scores["refuted"].value) == (100, 0)
    (table,) = {markdown([Row(cells[TRUE], passed.scores, passed.facts)])}
    assert "at ε, or η, = 3" in table and "| CusText | as it ships | **0.0**" in table.replace(
        "  ", " "
    )


def test_a_broken_promise_is_named_in_the_table_however_many_tests_refute(tmp_path: Path) -> None:
    study = AuditStudy(mechanisms=("sequence_representation",), n_runs=1, dimension=96)
    cells = {cell["flaw"]: cell for cell in study.cells()}
    cell = cells["floating-point release"]
    (found,) = measure(cell, tmp_path)
    row = Row(cell, found.scores, found.facts)
    table = markdown([row])
    assert "promise: x against x', 96 dimensions (1)" in table
    assert "in 96 dimensions" in table and "odds multiply" in table
