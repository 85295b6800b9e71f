"""The study of deniability: its page, its figures, and what a cell of it measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.defences.deniability.vocabulary import SHIPPED, load_vocabulary
from leakscope.core.defences.metric_dp.eta_grid import NAMED_ETAS
from leakscope.core.errors import InvalidInputError
from leakscope.core.figures.deniability_panels import geometry_panel, histogram_panels
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability import study as deniability
from leakscope.core.studies.deniability.study import DeniabilityStudy, measure
from leakscope.core.studies.deniability.tables import markdown, rows_of_table
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.registry import run_study

RESULTS = Path(__file__).parents[1] / "results"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(RESULTS / "deniability.json", "deniability")


def test_the_figures_draw_the_rows(rows: list[Row]) -> None:
    bars = histogram_panels(rows).data
    assert len(bars) == 2 * len(NAMED_ETAS)
    assert all(sum(bar.y) == pytest.approx(100) for bar in bars)
    found = load_vocabulary(SHIPPED / "minilm")
    counts, _ = np.histogram(found.n_w[:, found.at(60)], np.linspace(0, found.n_draws, 26))
    drawn = bars[2 * NAMED_ETAS.index(60.0)]
    assert list(drawn.y) == pytest.approx(list(counts / len(found.tokens) * 100))
    figure = geometry_panel(rows)
    (distances,) = rows_of_table(rows, "distances")
    assert list(figure.data[0].y) == distances["mean_distance"]
    assert [shape.y0 for shape in figure.layout.shapes] == [384 / eta for eta in NAMED_ETAS]


def test_what_the_page_tells_of_the_vocabulary_is_what_ships(minilm: Any, rows: list[Row]) -> None:
    cell = DeniabilityStudy().cells()[-1]
    measured = measure(cell, Path())
    shown = [row for row in rows if row.get("part") == "vocabulary"]
    assert [row.facts for row in measured] == [
        {name: row[name] for name in fresh.facts}
        for row, fresh in zip(shown, measured, strict=True)
    ]
    assert measured[0].scores["n_w"].value == pytest.approx(np.mean(measured[0]["mean_n_w"]))


@pytest.mark.slow
def test_tokens_of_a_corpus_come_back_as_often_as_expected(minilm: Any, tmp_path: Path) -> None:
    texts = [f"The minister of {place} met the doctor by the river." for place in ("Rome", "Bonn")]
    pd.DataFrame({"text": texts, "split": ["dev", "test"]}).to_parquet(tmp_path / "t.parquet")
    study = DeniabilityStudy(corpora=(f"few={tmp_path / 't.parquet'}:split=dev",), n_tokens=2000)
    cell = study.cells()[0]
    found = measure(cell, tmp_path)
    inverted = [row for row in found if row["table"] == "inversion"]
    assert [row["eta"] for row in inverted] == list(NAMED_ETAS)
    assert {row["name"] for row in found} == {"few"}
    assert inverted[0]["n_corpus"] == 11, "of the rows of dev alone, with the full stop"
    shares = [row.scores["token_inversion"] for row in inverted]
    assert shares[0].value < 50 < shares[-1].value and shares[-1].n == 11
    expected = [row.scores["expected"].value for row in inverted]
    assert expected == sorted(expected) and expected[-1] > 85
    matching = [row for row in found if row["table"] == "matching"]
    assert len(matching) == 12 and matching[0]["eta"] < matching[5]["eta"]
    with pytest.raises(InvalidInputError, match="has changed since"):
        measure({**cell, "content": "another"}, tmp_path)


def test_parts_that_failed_are_named_and_the_rest_is_written(
    rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cell: Cell, folder: Path) -> list[Row]:
        if cell["part"] == "sentence":
            raise MemoryError("too much")
        return [replace(row, cell={}) for row in rows if row.get("part") == cell["part"]]

    monkeypatch.setattr(deniability, "measure", fail)
    page = markdown(run_study("deniability", DeniabilityStudy(), tmp_path))
    assert "## Token inversion on corpora" in page and "## A sentence" not in page
    assert "- sentence : MemoryError: too much" in page


@pytest.mark.parametrize(
    ("told", "name", "place", "condition"),
    [
        ("lee", "lee", "lee", ("", "")),
        ("news/bbc.csv#body", "bbc", "news/bbc.csv#body", ("", "")),
        ("dev=a/b.parquet:split=dev", "dev", "a/b.parquet", ("split", "dev")),
        ("brown=nltk:brown", "brown", "nltk:brown", ("", "")),
    ],
)
def test_texts_have_a_name_and_a_place(
    told: str, name: str, place: str, condition: tuple[str, str]
) -> None:
    texts = NamedTexts.of(told)
    assert (texts.name, texts.place, (texts.column, texts.value)) == (name, place, condition)
    assert NamedTexts.of(str(texts)) == texts


@pytest.mark.parametrize("told", ["=a.csv", "a=", "a=b.csv:split=", "a=:split=dev"])
def test_texts_without_a_part_are_told(told: str) -> None:
    with pytest.raises(InvalidInputError, match="NAME=FILE"):
        NamedTexts.of(told)


def test_two_corpora_of_one_name_are_told() -> None:
    with pytest.raises(InvalidInputError, match="Two texts are called 'lee'"):
        DeniabilityStudy(corpora=("lee", "lee=wikipedia")).cells()


def test_files_are_checked_by_column(core: Any, tmp_path: Path) -> None:
    pd.DataFrame({"text": ["one text"], "split": ["dev"]}).to_parquet(tmp_path / "t.parquet")
    given = ["study", "deniability", "--files", tmp_path, "--out", tmp_path / "o.json"]
    assert "'fold'" in core(*given, "--corpora", "t=t.parquet:fold=dev").refusal()
    assert "corpus must be one of" in core(*given, "--corpora", "t=none.parquet").refusal()
