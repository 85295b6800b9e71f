"""Slides of η: one scale for all mechanisms, and at the end the η that the rows recommend."""

from __future__ import annotations

from inspect import signature

import pytest

from core.defences.registry import DEFENCES
from core.registry import imported
from core.story.shipped import open_story
from core.story.views import VIEWS, told
from core.studies.eta_outlook import measured_etas
from core.studies.tradeoff_choice import keeps, simultaneous_leaks
from core.studies.tradeoff_files import shipped_tradeoff
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_told import lost_said

MECHANISMS = ("text_to_text", "token_representation", "sequence_representation")


def test_which_eta_ends_on_the_eta_of_each_mechanism() -> None:
    last = open_story("which-eta").pins[-1]
    slide = told(last.shows, dict(last.parameters))
    found = shipped_tradeoff("minilm")
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
            e for e, p in points.items()
            if keeps(p, base, task, share) and leaks[e].ci95.high < base.leakage.ci95.low
        ]  # fmt: skip
        best = min(fitting, key=lambda e: leaks[e].ci95.high, default=None)
        assert eta == ("none" if best is None else f"{best:g}")
        assert best is None or f"{title} at η {best:g}" in slide.title


@pytest.mark.parametrize("keep", ["50", "80", "90"])
def test_the_title_of_a_mechanism_says_what_the_closing_table_says_of_it(keep: str) -> None:
    table = told("etas", {"task": "TREC", "keep": keep}).table
    assert table is not None
    lines = {title: cells for title, *cells in table.rows}
    for name in MECHANISMS:
        slide = told("mechanism", {"defence": name, "task": "TREC", "keep": keep})
        title, _, said = slide.title.partition(": ")
        less, useful, eta, _odds = lines[title]
        if less == "at no η measured":
            assert said == "no η measured leaks significantly less"
            continue
        assert slide.table is not None
        measured = [row[0] for row in slide.table.rows[:-1]]
        base = shipped_tradeoff("minilm").undefended
        lost = f"lose at most {lost_said(base, 'TREC', int(keep) / 100)}"
        where = "at every η measured" if less == f"up to η {measured[-1]}" else less
        rest = (
            f"and η {eta} is shown to {lost}" if eta != "none"
            else f"but no η measured is shown to {lost}" if useful.startswith("at no")
            else f"but only {useful} on is it shown to {lost}"
        )  # fmt: skip
        assert said == f"{where} significantly less is read, {rest}"


def test_slides_of_a_story_of_eta_ask_for_the_same_usefulness() -> None:
    pins = open_story("which-eta").pins
    defaults = {name: signature(imported(VIEWS[name].path)).parameters["keep"].default
                for name in ("mechanism", "etas")}  # fmt: skip
    asked = {dict(pin.parameters).get("keep", defaults[pin.shows])
             for pin in pins if pin.shows in defaults}  # fmt: skip
    assert len(asked) == 1


def test_mechanisms_are_drawn_on_one_scale() -> None:
    figures = [told("mechanism", {"defence": name}).figure for name in MECHANISMS]
    assert len({tuple(figure["layout"]["yaxis"]["range"]) for figure in figures if figure}) == 1
