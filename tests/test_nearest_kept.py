"""How many texts have the same nearest text behind a defence."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from core.cli.defend import _show
from core.defences.trained.nearest_kept import nearest_kept
from core.errors import InvalidInputError
from core.intervals import Interval
from core.results import Score


def test_the_share_is_counted_by_hand() -> None:
    angles = np.radians([0.0, 10.0, 25.0, 180.0, 185.0])  # nearest: 1, 0, 1, 4, 3
    plain = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    moved = np.radians([0.0, 20.0, 25.0, 180.0, 185.0])  # nearest: 1, 2, 1, 4, 3
    protected = np.stack([3 * np.cos(moved), 3 * np.sin(moved)], 1).astype(np.float32)
    found = nearest_kept(plain, protected)
    assert found.value == pytest.approx(80.0) and (found.n, found.chance) == (5, 25.0)
    assert found.ci95.low <= 80 <= found.ci95.high


def test_vectors_without_sense_keep_as_much_as_guessing() -> None:
    rng = np.random.default_rng(0)
    plain, other = (rng.normal(size=(1000, 30)).astype(np.float32) for _ in range(2))
    found = nearest_kept(plain, other)
    assert found.ci95.low <= found.chance < 1, "not told apart from guessing"
    assert nearest_kept(plain, plain[:, ::-1]).value == 100


def test_vectors_of_other_texts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="the same three texts or more"):
        nearest_kept(np.ones((4, 2), np.float32), np.ones((3, 2), np.float32))


@pytest.mark.parametrize(("low", "is_gone"), [(0.05, True), (40.0, False)])
def test_it_is_told_where_nothing_is_left(
    low: float, is_gone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Score(low, Interval(low, low + 1), 1000, 0.1)
    facts = {"encoder": "minilm", "n_texts": 20, "seconds": 1.0, "nearest_kept": kept}
    _show(argparse.Namespace(out=Path("d"), json=False, defence="leace"), SimpleNamespace(), facts)
    told = capsys.readouterr().out
    assert "have the same nearest text as before (guessing 0.1 %)" in told
    assert ("is gone. Train with a smaller weight" in told) is is_gone
