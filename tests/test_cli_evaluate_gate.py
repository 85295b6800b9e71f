"""Thresholds of `evaluate`: what passes, what fails a build, and what could not be measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome

from leakscope.core.audit.leakage import row_digest


@pytest.fixture
def texts(tmp_path: Path, bundled: list[str]) -> Path:
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(" ".join(text.split()) for text in bundled[5::140][:80]))
    return path


def evaluated(core: Any, texts: Path, *more: object, attack: str = "probe_mlc") -> Outcome:
    found: Outcome = core("evaluate", "--attack", attack, "--texts", texts, "--no-cache", *more)
    return found


def test_thresholds_decide_the_exit_status(core: Any, texts: Path, tmp_path: Path) -> None:
    report, junit, sarif = (tmp_path / name for name in ("r.json", "r.xml", "r.sarif"))
    loose = evaluated(core, texts, "--max-f1", 100, "--max-recovered", "numbers=100")
    assert loose.status == 0 and "PASSED max-f1" in loose.out
    tight = evaluated(
        core,
        texts,
        "--max-f1",
        10,
        "--max-recovered",
        "names=0",
        "--json",
        report,
        "--junit",
        junit,
        "--sarif",
        sarif,
    )
    assert tight.status == 1 and "FAILED max-f1" in tight.out
    told = json.loads(report.read_text())
    outcomes = {check["name"]: check["outcome"] for check in told["checks"]}
    assert outcomes == {"max-f1": "failed", "max-recovered-names": "failed"}
    names = told["recovered"]["names"]
    assert names["ci95"][0] <= names["value"] <= names["ci95"][1]
    assert 0 < names["n_listed"] < names["n_all"]
    parser = pytest.importorskip("junitparser")
    (suite,) = list(parser.JUnitXml.fromfile(str(junit)))
    assert suite.failures == 2
    library = pytest.importorskip("sarif_pydantic")
    results = library.Sarif.model_validate_json(sarif.read_text()).runs[0].results
    assert [result.kind for result in results] == ["fail", "fail"]


def test_the_report_has_the_f1_of_each_row_by_a_digest_of_its_number(
    core: Any, texts: Path
) -> None:
    told = evaluated(core, texts, "--limit", 40, "--seed", 3, "--json").json()
    rows = told["f1_by_row"]
    assert len(rows) == told["n"] and rows.keys() <= {row_digest(str(i)) for i in range(80)}
    assert 100 * sum(rows.values()) / len(rows) == pytest.approx(told["token_set_f1"], abs=0.01)
    assert "checks" not in told


@pytest.mark.slow
def test_a_defence_that_is_switched_off_fails_the_baseline(
    core: Any, texts: Path, tmp_path: Path
) -> None:
    defended, plain = tmp_path / "defended.json", tmp_path / "plain.json"
    noise = ("--defence", "gaussian:sigma=0.08")
    assert evaluated(core, texts, *noise, "--json", defended).status == 0
    off = evaluated(core, texts, "--baseline", defended, "--json", plain)
    assert off.status == 1 and json.loads(plain.read_text())["checks"][0]["outcome"] == "failed"
    same = evaluated(core, texts, "--baseline", plain)
    assert same.status == 0 and "not significantly different" in same.out
    other = evaluated(core, texts, "--baseline", plain, attack="prior")
    assert other.status == 2 and "NOT MEASURED baseline" in other.out


def test_a_part_that_is_too_small_is_no_pass(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("The finance minister resigned after a vote in Berlin.\n")
    found = evaluated(core, path, "--max-f1", 100, "--max-recovered", "numbers=50")
    assert found.status == 2
    assert "NOT MEASURED max-f1" in found.out
    assert "NOT MEASURED max-recovered-numbers" in found.out
