"""What a slide claims stands on it with what bounds it: the scale, n, the words that are left out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.story.format import Slide
from core.story.views import told
from core.story.views_read import held_out_records
from core.studies import more_texts, representation_summary
from core.studies.leak_figures import leak_figures
from core.studies.tables import read_rows


def bars(slide: Slide) -> list[tuple[str, float, str]]:
    """Return each bar of a slide: whose it is, how long, and what stands beside it."""
    assert slide.figure is not None
    (bar,) = (trace for trace in slide.figure["data"] if trace["type"] == "bar")
    beside = {each["y"]: each["text"] for each in slide.figure["layout"]["annotations"]}
    return [(y, x, beside[y]) for y, x in zip(bar["y"], bar["x"], strict=True)]


@pytest.mark.parametrize("view", ["shipped", "news"])
def test_a_bar_is_as_long_as_its_label_says(view: str) -> None:
    slide = told(view, {})
    for name, length, label in bars(slide):
        assert re.match(rf"<b>F1 {length:.0f}</b>", label), name
    assert "F1 counts wrong guesses, too" in slide.body
    assert slide.figure is not None
    title = slide.figure["layout"]["xaxis"]["title"]["text"]
    assert title.startswith("F1") and len(title) <= 24, "it has room on a telephone"


def news_rows() -> list[Any]:
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    rows = read_rows(path, more_texts.STUDY)
    return [row for row in rows if (row["encoder"], row["domain"]) == ("minilm", "cross")]


def test_bars_of_fewer_sentences_or_less_taught_attacks_say_so() -> None:
    slide, rows = told("news", {}), news_rows()
    others = dict(slide.facts)["Other bars"]
    labels = [label for _, _, label in bars(slide)]
    for row, label in zip(rows, labels, strict=True):
        n = row.scores["token_set_f1"].n
        assert label.endswith(f", n = {n:,}")
        if f"{n:,} sentences" != dict(slide.facts)["n"]:
            assert f"n = {n:,}" in others
        if f"taught by {row['n_fitted_on']:,}" not in dict(slide.facts)["Cost"]:
            assert f"taught by {row['n_fitted_on']:,}" in others
    assert "n = 50, taught by" in others, "the rows that ship have such bars"


@pytest.mark.parametrize(("view", "page"), [("shipped", "overview"), ("news", "inversion")])
def test_what_is_not_scored_stands_on_the_slide_with_the_f1_of_every_word(
    view: str, page: str
) -> None:
    slide, figure = told(view, {}), leak_figures()[page]
    assert figure.all_words is not None
    assert f"counted as missed, it is **{figure.all_words:.0f}**" in slide.body
    assert "Stop words, and words outside an attack's vocabulary, are not scored" in slide.caveat


def test_an_attack_that_was_trained_once_says_so() -> None:
    seeds = {record["seed"] for record in held_out_records().values()}
    assert len(seeds) == 1
    fact = dict(told("shipped", {}).facts)["Trainings"]
    assert fact.startswith(f"one of each attack (seed {seeds.pop()})")
