"""A study says beforehand how sure its figures can be."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.intervals import bootstrap_interval
from leakscope.core.studies import small_samples
from leakscope.core.studies.small_samples import half_width, measured_spread, notes_on_size


def test_what_is_expected_is_what_the_bootstrap_gives() -> None:
    rng = np.random.default_rng(0)
    widths = [
        bootstrap_interval(rng.normal(50, 18, 60), seed=seed, n_resamples=500) for seed in range(40)
    ]
    halves = [(interval.high - interval.low) / 2 for interval in widths]
    assert np.mean(halves) == pytest.approx(half_width(60, 18), rel=0.05)


def test_the_spread_is_read_from_what_ships(
    tmp_path: Path, small_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 10 < measured_spread() < small_samples.MOST_SPREAD
    (tmp_path / "weights").symlink_to(small_weights)
    monkeypatch.setattr(small_samples, "ASSETS", tmp_path)
    # Its records say [10, 14] of 20: half of it, 2, is 1.96 standard errors.
    assert measured_spread() == pytest.approx(2 / 1.96 * 20**0.5)
    monkeypatch.setattr(small_samples, "ASSETS", tmp_path / "nowhere")
    assert measured_spread() == small_samples.MOST_SPREAD, "where nothing was measured, the most"


def test_few_targets_are_told_with_what_is_to_be_expected() -> None:
    cells: list[dict[str, Any]] = [
        {"attack": "msp", "n_targets": 500},
        {"attack": "relaxation", "n_targets": 50},
        {},
    ]
    (note,) = notes_on_size(cells)
    assert note.startswith("n = 50 texts at most for relaxation")
    assert f"± {half_width(50, measured_spread()):.1f} points" in note
    assert notes_on_size([{"attack": "msp", "n_targets": 500}, {}]) == []


def test_the_command_line_says_it_before_the_study_runs(
    core: Any, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("leakscope.core.cli.study.show_note", said.append)

    def run(*_: Any, **__: Any) -> None:
        assert len(said) == 1
        raise KeyboardInterrupt

    study = shlex.split(
        f"study encoders --target {corpus} --other {corpus} --encoders hashing "
        "--attacks probe --domains in --n-targets 20"
    )
    out = tmp_path / "table.json"
    with monkeypatch.context() as patch:
        patch.setattr("leakscope.core.studies.registry.run_study", run)
        core(*study, "--out", out)
    answer = core(*study, "--out", out, "--json").json()
    assert answer["notes"] == said[1:] and said[0].startswith("n = 20 texts at most: ")
    assert answer["rows"][0]["near"] == 0.25
