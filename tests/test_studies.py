"""The studies: what a cell is measured on, that finished cells stay, and what the curve says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core.attacks.inversion import shipped
from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError, InvalidInputError
from core.specs import AttackSpec
from core.store import write_json
from core.studies import inversion, learning


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


def test_cells_are_measured_once_and_again_when_the_weights_change(
    study_file: Path, weights: Path, minilm: TransformerEncoder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    study = inversion.InversionStudy(
        target=study_file, attacks=("prior", "mlc"), auxiliary=("cross", "in"), n=15
    )
    rows = inversion.run(study, minilm, tmp_path / "cells")
    assert [(r["attack"], r["auxiliary"]) for r in rows] == [
        ("prior", "cross"), ("mlc", "cross"), ("prior", "in"), ("mlc", "in")
    ]  # fmt: skip
    assert {r["n"] for r in rows} <= set(range(1, 16))
    assert rows[0]["n_auxiliary"] is None and rows[2]["n_auxiliary"] > 100
    assert "| mlc | cross-domain |" in inversion.markdown(rows)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(inversion, "evaluate", fail)
    assert inversion.run(study, minilm, tmp_path / "cells") == rows
    monkeypatch.setattr(inversion, "shipped_digest", lambda encoder, name: "other weights")
    with pytest.raises(AssertionError, match="measured again"):
        inversion.run(study, minilm, tmp_path / "cells")


def test_held_out_cells_take_the_marked_texts_alone(
    study_file: Path, weights: Path, minilm: TransformerEncoder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    study = inversion.InversionStudy(
        target=study_file, attacks=("mlc",), auxiliary=("held-out",), where="kind=a"
    )
    with pytest.raises(ArtifactError, match="held out"):
        inversion.run(study, minilm, tmp_path / "cells")
    texts = pd.read_parquet(study_file)
    marked = [*texts.text[texts.kind == "a"][:9], *texts.text[texts.kind == "b"][:5]]
    monkeypatch.setattr(
        inversion, "shipped_held_out", lambda encoder: {shipped.text_mark(t) for t in marked}
    )
    (row,) = inversion.run(study, minilm, tmp_path / "cells")
    assert row["n"] == 9, "those of the other class are left out"
    with pytest.raises(InvalidInputError, match="no class 'c'"):
        inversion.run(
            inversion.InversionStudy(target=study_file, where="kind=c"), minilm, tmp_path / "cells"
        )


def test_held_out_marks_are_read_from_beside_the_weights(
    tmp_path: Path, minilm: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    write_json(tmp_path / "minilm" / "held_out.json", {"marks": [shipped.text_mark("a text")]})
    assert shipped.text_mark("a text") in shipped.shipped_held_out(minilm)
    assert shipped.text_mark("another") not in shipped.shipped_held_out(minilm)


def test_the_learning_curve_rises_on_the_same_targets_and_resumes(
    bundled: list[str], minilm: TransformerEncoder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    spec = AttackSpec.of("probe_mlc", {"epochs": 2, "hidden": 16, "blocks": 0, "substitutions": 0,
                                       "vocabulary_size": 500})  # fmt: skip
    texts, held = bundled[:400], bundled[-40:]
    result = learning.run(spec, minilm, texts, {"news": held}, [50, 400], folder=tmp_path)
    small, large = result["rows"]
    assert (small["n_auxiliary"], large["n_auxiliary"]) == (50, 400)
    assert small["n"] == large["n"] and small["prior_f1"] == large["prior_f1"]
    assert large["token_set_f1"] > small["token_set_f1"]
    assert result["gains"]["news"] == pytest.approx(
        (large["token_set_f1"] - small["token_set_f1"]) / 3, abs=1e-3
    )
    monkeypatch.setattr(learning, "make_attack", lambda spec: pytest.fail("trained again"))
    assert learning.run(spec, minilm, texts, {"news": held}, [50, 400], folder=tmp_path) == result
    assert "| 400 | news |" in learning.markdown(result)
    figure = learning.learning_figure(result)
    assert list(figure.data[0].x) == [50, 400] and figure.layout.xaxis.type == "log"
