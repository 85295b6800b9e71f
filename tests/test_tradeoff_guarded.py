"""Mistakes that are planted in the parts of the trade-off are found, and what is finished holds.

Each check of what is right stands beside the same check of what is wrong, so that it can fail.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tradeoff_scene
from tradeoff_scene import encoder_of, last_cells

from leakscope.core.defences.registry import make_defence
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder
from leakscope.core.results.rows import Row
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import read_json
from leakscope.core.studies.registry import run_study
from leakscope.core.studies.tradeoff import attack as tradeoff_attack
from leakscope.core.studies.tradeoff import guards as tradeoff_guards
from leakscope.core.studies.tradeoff.guards import Guard
from leakscope.core.studies.tradeoff.study import TradeoffStudy, measure

SIGMA = 0.25
PARTS = ["attack", "use", "attribute", "membership"]

files, study = tradeoff_scene.files, tradeoff_scene.study


class Watched:
    """An encoder, and what it was asked and gave."""

    def __init__(self, encoder: Encoder, seen: list[tuple[Sequence[str], Any]]) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint, self._encoder, self._seen = encoder.fingerprint, encoder, seen

    def encode(self, texts: Sequence[str], *more: Any) -> Any:
        vectors = self._encoder.encode(texts, *more)
        self._seen.append((list(texts), vectors))
        return vectors


# Noise of the scale that is said


def noise_in(study: TradeoffStudy, part: str, folder: Path) -> float:
    """Return the standard deviation of the noise in all that a part learns from and is tested on.

    Of words: in the vectors under attack.
    """
    if part == "membership":
        pytest.importorskip("opacus")
    seen: list[tuple[Sequence[str], Any]] = []
    over, evaluate = Guard.over, tradeoff_attack.evaluate

    def attacked(attack: Any, encoder: Any, texts: Any, **more: Any) -> Any:
        seen.append((list(texts), more["vectors"]))
        return evaluate(attack, encoder, texts, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Guard, "over", lambda guard, encoder: Watched(over(guard, encoder), seen))
        patch.setattr(tradeoff_attack, "evaluate", attacked)
        cell = last_cells(replace(study, defences=(f"gaussian:sigma={SIGMA}",)))[part]
        measure(cell, folder)
    encoder = encoder_of(study)
    assert sum(len(texts) for texts, _ in seen) >= 40
    parts = [vectors - encoder.encode(texts) for texts, vectors in seen]
    return float(np.concatenate(parts).std())


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_noise_of_the_scale_that_is_said_is_in_all_that_a_part_sees(
    study: TradeoffStudy, part: str, tmp_path: Path
) -> None:
    # At least 40 vectors of 32 numbers: a standard error of two per cent.
    assert noise_in(study, part, tmp_path) == pytest.approx(SIGMA, rel=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["attack", "use", "attribute"])
@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0])
def test_noise_of_another_scale_is_found(
    study: TradeoffStudy, part: str, scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = make_defence(DefenceSpec.of("gaussian", {"sigma": SIGMA * scale or 1e-6, "seed": 1}))
    monkeypatch.setattr(Guard, "defence", property(lambda guard: wrong))
    assert noise_in(study, part, tmp_path) != pytest.approx(SIGMA, rel=0.08)


# Attackers and users who learn behind the defence


class Untaught:
    """A planted mistake: what is learnt from is encoded without the defence, all else with it."""

    def __init__(self, plain: Encoder, protected: Encoder, learnt: Callable[[int], slice]) -> None:
        self.name, self.dimension = protected.name, protected.dimension
        self.fingerprint = f"{protected.fingerprint[:-1]}!"
        self._plain, self._protected, self._learnt = plain, protected, learnt

    def encode(self, texts: Sequence[str], *more: Any) -> Any:
        vectors = np.array(self._protected.encode(texts))
        rows = self._learnt(len(texts))
        vectors[rows] = self._plain.encode(texts)[rows]
        return vectors


LEARNT: dict[str, Callable[[int], slice]] = {
    "attribute": lambda n: slice(0, n if n > 40 else 0),  # known texts in one call, targets in one
    "use": lambda n: slice(0, 160),  # those to train on first, then forty
}


def told_right(study: TradeoffStudy, part: str, folder: Path) -> float:
    """Return the accuracy behind a rotation, which hides nothing from those who know it."""
    asked = replace(study, defences=("random_projection:dimension=32",))
    (row,) = measure(last_cells(asked)[part], folder)
    name = "attribute_top1: linear" if part == "attribute" else "accuracy: first"
    return row.scores[name].value


@pytest.mark.slow
@pytest.mark.parametrize("part", LEARNT)
def test_who_learns_behind_the_defence_is_told_from_who_did_not(
    study: TradeoffStudy, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told_right(study, part, tmp_path) > 90
    over = Guard.over
    monkeypatch.setattr(
        Guard, "over", lambda guard, encoder: Untaught(encoder, over(guard, encoder), LEARNT[part])
    )
    assert told_right(study, part, tmp_path) < 85, "else the check could not fail"


@pytest.mark.slow
def test_a_split_that_overlaps_is_refused_and_nothing_of_it_is_scored(
    study: TradeoffStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parted = tradeoff_guards.part_texts

    def overlapping(*given: Any) -> Any:
        sides = parted(*given)
        return replace(sides, targets=(*sides.targets[:-1], sides.known[0]))

    monkeypatch.setattr(tradeoff_guards, "part_texts", overlapping)
    rows = run_study("tradeoff", replace(study, defences=("none", "leace")), tmp_path)
    wrong = {(row["defence"], row["part"]): row for row in rows if row.error}
    # LEACE is trained apart from all that any part attacks: none of its parts is measured.
    assert {*wrong} == {("none", "attribute"), *(("leace", part) for part in PARTS)}
    assert all("trained on and attacked" in row.error for row in wrong.values())
    assert not any(row.scores for row in wrong.values())


# Finished, with all of it, and sealed


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": lambda path: path.write_bytes(path.read_bytes().replace(b"0", b"1", 3)),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
}


def scores(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what was measured, without what a clock says."""
    assert [row.error for row in rows if row.error] == []
    return [{name: score.to_dict() for name, score in row.scores.items()} for row in rows]


@pytest.mark.slow
def test_of_a_trained_defence_every_part_and_the_defence_are_made_again_where_damaged(
    study: TradeoffStudy, tmp_path: Path
) -> None:
    pytest.importorskip("opacus")
    asked, folder = replace(study, defences=("leace",)), tmp_path / "study"
    before = scores(run_study("tradeoff", asked, folder))
    cells = sorted((folder / "cells").glob("*.json"))
    assert len(cells) == len(before) == 4
    for path, (how, damage) in zip(cells, cycle(DAMAGES.items()), strict=False):
        damage(path)
        if how != "deleted":
            with pytest.raises(ArtifactError, match="this cell alone is measured again") as told:
                run_study("tradeoff", asked, folder)
            assert str(path) in str(told.value)
            path.rename(tmp_path / "aside.json")
        assert scores(run_study("tradeoff", asked, folder)) == before, path
    kept = [path for path in (folder / "defences").rglob("model*") if path.is_file()]
    assert len(kept) >= 2, "the defence is one artefact"
    (use,) = [path for path in cells if '"part": "use"' in path.read_text()]
    (record,) = (path for path in kept if path.name == "model.json")
    (weights,) = (path for path in kept if path.suffix == ".safetensors")
    for path, content in ((record, ""), (record, "{"), (weights, None), (record, None)):
        whole = path.read_bytes()
        DAMAGES["cut in half"](path) if content is None else path.write_text(content)
        use.unlink()  # which reads the defence again
        found = run_study("tradeoff", asked, folder)
        assert scores(found) == before, path
        assert path.read_bytes()[-64:] == whole[-64:] or path == record
        (n_texts,) = {row["n_defence_texts"] for row in found if row.get("n_defence_texts")}
        assert read_json(record)["training"]["n_texts"] == n_texts
    shutil.rmtree(folder / "defences")
    use.unlink()
    assert scores(run_study("tradeoff", asked, folder)) == before
