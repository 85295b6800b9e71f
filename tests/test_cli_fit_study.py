"""`fit` and `study` on the command line."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leakscope.core.cli.shared.study_files import without_folders
from leakscope.core.results.rows import Row
from leakscope.core.studies.inversion import classification
from leakscope.core.studies.inversion import representations as encoders


@pytest.fixture
def news(tmp_path: Path, small_texts: list[str]) -> Path:
    """Two classes of small documents with titles, as CSV."""
    path = tmp_path / "news.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "text", "label_name"])
        for i in range(0, 400, 4):
            label, end = ("food", "The soup was warm.") if i % 8 else ("travel", "A train left.")
            body = " ".join([*small_texts[i : i + 4], end])
            writer.writerow([f"Report {i} on {small_texts[i][:30]}", body, label])
    return path


@pytest.mark.parametrize("name", ["tfidf", "lsa_hashing", "glove"])
def test_a_fitted_encoder_can_be_attacked_by_its_name(
    core: Any, corpus: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    settings = {
        "lsa_hashing": ["--set", "n_components=20"],
        "glove": ["--set", "epochs=2", "--set", "vector_size=8"],
    }
    fitted = core(
        f"fit --encoder {name} --corpus {corpus} --out {out}", *settings.get(name, []), "--json"
    ).json()
    assert fitted["encoder"] == f"{name}:{out}" and fitted["n_texts"] > 300
    attack = tmp_path / "attack"
    core(
        f"train --encoder {name}:{out} --attack probe --corpus {corpus} --out {attack} --json"
    ).json()
    rows = core(
        f"invert --encoder {name}:{out} --attack probe --weights {attack} "
        "--text 'The doctor crossed the river.' --json"
    ).json()
    found = [word["word"] for word in rows[0]["words"]]
    assert {"doctor", "river"} <= set(found)
    again = core(
        f"fit --encoder {name} --corpus {corpus} --out {out}", *settings.get(name, []), "--json"
    ).json()
    assert again == fitted, "what is finished is told again, not made again"
    line = core("fit", "--encoder", name, "--corpus", corpus, "--limit", 300, "--out", out)
    assert "contains another encoder" in line.refusal()


def test_a_dual_encoder_is_fitted_on_neighbours(core: Any, news: Path, tmp_path: Path) -> None:
    out = tmp_path / "dual"
    fitted = core(
        f"fit --encoder dual_lstm --corpus {news} --out {out} --set dimension=16 "
        "--set n_negatives=20 --set n_candidates=5 --json"
    ).json()
    assert fitted["n_pairs"] >= 100 and "among 5" in fitted["validation"]
    assert not (out / "checkpoint").exists()


def test_sentence_bert_is_fitted_on_scored_pairs(
    core: Any, small_texts: list[str], tiny_bert: Path, tmp_path: Path
) -> None:
    table = pd.DataFrame(
        {
            "sentence1": small_texts[:120],
            "sentence2": small_texts[1:121],
            "score": [float(i % 6) for i in range(120)],
            "lang": "it",
            "split": ["train"] * 60 + ["dev"] * 30 + ["test"] * 30,
        }
    )
    table.to_parquet(tmp_path / "sts.parquet")
    out = tmp_path / "sbert"
    given = shlex.split(
        f"fit --encoder sbert --pairs {tmp_path / 'sts.parquet'} --language it "
        f"--set base={tiny_bert} --set epochs=1 --set learning_rate=0.01 --out {out}"
    )
    fitted = core(*given, "--json").json()
    assert fitted["n_pairs"] == 60 and "on 30 pairs" in fitted["validation"]
    assert "on 30 pairs" in fitted["test"] and "on 30 pairs" in fitted["test_before"]
    assert fitted["test"] != fitted["test_before"]
    assert "--pairs, not --corpus" in core(*given, "--corpus", "lee").refusal()


def test_an_inversion_study_is_written_thrice_and_resumed(
    core: Any, news: Path, tmp_path: Path, leakscope_home: Path
) -> None:
    out = tmp_path / "table.json"
    given = shlex.split(
        f"study encoders --target {news} --other {news} --encoders tfidf hashing "
        f"--attacks probe prior --n-auxiliary 200 --n-targets 20 --out {out} --json"
    )
    rows = core(*given).json()["rows"]
    assert len(rows) == 8 and all(row["n"] == 20 for row in rows)
    by = {(r["encoder"], r["attack"], r["domain"]): r for r in rows}
    assert by["tfidf", "probe", "in"]["token_set_f1"] > 85
    assert by["tfidf", "prior", "in"]["token_set_f1"] < 60
    low, high = by["hashing", "probe", "in"]["token_set_f1_ci95"]
    assert low <= by["hashing", "probe", "in"]["token_set_f1"] <= high
    tidy = pd.read_parquet(out.with_suffix(".parquet"))
    f1 = tidy[tidy.measure == "token_set_f1"]
    assert list(f1.value) == [row["token_set_f1"] for row in rows]
    assert (f1.low <= f1.value).all() and list(f1.chance) == [row["prior_f1"] for row in rows]
    spec = json.loads(out.with_suffix(".spec.json").read_text())
    assert (spec["study"], spec["target"], spec["n_auxiliary"]) == ("encoders", "news.csv", [200])
    assert "| tfidf | probe | in | 200 | 20 of 10 documents |" in out.with_suffix(".md").read_text()
    cells = sorted((leakscope_home / "studies" / "inversion" / "cells").glob("*.json"))
    stamps = [path.stat().st_mtime_ns for path in cells]
    assert core(*given).json()["rows"] == rows
    assert [path.stat().st_mtime_ns for path in cells] == stamps, "nothing was measured again"


def test_sizes_and_variants_are_measured_beside_each_other(
    core: Any, news: Path, tmp_path: Path
) -> None:
    rows = core(
        f"study encoders --target {news} --other {news} --encoders tfidf --attacks probe "
        "retrieval --domains in --n-auxiliary 60 200 --n-targets 20 --variant n_neighbors=1 "
        f"--out {tmp_path / 't.json'} --json"
    ).json()["rows"]
    told = [(r["attack"], r["n_fitted_on"], r["settings"]) for r in rows]
    assert told == [
        ("probe", 60, {}),
        ("probe", 200, {}),
        ("retrieval", 60, {}),
        ("retrieval", 200, {}),
        ("retrieval", 60, {"n_neighbors": 1}),
        ("retrieval", 200, {"n_neighbors": 1}),
    ]


@pytest.mark.slow
def test_a_classification_study_beats_the_largest_class(
    core: Any, news: Path, tmp_path: Path
) -> None:
    out = tmp_path / "table.json"
    rows = core(
        f"study classification --target {news} --other {news} --encoders tfidf --grid short "
        f"--out {out} --json"
    ).json()["rows"]
    assert [row["view"] for row in rows if row["domain"] == "in"] == list(classification.VIEWS)
    whole = next(row for row in rows if row["view"] == "text" and row["domain"] == "in")
    assert whole["macro_f1"] > whole["prior_macro_f1"] and whole["n"] == 30
    assert json.loads(out.read_text())["study"] == "classification"


def test_a_cell_that_fails_is_told_and_the_rest_is_written(
    core: Any, news: Path, tmp_path: Path
) -> None:
    out = tmp_path / "table.json"
    outcome = core(
        f"study encoders --target {news} --other {news} --encoders tfidf nonsense "
        f"--attacks probe --domains in --out {out}"
    )
    assert outcome.status == 2 and "1 of 2 cells failed" in outcome.err
    rows = json.loads(out.read_text())["rows"]
    assert rows[0]["token_set_f1"] > 85 and "nonsense" in rows[1]["error"]


def test_no_empty_folder_is_left_where_every_cell_failed(
    core: Any, news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> list[Row]:
        raise OSError("no memory")

    monkeypatch.setattr(encoders, "measure", failing)
    given = shlex.split(
        f"study encoders --target {news} --other {news} --encoders hashing --attacks probe --out"
    )
    outcome = core(*given, tmp_path / "missing" / "t.json")
    assert outcome.status == 2 and "no file was written" in outcome.err
    assert not (tmp_path / "missing").exists()
    (tmp_path / "there").mkdir()
    core(*given, tmp_path / "there" / "t.json")
    assert (tmp_path / "there").is_dir(), "a folder of the user's own stays"


def test_an_attack_meets_only_vectors_that_it_reads(core: Any, news: Path, tmp_path: Path) -> None:
    study = encoders.EncoderStudy(
        target=str(news), encoders=("tfidf", "minilm"), attacks=("probe", "probe_mlc")
    )
    pairs = {(cell["encoder"], cell["attack"]) for cell in study.cells()}
    assert pairs == {("tfidf", "probe"), ("minilm", "probe"), ("minilm", "probe_mlc")}
    open_box = encoders.EncoderStudy(
        target=str(news), encoders=("doc2vec", "dual_lstm:saved", "minilm"), attacks=("sparse",)
    )
    assert {cell["encoder"] for cell in open_box.cells()} == {"dual_lstm:saved", "minilm"}
    given = ["study", "encoders", "--target", news, "--encoders", "tfidf", "--out", tmp_path / "t"]
    assert "Attacks on sparse vectors are" in core(*given, "--attacks", "probe_mlc").refusal()


@pytest.mark.parametrize("keep", [0, 1])
def test_white_box_attacks_are_judged_by_the_words_of_the_texts(
    core: Any, news: Path, tmp_path: Path, tiny_bert: Path, keep: int
) -> None:
    rows = core(
        f"study encoders --target {news} --other {news} --encoders mlm:{tiny_bert} "
        "--attacks sparse probe --domains in --n-auxiliary 200 --n-targets 20 "
        f"--set keep_stop_words={keep} --set n_tuning=20 --out {tmp_path / 't.json'} --json"
    )
    sparse, probe = rows.json()["rows"]
    assert sparse["vocabulary_size"] == probe["vocabulary_size"]
    assert sparse["token_set_f1"] > sparse["prior_f1"] > 0


def test_rows_name_no_folder_of_this_machine(tmp_path: Path) -> None:
    rows = [
        {"target": "/a/news.csv", "other": "wikipedia", "encoder": f"dual_lstm:{tmp_path}"},
        {"encoder": "st:org/model", "target": "/ada/news.csv#a/b", "texts": "/b/posts.csv#t"},
    ]
    assert [row.cell for row in without_folders([Row(cell) for cell in rows])] == [
        {"target": "news.csv", "other": "wikipedia", "encoder": f"dual_lstm:{tmp_path.name}"},
        {"encoder": "st:org/model", "target": "news.csv#a/b", "texts": "posts.csv#t"},
    ]
