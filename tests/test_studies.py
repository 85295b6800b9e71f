"""The study of attacks: what a cell is measured on, and that finished cells stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core.attacks.inversion import shipped
from core.encoders.transformer import TransformerEncoder
from core.store import write_json
from core.studies import attacks
from core.studies.registry import run_study
from core.studies.rows import failures


@pytest.fixture
def study_file(tmp_path: Path, bundled: list[str]) -> Path:
    """Two hundred documents of two sentences and two classes."""
    rows = [
        {"text": f"{bundled[2 * i]} {bundled[2 * i + 1]}", "kind": "ab"[i % 2]} for i in range(200)
    ]
    path = tmp_path / "study.parquet"
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.fixture
def weights(small_weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "WEIGHTS", small_weights)
    return small_weights


@pytest.fixture
def encoder(minilm: TransformerEncoder, monkeypatch: pytest.MonkeyPatch) -> TransformerEncoder:
    monkeypatch.setattr(attacks, "_encoder", lambda precision: minilm)
    return minilm


def test_cells_are_measured_once_and_again_when_the_weights_change(
    study_file: Path, weights: Path, encoder: TransformerEncoder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    study = attacks.AttackStudy(target=str(study_file), attacks=("prior", "mlc"), n=15)
    rows = run_study("attacks", study, tmp_path)
    assert [(r["attack"], r["auxiliary"]) for r in rows] == [
        ("prior", "cross"), ("mlc", "cross"), ("prior", "in"), ("mlc", "in")
    ]  # fmt: skip
    assert {r["n"] for r in rows} <= set(range(1, 16))
    assert rows[0]["n_auxiliary"] is None and rows[2]["n_auxiliary"] > 100
    assert "| mlc | cross-domain |" in attacks.markdown(rows)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(attacks, "evaluate", fail)
    assert run_study("attacks", study, tmp_path) == rows
    monkeypatch.setattr(attacks, "shipped_digest", lambda encoder, name: "other weights")
    again = failures(run_study("attacks", study, tmp_path))
    assert {(row["attack"], row["auxiliary"]) for row in again} == {
        ("prior", "cross"), ("mlc", "cross")
    }  # fmt: skip
    assert "measured again" in again[0].error


def test_slow_attacks_get_fewer_sentences(
    study_file: Path, weights: Path, encoder: TransformerEncoder
) -> None:
    study = attacks.AttackStudy(target=str(study_file), n=15, n_slow=3, auxiliary=("cross",))
    sizes = {cell["attack"]: cell["n_targets"] for cell in study.cells()}
    assert sizes["msp"] == 15 and sizes["relaxation"] == sizes["staged"] == 3


def test_held_out_cells_take_the_marked_texts_alone(
    study_file: Path, weights: Path, encoder: TransformerEncoder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    study = attacks.AttackStudy(
        target=str(study_file), attacks=("mlc",), auxiliary=("held-out",), where="kind=a"
    )
    assert "held out" in run_study("attacks", study, tmp_path)[0].error
    texts = pd.read_parquet(study_file)
    marked = [*texts.text[texts.kind == "a"][:9], *texts.text[texts.kind == "b"][:5]]
    monkeypatch.setattr(
        attacks, "shipped_held_out", lambda encoder: {shipped.text_mark(t) for t in marked}
    )
    (row,) = run_study("attacks", study, tmp_path)
    assert row["n"] == 9, "those of the other class are left out"
    other = attacks.AttackStudy(target=str(study_file), attacks=("mlc",), where="kind=c")
    assert "no class 'c'" in run_study("attacks", other, tmp_path)[0].error


def test_held_out_marks_are_read_from_beside_the_weights(
    tmp_path: Path, minilm: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    write_json(tmp_path / "minilm" / "held_out.json", {"marks": [shipped.text_mark("a text")]})
    assert shipped.text_mark("a text") in shipped.shipped_held_out(minilm)
    assert shipped.text_mark("another") not in shipped.shipped_held_out(minilm)
