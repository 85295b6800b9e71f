from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome

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
