"""The study of deniability: its page, its figures, and what a cell of it measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.defences.deniability.vocabulary import SHIPPED, load_vocabulary
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.eta_grid import NAMED_ETAS
from leakscope.core.defences.metric_dp.replacement_ranks import ReplacementRanks, bundled_tokens
from leakscope.core.errors import InvalidInputError
from leakscope.core.figures.deniability import geometry_panel, histogram_panels
from leakscope.core.intervals import percent_interval, wilson_interval
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability import replacements
from leakscope.core.studies.deniability import study as deniability
from leakscope.core.studies.deniability.replacements import (
    CLASSES,
    ReplacementStudy,
)
from leakscope.core.studies.deniability.study import (
    DeniabilityStudy,
    markdown,
    measure,
    rows_of_table,
)
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


@pytest.fixture(scope="module")
def replaced(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    asked = ReplacementStudy(
        defences=("santext:epsilon=0.01", "santext:epsilon=500", "custext:epsilon=2,k=8"),
        encoder=f"mlm:{tiny_bert}",
        n_texts=30,
    )
    folder = tmp_path_factory.mktemp("cells")
    return [
        Row(cell, row.scores, row.facts)
        for cell in asked.cells()
        for row in replacements.measure(cell, folder)
    ]


def test_classes_are_shares_of_all_tokens_beside_what_an_even_draw_gives(
    replaced: list[Row],
) -> None:
    for row in replaced:
        scores = [row.scores[name] for name in CLASSES]
        assert sum(score.value for score in scores) == pytest.approx(100)
        assert sum(score.chance for score in scores) == pytest.approx(100)
        assert scores[0].chance == pytest.approx(100 / row["n_candidates"])
        assert scores[1].chance == pytest.approx(1000 / row["n_candidates"])
        assert all(score.n == scores[0].n > 100 for score in scores)


def test_a_great_epsilon_returns_the_token_and_a_small_one_any(
    replaced: list[Row], tiny_encoder: Any
) -> None:
    ids, _ = bundled_tokens(tiny_encoder, 30)
    could = 100 * float(np.isin(ids, candidate_ids(tiny_encoder, "regular")).mean())
    any_of_them, own, of_eight = (row.scores["0"] for row in replaced)
    assert 5 < could < 100, "some are [UNK], which never comes out"
    assert own.value == pytest.approx(could)
    assert any_of_them.value < could / 4 and any_of_them.value < of_eight.value < could


def test_intervals_are_over_sentences_and_not_over_tokens(
    replaced: list[Row], tiny_encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all tokens of every other sentence come back, there are as many trials as sentences."""
    ids, texts = bundled_tokens(tiny_encoder, 30)
    assert len(ids) == replaced[0].scores["0"].n and set(texts.tolist()) == set(range(30))

    def every_other(distances: Any, original: Any, replaced: Any) -> Any:
        return ReplacementRanks(5000 * (texts % 2), len(distances.ids))

    monkeypatch.setattr(replacements, "replacement_ranks", every_other)
    (row,) = replacements.measure(replaced[0].cell, Path())
    found, n_back = row.scores["0"], int((texts % 2 == 0).sum())
    naive = wilson_interval(n_back, len(ids))
    assert found.value == pytest.approx(100 * n_back / len(ids))
    assert found.ci95.high - found.ci95.low > 3 * (naive.high - naive.low)
    held = 100.0 * (texts % 2 == 0)
    assert found.ci95 == percent_interval(held, groups=texts.tolist(), seed=0)


def test_where_no_token_is_of_a_class_its_share_may_be_above_none() -> None:
    held, groups = np.zeros(600, np.bool_), [i // 20 for i in range(600)]
    assert replacements._interval(held, groups, 0) == wilson_interval(0, 30)
    assert replacements._interval(~held, groups, 0) == wilson_interval(30, 30)
    held[:9] = True
    assert replacements._interval(held, groups, 0).high > 1.5
