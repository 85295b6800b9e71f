"""Slides of η: one scale for all mechanisms, and at the end the η that the rows recommend."""

from __future__ import annotations

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import entry_shown
from leakscope.core.findings.registry import build_view
from leakscope.core.story.shipped import open_story
from leakscope.core.studies.tradeoff.choice import keeps_share, simultaneous_leaks
from leakscope.core.studies.tradeoff.summary import measured_etas, shipped_tradeoff

MECHANISMS = ("text_to_text", "token_representation", "sequence_representation")


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


def test_mechanisms_are_drawn_on_one_scale() -> None:
    figures = [build_view("mechanism", {"defence": name}).figure for name in MECHANISMS]
    assert len({tuple(figure["layout"]["yaxis"]["range"]) for figure in figures if figure}) == 1
