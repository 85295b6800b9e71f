from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_reading import READING

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import TokenScores
from core.figures.inversion import scores_beside_prior, shipped_scores, vector_strip
from core.figures.inversion import word_scores as plot_words
from core.figures.style import LEAKED, MISSED, attack_look
from core.results import Interval, RecoveredWord, Recovery, Score

COLOURS = {
    "prior": "#8A8F96",
    "retrieval": "#56B4E9",
    "probe": "#CC79A7",
    "mlc": "#0072B2",
    "msp": "#E69F00",
    "relaxation": "#B5A900",
    "staged": "#B5A900",
    "sparse": "#7A5FA8",
    "probe_mlc": "#CC79A7",
    "search": "#CC79A7",
    "reconstruct": "#D55E00",
}
"""Who has seen a page before knows an attack by its colour."""


def test_every_attack_has_a_look_of_its_own() -> None:
    looks = {name: attack_look(name) for name in INVERSION_ATTACKS}
    assert len(set(looks.values())) == len({look.symbol for look in looks.values()}) == len(looks)
    assert all(entry.colour and entry.symbol for entry in INVERSION_ATTACKS.values())
    assert {name: look.colour for name, look in looks.items()} == COLOURS


def test_bars_tell_hits_from_errors_by_colour_and_shape() -> None:
    nearly = RecoveredWord("said", 0.25)
    recovery = replace(READING.recovery, runners_up=(RecoveredWord("other", 0.3), nearly))
    hit, wrong, close = plot_words(replace(READING, recovery=recovery)).data
    assert (list(hit.y), list(hit.x), hit.marker.color) == (["minister ●"], [0.75], LEAKED)
    assert (list(wrong.y), list(wrong.x)) == (["-1+1 ✕"], [0.5])
    assert wrong.marker.pattern.shape == "/"
    assert (list(close.y), close.marker.line.color) == (["said ○"], MISSED)


def test_bars_keep_the_order_of_the_attack() -> None:
    words = tuple(RecoveredWord(w, s) for w, s in (("wrong", 0.2), ("minister", 0.9)))
    figure = plot_words(replace(READING, recovery=Recovery(words)))
    assert list(figure.layout.yaxis.categoryarray)[::-1] == ["wrong ✕", "minister ●"]


def test_words_are_no_markup_in_a_figure() -> None:
    words = (RecoveredWord("<b>x</b>", 0.5),)
    figure = plot_words(replace(READING, hits=(), recovery=Recovery(words)))
    assert list(figure.data[1].y) == ["&lt;b&gt;x&lt;/b&gt; ✕"]


def test_the_comparison_shows_what_it_is_given() -> None:
    other = replace(READING, attack="search", scores=TokenScores(precision=80, recall=60, f1=68.6))
    figure = scores_beside_prior([READING, other])
    by_name = {trace.name: trace for trace in figure.data if trace.name}
    assert list(by_name["F1"].x) == [50, 68.6]
    assert list(by_name["precision"].x) == [50, 80]
    assert list(by_name["recall"].x) == [50, 60]
    assert list(by_name["F1 of guessing alone"].x) == [0, 0]
    assert list(by_name["F1"].marker.symbol) == ["pentagon", "star"]


def test_shipped_scores_draw_their_intervals() -> None:
    bar = shipped_scores({"msp": Score(40.0, Interval(38.0, 43.0), 100, 6.0)}).data[0]
    assert list(bar.x) == [40.0]
    assert list(bar.error_x.array) == [3.0] and list(bar.error_x.arrayminus) == [2.0]


@pytest.mark.parametrize("n", [384, 10, 1])
def test_the_strip_holds_every_number_once(n: int) -> None:
    vector = np.arange(1, n + 1, dtype=np.float32)
    cells = np.asarray(vector_strip(vector[None]).data[0].z)
    assert cells.shape[0] == 4
    assert np.array_equal(cells.ravel()[:n], vector)
    assert np.isnan(cells.ravel()[n:]).all()


def test_a_vector_of_zeros_can_be_drawn() -> None:
    assert vector_strip(np.zeros((1, 8), np.float32)).data[0].zmax == 1.0


@pytest.mark.parametrize(
    "figure",
    [plot_words(READING), scores_beside_prior([READING]), vector_strip(np.ones((1, 8)))],
    ids=["words", "comparison", "strip"],
)
def test_figures_fit_both_themes_and_never_trap_a_finger(figure) -> None:
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.dragmode is False
    assert figure.layout.xaxis.fixedrange and figure.layout.yaxis.fixedrange
    assert figure.layout.font.color is None
