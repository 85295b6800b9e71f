"""The command `evaluate`: its scores, and thresholds that pass, fail or could not be measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome

from leakscope.core.audit.leakage import row_digest

SCORE_FIELDS = {
    "n",
    "precision",
    "recall",
    "token_set_f1",
    "token_set_f1_ci95",
    "weighted_f1",
    "precision_ci95",
    "recall_ci95",
    "weighted_f1_ci95",
    "exact_set_rate",
    "name_recall",
}


def evaluated(core: Any, trained: Path, tiny_bert: Path, texts: Path, *more: object) -> Outcome:
    outcome: Outcome = core(
        f"evaluate --encoder mlm:{tiny_bert} --attack prior --weights {trained} --texts {texts}",
        *more,
    )
    return outcome


def test_evaluate_prints_the_documented_json(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path
) -> None:
    outcome = evaluated(core, trained, tiny_bert, corpus, "--limit", 50, "--seed", 3, "--json")
    result = outcome.json()
    assert outcome.err == ""
    assert (result["attack"], result["n"], result["seed"]) == ("prior", 50, 3)
    assert result.keys() >= SCORE_FIELDS
    assert result["baseline"].keys() >= SCORE_FIELDS
    low, high = result["token_set_f1_ci95"]
    assert 0 <= low <= result["token_set_f1"] <= high <= 100
    low, high = result["unrestricted_f1_ci95"]
    assert 0 <= low <= result["unrestricted_f1"] <= high <= 100 and result["unit"] == "sentence"
    assert result["unrestricted_f1"] == result["unrestricted_f1_baseline"], "the prior is its own"
    low, high = result["recall_ci95"]
    assert low <= result["recall"] <= high
    # The prior is its own baseline, and no text holds a capital or a digit.
    assert result["baseline"]["token_set_f1"] == result["token_set_f1"]
    assert result["name_recall"] is None
    assert result["sentences_per_second"] > 0
    assert result["vocabulary_coverage"] == pytest.approx(1, abs=0.01)
    assert result["texts"] == "corpus.txt"
    assert result["training"]["corpus_hash"]
    again = evaluated(core, trained, tiny_bert, corpus, "--limit", 50, "--seed", 3, "--json").json()
    varying = {"sentences_per_second"}
    assert {k: v for k, v in again.items() if k not in varying} == {
        k: v for k, v in result.items() if k not in varying
    }


def test_evaluate_reads_tables_with_a_text_column(
    core: Any, trained: Path, tiny_bert: Path, small_texts: list[str], tmp_path: Path
) -> None:
    import pandas as pd

    frame = pd.DataFrame({"id": range(20), "text": small_texts[:20]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\n".join(small_texts[:20]) + "\n\n")
    scores = [
        evaluated(core, trained, tiny_bert, tmp_path / f"a.{kind}", "--json").json()["recall"]
        for kind in ("csv", "jsonl", "parquet", "txt")
    ]
    assert len(set(scores)) == 1


def test_evaluate_can_be_held_to_words_that_two_attacks_know(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path
) -> None:
    result = evaluated(
        core, trained, tiny_bert, corpus, "--limit", 20, "--also-known-to", trained, "--json"
    ).json()
    alone = evaluated(core, trained, tiny_bert, corpus, "--limit", 20, "--json").json()
    assert result["token_set_f1"] == alone["token_set_f1"]


@pytest.fixture
def texts(tmp_path: Path, bundled: list[str]) -> Path:
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(" ".join(text.split()) for text in bundled[5::140][:80]))
    return path


def gated(core: Any, texts: Path, *more: object, attack: str = "probe_mlc") -> Outcome:
    found: Outcome = core("evaluate", "--attack", attack, "--texts", texts, "--no-cache", *more)
    return found


def test_thresholds_decide_the_exit_status(core: Any, texts: Path, tmp_path: Path) -> None:
    report, junit, sarif = (tmp_path / name for name in ("r.json", "r.xml", "r.sarif"))
    loose = gated(core, texts, "--max-f1", 100, "--max-recovered", "numbers=100")
    assert loose.status == 0 and "PASSED max-f1" in loose.out
    tight = gated(
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
    told = gated(core, texts, "--limit", 40, "--seed", 3, "--json").json()
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
    assert gated(core, texts, *noise, "--json", defended).status == 0
    off = gated(core, texts, "--baseline", defended, "--json", plain)
    assert off.status == 1 and json.loads(plain.read_text())["checks"][0]["outcome"] == "failed"
    same = gated(core, texts, "--baseline", plain)
    assert same.status == 0 and "not significantly different" in same.out
    other = gated(core, texts, "--baseline", plain, attack="prior")
    assert other.status == 2 and "NOT MEASURED baseline" in other.out


def test_a_part_that_is_too_small_is_no_pass(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("The finance minister resigned after a vote in Berlin.\n")
    found = gated(core, path, "--max-f1", 100, "--max-recovered", "numbers=50")
    assert found.status == 2
    assert "NOT MEASURED max-f1" in found.out
    assert "NOT MEASURED max-recovered-numbers" in found.out
