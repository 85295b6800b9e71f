"""Slides of η: one scale for all mechanisms, and at the end the η that the rows recommend."""

from __future__ import annotations

from core.defences.registry import DEFENCES
from core.story.shipped import open_story
from core.story.views import told
from core.studies.eta_outlook import measured_etas
from core.studies.tradeoff_choice import keeps
from core.studies.tradeoff_files import shipped_tradeoff
from core.studies.tradeoff_setting import entry_shown


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
        fitting = [
            e for e, p in points.items()
            if keeps(p, base, task, share) and p.leakage.ci95.high < base.leakage.ci95.low
        ]  # fmt: skip
        best = min(fitting, key=lambda e: points[e].leakage.ci95.high, default=None)
        assert eta == ("none" if best is None else f"{best:g}")
        assert best is None or f"{title} at η {best:g}" in slide.title


def test_mechanisms_are_drawn_on_one_scale() -> None:
    figures = [
        told("mechanism", {"defence": name}).figure
        for name in ("text_to_text", "token_representation", "sequence_representation")
    ]
    assert len({tuple(figure["layout"]["yaxis"]["range"]) for figure in figures if figure}) == 1
