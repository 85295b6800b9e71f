from __future__ import annotations

import re
from dataclasses import replace

import pytest

from leakscope.core.figures.names import _INK, _SHADES, name_attackers, name_map
from leakscope.core.intervals import rate_of
from leakscope.core.names.experiment import NOT_TESTABLE, NameAttacker

BACKGROUND = ("#FFFFFF", "#12161B")
"""Of the page, as in dashboard/.streamlit/config.toml."""


def rgb(colour: str) -> tuple[int, ...]:
    if colour.startswith("#"):
        return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return tuple(int(part) for part in re.findall(r"\d+", colour))


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [c / 255 for c in rgb(colour)]
    lin = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]


@pytest.mark.parametrize("is_dark", [False, True])
def test_nothing_read_looks_like_the_page_and_every_number_can_be_read(is_dark: bool) -> None:
    shades, ink = _SHADES[is_dark], luminance(_INK[is_dark])
    assert rgb(shades[0]) == rgb(BACKGROUND[is_dark])
    for shade in shades:
        high, low = max(ink, luminance(shade)), min(ink, luminance(shade))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_name_that_cannot_be_answered_has_no_number_and_is_hatched() -> None:
    cells = [[rate_of(0, 2), rate_of(1, 2), rate_of(0, 2)]]
    figure = name_map(["Quell"], ["Quell", "Orrin", "Lind"], cells, testable=[False, True, True])
    heat, hatched, points = figure.data
    assert list(heat.z[0]) == [None, 50, 0]
    assert list(hatched.x) == [0] and hatched.marker.pattern.shape == "/"
    assert NOT_TESTABLE in points.text[0] and NOT_TESTABLE not in points.text[2]
    assert len(name_map(["Quell"], ["Quell"], [[rate_of(0, 2)]]).data) == 2


def test_an_attacker_that_could_not_be_tested_has_no_bar_of_zero() -> None:
    found = [
        NameAttacker(knows="", rate=replace(rate_of(0, 0), chance=0.0), n_found=0, n_asked=0),
        NameAttacker(knows="alone", rate=replace(rate_of(2, 4), chance=25.0), n_found=2, n_asked=4),
    ]
    tested, hatched, guessing = name_attackers(found).data
    assert list(tested.x) == [50] and "2 of 4" in tested.text[0]
    assert list(hatched.text) == [NOT_TESTABLE] and hatched.marker.pattern.shape == "/"
    assert list(guessing.x) == [25]
