"""The study of memorisation: its rows and tables, and what a kill leaves."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import StoppedError
from core.intervals import student_interval
from core.studies import memorisation
from core.studies.memorisation import MemorisationStudy, markdown
from core.studies.registry import run_study
from core.studies.rows import Row


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
        "target": str(corpus), "models": ("lstm",), "insertions": (0, 8), "epochs": 2,
        "n_texts": 80, "n_canaries": 2, "n_generated": 10, "seeds": (0, 1),
        "audit_epsilons": (0.0,), "n_audits": 3, **more,
    }  # fmt: skip
    return MemorisationStudy(**given)


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
    assert "intervals of 95 % over canaries and 2 seeds" in told
    one = [row for row in rows if row["seed"] == 0]
    assert "intervals of 95 % over the canaries of one seed" in markdown(one)
    assert (
        "| lstm | 8 |" in told and "the model, with texts put in" in told and "prefix known" in told
    )


def test_a_failed_cell_says_why_and_loses_nothing(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    rows = run_study("memorisation", study(corpus, insertions=(1,), seeds=(0,),
                                           audit_epsilons=(4.0,)), tmp_path)  # fmt: skip
    assert ["pip install opacus==" in row.error for row in rows] == [False] * 2 + [True] * 4
    assert "## Failed" in markdown(rows)


def test_what_was_stopped_goes_on_and_nothing_finished_is_redone(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    original = memorisation.run_planted

    def counted(*given: Any, **more: Any) -> Any:
        begun.append(given[3])
        if len(begun) == 2:
            raise StoppedError("enough")
        return original(*given, **more)

    monkeypatch.setattr(memorisation, "run_planted", counted)
    asked = study(corpus, insertions=(1,), audit_epsilons=())
    with pytest.raises(StoppedError):
        run_study("memorisation", asked, tmp_path)
    rows = run_study("memorisation", asked, tmp_path)
    assert begun == [0, 1, 1] and {row["seed"] for row in rows} == {0, 1}
