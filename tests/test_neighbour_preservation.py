"""How many texts have the same nearest text behind a defence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.cli.defend import _measure_preserved_neighbours, _print_result
from leakscope.core.defences.trained.neighbour_preservation import preserved_neighbours
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import Interval
from leakscope.core.results import Score


def test_the_share_is_counted_by_hand() -> None:
    angles = np.radians([0.0, 10.0, 25.0, 180.0, 185.0])  # nearest: 1, 0, 1, 4, 3
    plain = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    moved = np.radians([0.0, 20.0, 25.0, 180.0, 185.0])  # nearest: 1, 2, 1, 4, 3
    protected = np.stack([3 * np.cos(moved), 3 * np.sin(moved)], 1).astype(np.float32)
    found = preserved_neighbours(plain, protected)
    assert found.value == pytest.approx(80.0) and (found.n, found.chance) == (5, 25.0)
    assert found.ci95.low <= 80 <= found.ci95.high


def test_vectors_without_sense_keep_as_much_as_guessing() -> None:
    rng = np.random.default_rng(0)
    plain, other = (rng.normal(size=(1000, 30)).astype(np.float32) for _ in range(2))
    found = preserved_neighbours(plain, other)
    assert found.ci95.low <= found.chance < 1, "not told apart from guessing"
    assert preserved_neighbours(plain, plain[:, ::-1]).value == 100


def test_vectors_of_other_texts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="the same three texts or more"):
        preserved_neighbours(np.ones((4, 2), np.float32), np.ones((3, 2), np.float32))


@pytest.mark.parametrize(
    ("low", "more", "said"),
    [
        (0.05, {"weight": 1.0}, "lost their utility. Train with a smaller weight."),
        (0.05, {}, "lost their utility.\nUse it"),
        (40.0, {"weight": 1.0}, "as before (guessing: 0.1 %)\nUse it"),
    ],
)
def test_it_is_told_where_nothing_is_left(
    low: float, more: dict[str, float], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Score(low, Interval(low, low + 1), 1000, 0.1)
    facts = {"encoder": "minilm", "n_texts": 20, "seconds": 1.0, "nearest_kept": kept}
    given = argparse.Namespace(out=Path("d"), json=False, defence="leace")
    _print_result(given, SimpleNamespace(**more), facts)
    assert said in capsys.readouterr().out


def test_texts_that_are_repeated_count_once_and_any_order_will_do() -> None:
    class Lengths:
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[len(text), 20 - len(text)] for text in texts], np.float32)

    encoder = Lengths()
    defence = SimpleNamespace(protect=lambda own: own)
    texts = [letter * n for letter in "ab" for n in range(1, 9)]
    found = _measure_preserved_neighbours(encoder, defence, [*texts, *texts, *texts])
    assert (found.n, found.value) == (16, 100.0)
    again = _measure_preserved_neighbours(encoder, defence, texts[::-1] * 2)
    assert again.n == 16
    few = _measure_preserved_neighbours(encoder, defence, ["a", "b", "a"])
    assert few.n == 0 and np.isnan(few.value), "too few to tell anything"
