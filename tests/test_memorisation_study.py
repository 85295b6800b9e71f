"""The study of memorisation: its rows and tables, and what a kill leaves."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.intervals import student_interval
from leakscope.core.results.rows import Row
from leakscope.core.studies.memorisation import study as memorisation
from leakscope.core.studies.memorisation.study import MemorisationStudy, markdown
from leakscope.core.studies.registry import run_study


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the study train models of a second, in this process."""
    small = {"hidden": 16, "max_length": 48, "batch_size": 32}
    monkeypatch.setattr(memorisation, "_SETTINGS", replace(memorisation._SETTINGS, **small))
    for access, settings in memorisation._AUDITED.items():
        least = replace(settings, epochs=1, n_texts=40, **small)
        monkeypatch.setitem(memorisation._AUDITED, access, least)
        monkeypatch.setitem(memorisation._CANARIES, access, (20, 10))
    monkeypatch.setattr(memorisation, "FORMATS", ("my pin is {digits:2}", "code {digits:2}"))


def study(corpus: Path, **more: Any) -> MemorisationStudy:
    given: dict[str, Any] = {
        "target": str(corpus),
        "models": ("lstm",),
        "insertions": (0, 8),
        "epochs": 2,
        "n_texts": 80,
        "n_canaries": 2,
        "n_generated": 10,
        "seeds": (0, 1),
        "audit_epsilons": (0.0,),
        "n_audits": 3,
        **more,
    }
    return MemorisationStudy(**given)


@pytest.mark.slow
def test_a_row_an_epoch_and_a_row_an_audit(corpus: Path, tmp_path: Path) -> None:
    rows = run_study("memorisation", study(corpus), tmp_path)
    assert [row.error for row in rows if row.error] == []
    planted = [row for row in rows if row["part"] == "exposure"]
    assert len(planted) == 2 * 2 * 2 and len(rows) == len(planted) + 2
    for row in planted:
        score = row.scores["exposure"]
        assert 0 <= score.value <= 6.65 and score.n == 2 and 1.3 < score.chance < 1.45
        assert row.scores["control_exposure"].n == 100 and row["is_exact"]
        assert score.ci95 == student_interval(np.array(row["exposures"]), low=0, high=log2(100))
    assert ["extraction" in row.facts for row in planted] == [False, True] * 4
    for row in rows[len(planted) :]:
        assert row.scores["epsilon_bound"].value >= 0 and row["accountant_epsilon"] is None
    assert not any(tmp_path.rglob("training/*")), "what is finished needs no checkpoint"
    told = markdown([Row.from_dict(row.to_dict()) for row in rows])
    assert "95 % CI over canaries and 2 seeds" in told
    one = [row for row in rows if row["seed"] == 0]
    assert "95 % CI over the canaries of one seed" in markdown(one)
    assert "| lstm | 8 |" in told and "prefix known" in told
    assert "the final model, texts inserted" in told
