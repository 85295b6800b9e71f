from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from example_reading import READING

from core.attacks.inversion.export import neutral_cell, readings_csv, readings_json


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " ="])
def test_a_cell_never_starts_a_formula(start: str) -> None:
    assert neutral_cell(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("value", ["word", "", -0.5, 3, "'=1"])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert neutral_cell(value) == value


def test_csv_has_a_row_a_word_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(readings_csv([READING]), newline="")))
    assert [(row["rank"], row["word"], row["score"], row["outcome"]) for row in rows] == [
        ("1", "minister", "0.75", "recovered"),
        ("2", "'-1+1", "0.5", "wrong"),
        ("", "said", "", "missed"),
        ("", "zweig", "", "outside vocabulary"),
    ]
    assert {row["text"] for row in rows} == {"'" + READING.text}


def test_json_tells_words_scores_and_cost() -> None:
    (row, second) = json.loads(readings_json([READING, replace(READING, attack="mlc")]))
    assert second["attack"] == "mlc"
    assert row["text"] == READING.text
    assert row["words"] == [
        {"word": "minister", "score": 0.75, "is_in_text": True},
        {"word": "-1+1", "score": 0.5, "is_in_text": False},
    ]
    assert row["missed"] == ["said"]
    assert row["not_scored"] == {
        "outside_vocabulary": ["zweig"],
        "beyond_what_the_encoder_reads": [],
        "stop_words": ["the"],
    }
    assert (row["precision"], row["recall"], row["token_set_f1"]) == (50, 50, 50)
    assert (row["n_queries"], row["seconds"], row["training"]) == (2, 0.25, {"n_texts": 100})
    assert row["access"].startswith("black box")
