"""What a slide claims stands on it with what bounds it: scale, n, and what is left out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import entry_shown
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.registry import build_view
from leakscope.core.results.tables import read_rows
from leakscope.core.story.shipped import open_story
from leakscope.core.studies.inversion import more_texts, representation_summary
from leakscope.core.studies.leak_figures import leak_figures
from leakscope.core.studies.tradeoff.choice import (
    LEAKS_LEAST,
    NAMES_NOT_TESTED,
    choose,
    describe_list_attack,
    keeps_share,
    simultaneous_leaks,
)
from leakscope.core.studies.tradeoff.summary import measured_etas, shipped_tradeoff
from leakscope.core.tasks.names import describe_task

MECHANISMS = ("text_to_text", "token_representation", "sequence_representation")


def bars(slide: Finding) -> list[tuple[str, float, str]]:
    """Return each bar of a slide: whose it is, how long, and what stands beside it."""
    assert slide.figure is not None
    (bar,) = (trace for trace in slide.figure["data"] if trace["type"] == "bar")
    beside = {each["y"]: each["text"] for each in slide.figure["layout"]["annotations"]}
    return [(y, x, beside[y]) for y, x in zip(bar["y"], bar["x"], strict=True)]


@pytest.mark.parametrize("view", ["shipped", "news"])
def test_a_bar_is_as_long_as_its_label_says(view: str) -> None:
    slide = build_view(view, {})
    for name, length, label in bars(slide):
        assert re.match(rf"<b>F1 {length:.0f}</b>", label), name
    assert "F1 also counts wrong answers" in slide.body
    assert slide.figure is not None
    title = slide.figure["layout"]["xaxis"]["title"]["text"]
    assert title.startswith("F1") and len(title) <= 24, "it has room on a telephone"


def news_rows() -> list[Any]:
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    rows = read_rows(path, more_texts.STUDY)
    return [row for row in rows if (row["encoder"], row["domain"]) == ("minilm", "cross")]


def test_bars_of_fewer_sentences_or_less_taught_attacks_say_so() -> None:
    slide, rows = build_view("news", {}), news_rows()
    others = dict(slide.facts)["Other bars"]
    labels = [label for _, _, label in bars(slide)]
    for row, label in zip(rows, labels, strict=True):
        n = row.scores["token_set_f1"].n
        assert label.endswith(f", n = {n:,}")
        if f"{n:,} sentences" != dict(slide.facts)["n"]:
            assert f"n = {n:,}" in others
        if f"trained on {row['n_fitted_on']:,}" not in dict(slide.facts)["Cost"]:
            assert f"trained on {row['n_fitted_on']:,}" in others
    assert "n = 50, trained on" in others, "the rows that ship have such bars"


@pytest.mark.parametrize(("view", "page"), [("shipped", "overview"), ("news", "inversion")])
def test_what_is_not_scored_stands_on_the_slide_with_the_f1_of_every_word(
    view: str, page: str
) -> None:
    slide, figure = build_view(view, {}), leak_figures()[page]
    assert figure.all_words is not None
    assert f"count as missed, the F1 is **{figure.all_words:.0f}**" in slide.body
    assert "Stop words and words outside an attack's vocabulary are not scored" in slide.caveat


def test_where_no_defence_helps_the_headline_names_none_and_gives_both_figures() -> None:
    found = shipped_tradeoff()
    choices = {task: choose(found, task, 0.9) for task in found.tasks}
    task, choice = next((t, c) for t, c in choices.items() if c.best is not None and not c.helps)
    assert choice.best is not None
    slide = build_view("defences", {"task": task, "keep": "90"})
    own, none = (choice.leak(point).value for point in (choice.best, choice.base))
    assert slide.title.startswith(
        f"For {describe_task(task)}, no defence shown to keep 90 % of the advantage over guessing "
        "leaks significantly less"
    )
    assert f"at best F1 {own:.0f}, without a defence F1 {none:.0f}" in slide.title
    assert not any(least in slide.title for least in ("leaks least", *LEAKS_LEAST.values()))
    assert "best setting" not in slide.body
    assert marks(slide) == []


def test_what_a_list_finds_is_told_where_it_was_measured_and_else_that_it_was_not() -> None:
    points = shipped_tradeoff().points
    told = {point.defence: describe_list_attack("minilm", point) for point in points}
    assert "of names" in told["truncation"] and "guessing finds 2.5 %" in told["truncation"]
    assert told["text_to_text"] == NAMES_NOT_TESTED
    assert {describe_list_attack("elsewhere", point) for point in points} == {NAMES_NOT_TESTED}


def marks(slide: Finding) -> list[str]:
    assert slide.figure is not None
    texts = [text for trace in slide.figure["data"] for text in trace.get("text") or ()]
    return [text for text in texts if text.startswith("<b>")]


def test_mechanisms_have_one_scale_of_usefulness_which_holds_every_interval() -> None:
    found = shipped_tradeoff()
    figures = [build_view("mechanism", {"defence": name}).figure for name in MECHANISMS]
    ((low, high),) = {tuple(figure["layout"]["xaxis"]["range"]) for figure in figures if figure}
    assert len({tuple(figure["layout"]["yaxis"]["range"]) for figure in figures if figure}) == 1
    points = [p for name in MECHANISMS for p in measured_etas(found, name).values()]
    for score in (p.utility["TREC"] for p in (*points, found.undefended)):
        assert low < score.ci95.low and score.ci95.high < high
    assert low < found.undefended.utility["TREC"].chance - 4, "its label keeps off the axis"


def test_which_eta_ends_on_the_eta_of_each_mechanism() -> None:
    last = open_story("which-eta").pins[-1]
    slide = build_view(last.shows, dict(last.parameters))
    found = shipped_tradeoff()
    base, task = found.undefended, dict(last.parameters)["task"]
    share = int(dict(last.parameters)["keep"]) / 100
    mechanisms = [n for n, entry in DEFENCES.items() if len(measured_etas(found, n)) > 1]
    assert slide.table is not None and len(slide.table.rows) == len(mechanisms) >= 3
    for title, *_, eta, _odds in slide.table.rows:
        points = next(
            etas
            for name in mechanisms
            if entry_shown(name).title == title and (etas := measured_etas(found, name))
        )
        points = {e: p for e, p in points.items() if task in p.utility}
        leaks = dict(zip(points, simultaneous_leaks(list(points.values())), strict=True))
        fitting = [
            e
            for e, p in points.items()
            if keeps_share(p, base, task, share) and leaks[e].ci95.high < base.leakage.ci95.low
        ]
        best = min(fitting, key=lambda e: leaks[e].ci95.high, default=None)
        assert eta == ("none" if best is None else f"{best:g}")
        assert best is None or f"{title} at η {best:g}" in slide.title
