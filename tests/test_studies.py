"""The study of attacks: what a cell is measured on, and that finished cells stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leakscope.core.attacks.inversion import shipped
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.results.rows import ResultTable
from leakscope.core.specs import AttackSpec, settings_of
from leakscope.core.storage.artifacts import write_json
from leakscope.core.studies import domains
from leakscope.core.studies.inversion import attacks
from leakscope.core.studies.inversion.more_texts import RECALLS
from leakscope.core.studies.registry import run_study
from leakscope.core.studies.runner import cell_key
from leakscope.core.text import Vocabulary
from scripts.more_texts import COUNTS


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


@pytest.mark.slow
def test_cells_are_measured_once_and_again_when_the_weights_change(
    study_file: Path,
    weights: Path,
    encoder: TransformerEncoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = attacks.AttackStudy(target=str(study_file), attacks=("prior", "mlc"), n=15)
    rows = run_study("attacks", study, tmp_path)
    assert [(r["attack"], r["auxiliary"]) for r in rows] == [
        ("prior", "cross"),
        ("mlc", "cross"),
        ("prior", "in"),
        ("mlc", "in"),
    ]
    assert {r["n"] for r in rows} <= set(range(1, 16))
    assert rows[0]["n_auxiliary"] is None and rows[2]["n_auxiliary"] > 100
    assert "| mlc | cross-domain |" in attacks.markdown(rows)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(attacks, "evaluate", fail)
    assert run_study("attacks", study, tmp_path) == rows
    monkeypatch.setattr(attacks, "shipped_digest", lambda encoder, name: "other weights")
    again = ResultTable(run_study("attacks", study, tmp_path)).failed
    assert {(row["attack"], row["auxiliary"]) for row in again} == {
        ("prior", "cross"),
        ("mlc", "cross"),
    }
    assert "measured again" in again[0].error


def test_slow_attacks_get_fewer_sentences(
    study_file: Path, weights: Path, encoder: TransformerEncoder
) -> None:
    study = attacks.AttackStudy(target=str(study_file), n=15, n_slow=3, auxiliary=("cross",))
    sizes = {cell["attack"]: cell["n_targets"] for cell in study.cells()}
    assert sizes["msp"] == 15 and sizes["relaxation"] == sizes["staged"] == 3


def test_slow_attacks_get_targets_of_the_whole_list() -> None:
    texts = [f"text {i}" for i in range(500)]
    cell = {"n_drawn": 400, "n_targets": 400, "seed": 0}
    whole = attacks._target_rows(texts, cell)
    few = attacks._target_rows(texts, {**cell, "n_targets": 40})
    assert len(whole) == 400 and whole == sorted(set(whole))
    assert len(few) == 40 and set(few) < set(whole) and few == sorted(few)
    for quarter in range(4):
        assert sum(row // 125 == quarter for row in few) >= 3, "not the first of the list"
    assert few == attacks._target_rows(texts, {**cell, "n_targets": 40})
    other = attacks._target_rows(texts, {**cell, "n_targets": 40, "seed": 1})
    assert set(few) != set(other)


def test_cells_hold_all_that_decides_them(
    study_file: Path, weights: Path, encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = attacks.AttackStudy(target=str(study_file), attacks=("msp", "prior"), seeds=(0, 3))
    cells = {(c["attack"], c["auxiliary"], c["seed"]): c for c in study.cells()}
    inside = cells["msp", "in", 3]["settings"]
    assert inside.keys() == settings_of(INVERSION_ATTACKS["msp"].kind).keys()
    assert (inside["epochs"], inside["hidden"], inside["seed"]) == (4, 16, 3)
    assert cells["msp", "cross", 0]["settings"]["epochs"] == 1, "as it ships"
    before = {name: cell["vocabulary"] for name, cell in cells.items()}
    assert len(set(before.values())) == 1
    monkeypatch.setattr(attacks, "shipped_vocabulary", lambda encoder: Vocabulary(("a",), (1,), 1))
    assert {cell["vocabulary"] for cell in study.cells()}.isdisjoint(before.values())


def test_a_default_that_changes_makes_another_cell(
    study_file: Path, weights: Path, encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = attacks.AttackStudy(target=str(study_file), attacks=("retrieval",), auxiliary=("in",))
    (before,) = study.cells()
    kind = INVERSION_ATTACKS["retrieval"].kind
    whole = attacks.make_attack

    def other(spec: AttackSpec) -> Any:
        made = whole(spec)
        made.n_neighbors += 1
        return made

    assert "n_neighbors" in settings_of(kind)
    monkeypatch.setattr(attacks, "make_attack", other)
    (after,) = study.cells()
    assert cell_key(before) != cell_key(after)


def test_targets_repeat_nothing_that_the_weights_were_trained_on(
    study_file: Path,
    weights: Path,
    encoder: TransformerEncoder,
    tmp_path: Path,
    bundled: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attacks, "shipped_held_out", lambda encoder: frozenset[str]())
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(f"Now {text}" for text in bundled[:400:2]), encoding="utf-8")
    study = attacks.AttackStudy(target=str(study_file), attacks=("prior",), auxiliary=("cross",))
    (without,) = run_study("attacks", study, tmp_path)
    (row,) = run_study("attacks", replace(study, shipped_texts=str(pool)), tmp_path)
    assert row["n_near_duplicates"] >= 15 > without["n_near_duplicates"]
    assert row["n"] <= without["n"] - 15 and row["unit"] == "document"
    assert row["n_documents"] <= row["n"]
    assert f"{row['n']} of {row['n_documents']} documents" in attacks.markdown([row])
    pool.write_text("Something else.", encoding="utf-8")
    domains.content_of.cache_clear()
    with pytest.raises(InvalidInputError, match="has changed since the study"):
        attacks.measure(row.cell, tmp_path)


def test_held_out_texts_that_nearly_repeat_others_are_left_out(
    weights: Path,
    encoder: TransformerEncoder,
    tmp_path: Path,
    bundled: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = bundled[:400:10]
    texts = [*held, *(f"Now {text}" for text in held[:12]), *bundled[5:400:10]]
    path = tmp_path / "pool.parquet"
    pd.DataFrame({"text": texts}).to_parquet(path)
    marks = frozenset(map(shipped.text_mark, held))
    monkeypatch.setattr(attacks, "shipped_held_out", lambda encoder: marks)
    study = attacks.AttackStudy(target=str(path), attacks=("prior",), auxiliary=("held-out",))
    (row,) = run_study("attacks", study, tmp_path)
    assert row["n_near_duplicates"] == 12 and row["n"] <= 28 and row["unit"] == "sentence"
    assert row["unrestricted_f1"]["value"] <= row["token_set_f1"]
    assert row.format("unrestricted_f1") in attacks.markdown([row])
    for count, recall in zip(COUNTS, RECALLS, strict=True):
        n_read = row[count] * row[recall] / 100
        assert not row[count] or n_read == pytest.approx(round(n_read), abs=1e-9)
    assert row["n_rare"]


def test_held_out_cells_take_the_marked_texts_alone(
    study_file: Path,
    weights: Path,
    encoder: TransformerEncoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = attacks.AttackStudy(
        target=str(study_file), attacks=("mlc",), auxiliary=("held-out",), where="kind=a"
    )
    assert "held-out sentences" in run_study("attacks", study, tmp_path)[0].error
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
