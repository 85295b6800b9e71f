from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest
from example_reading import READING

from leakscope.core.attacks.inversion.export import readings_csv
from leakscope.core.spreadsheets import neutral_cell, table_csv


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " ="])
def test_a_cell_never_starts_a_formula(start: str) -> None:
    assert neutral_cell(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("separator", [";", "\t", "|", "\n", "\r\n"])
@pytest.mark.parametrize("formula", ["=1+1", "@SUM(A1)", "-2-cmd", " =1"])
def test_nor_does_what_a_list_separator_makes_a_cell_of_its_own(
    separator: str, formula: str
) -> None:
    told = table_csv([{"first": "a", "second": f"word{separator}{formula}"}])
    cells = re.split(rf"[,{separator}\r\n]", told)
    bare = [cell.strip(' "') for cell in cells]
    assert not [cell for cell in bare if cell.startswith(("=", "+", "-", "@"))]
    assert any(cell.startswith("'") for cell in bare)
    fine = f"-0.5{separator}3{separator}word"
    assert neutral_cell(fine) == fine, "numbers stay numbers"


@pytest.mark.parametrize("value", ["-0.1 0.2 -3", "-0.1, 0.2", "-1;2;-3"])
def test_vectors_in_cells_stay_vectors(value: str) -> None:
    assert neutral_cell(value) == value


@pytest.mark.parametrize(
    "value",
    ["-0.5", "+3", "-1,234.5", "-1e-05", "-3.2 %", "-4.1 to -3.2", "-0.3 [-0.5, 0.1]", "-3 to 4 %"],
)
def test_numbers_that_are_written_as_texts_stay_numbers(value: str) -> None:
    assert neutral_cell(value) == value
    (_, row) = csv.reader(io.StringIO(table_csv([{"score": value}])))
    assert row == [value]


@pytest.mark.parametrize(
    "value", ["-1+1", "-2-cmd", "+SUM(A1)", "-3 A1", "-1 to A1", "+1 two", "-"]
)
def test_what_only_begins_like_a_number_is_no_number(value: str) -> None:
    assert neutral_cell(value) == f"'{value}"


def test_csv_has_a_row_a_word_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(readings_csv([READING]), newline="")))
    assert [(row["rank"], row["word"], row["score"], row["outcome"]) for row in rows] == [
        ("1", "minister", "0.75", "recovered"),
        ("2", "'-1+1", "0.5", "wrong"),
        ("", "said", "", "missed"),
        ("", "zweig", "", "outside vocabulary"),
    ]
    assert {row["text"] for row in rows} == {"'" + READING.text}


def test_what_the_encoder_does_not_read_is_not_among_the_missed() -> None:
    reading = replace(READING, unread=frozenset({"later"}))
    rows = csv.DictReader(io.StringIO(readings_csv([reading]), newline=""))
    assert {row["word"]: row["outcome"] for row in rows}["later"] == "beyond what the encoder reads"
