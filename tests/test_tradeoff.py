from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.encoders.transformer import TransformerEncoder
from core.errors import InvalidInputError
from core.specs import AttackSpec, DefenceSpec
from core.studies import tradeoff
from core.studies.tradeoff import TradeoffStudy, run
from core.tasks.labelled import LabelledTask, read_labelled
from core.tasks.pairs import PairTask, read_pairs


class ByNumber:
    """Encodes a text that is a number as a vector that says it, or as noise."""

    name, dimension, fingerprint = "number", 3, "n"

    def __init__(self, noise: float = 0.0) -> None:
        self.noise, self.rng = noise, np.random.default_rng(0)

    def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
        vectors = np.array([[np.cos(float(t)), np.sin(float(t)), 0] for t in texts])
        return (vectors + self.noise * self.rng.standard_normal(vectors.shape)).astype(np.float32)


def numbers(n: int) -> tuple[str, ...]:
    return tuple(f"{x:.3f}" for x in np.linspace(0, np.pi, n))


def test_accuracy_is_full_with_the_class_in_the_vector_and_chance_without() -> None:
    texts = numbers(600)
    labels = tuple("left" if float(t) > np.pi / 2 else "right" for t in texts)
    task = LabelledTask("side", texts, labels)
    full = task.score(ByNumber(), n_train=200, n_test=300, seed=0)
    assert full.value > 98 and full.measure == "accuracy" and full.n == 300
    assert full.ci95.low < full.value <= full.ci95.high <= 100
    none = task.score(ByNumber(noise=1e6), n_train=200, n_test=300, seed=0)
    assert none.ci95.low < none.chance + 8 and 48 < none.chance < 60


def test_similarity_is_full_where_cosines_follow_the_scores() -> None:
    texts = numbers(120)
    scores = tuple(-float(t) for t in texts)
    task = PairTask("sts", ("0",) * 120, texts, scores)
    assert task.score(ByNumber(), n_train=0, n_test=100, seed=0).value == pytest.approx(100)
    none = task.score(ByNumber(noise=1e6), n_train=0, n_test=100, seed=0)
    assert none.ci95.low < 0 < none.ci95.high and none.chance == 0


def test_a_constant_vector_has_no_correlation() -> None:
    task = PairTask("sts", ("0",) * 9, ("0",) * 9, tuple(map(float, range(9))))
    assert task.score(ByNumber(), n_train=0, n_test=9, seed=0).value == 0


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs 20 texts of two classes"):
        LabelledTask("t", ("0",) * 5, ("a",) * 5).score(ByNumber(), n_train=10, n_test=10, seed=0)


def test_tasks_are_read_from_files(tmp_path: Path) -> None:
    pd.DataFrame({"text": ["a b", "c d"], "label": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    task = read_labelled("t", tmp_path / "a.parquet")
    assert task.labels == ("0", "1") and task.texts == ("a b", "c d")
    rows = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 5.0],
            "split": ["test", "train"], "lang": ["en", "en"]}  # fmt: skip
    pd.DataFrame(rows).to_parquet(tmp_path / "b.parquet")
    assert read_pairs("s", tmp_path / "b.parquet") == PairTask("s", ("a",), ("c",), (1.0,))
    with pytest.raises(InvalidInputError, match="sentence1"):
        read_pairs("s", tmp_path / "a.parquet")


@pytest.fixture
def study(small_texts: list[str]) -> TradeoffStudy:
    labels = tuple("yes" if "minister" in t.lower() else "no" for t in small_texts)
    return TradeoffStudy(
        tasks=(LabelledTask("minister", tuple(small_texts), labels),),
        auxiliary=tuple(dict.fromkeys(small_texts)),
        defences=(
            DefenceSpec(name="none"),
            DefenceSpec.of("text_to_text", {"eta": 1.0}),
            DefenceSpec.of("gaussian", {"sigma": 100.0}),
        ),
        seeds=(0,),
        n_train=150,
        n_test=100,
        n_auxiliary=250,
        n_targets=80,
        attack=AttackSpec.of(
            "probe_mlc",
            {
                "vocabulary_size": 40,
                "epochs": 12,
                "hidden": 16,
                "substitutions": 0,
                "device": "cpu",
            },
        ),
    )


def test_defences_cost_utility_and_save_words(
    study: TradeoffStudy, tiny_encoder: TransformerEncoder, tmp_path: Path
) -> None:
    rows = run(study, tiny_encoder, tmp_path)
    found = {(row["defence"], row["measure"], row["task"]): row for row in rows}
    leak = {d: found[d, "token_set_f1", "probe_mlc"] for d in ("none", "text_to_text", "gaussian")}
    assert leak["none"]["value"] > leak["none"]["chance"] + 10
    for ruinous in ("text_to_text", "gaussian"):
        assert leak[ruinous]["value"] < leak["none"]["value"] - 10
        # What is left is guessing, within the interval or a little better by luck.
        assert leak[ruinous]["ci95"][0] < leak[ruinous]["chance"] + 3
    useful = {d: found[d, "accuracy", "minister"]["value"] for d in leak}
    assert useful["none"] > useful["gaussian"]
    back = found["text_to_text", "accuracy", "token_inversion"]
    assert back["n"] > 500 and back["value"] < 10
    assert all(row["ci95"][0] <= row["value"] <= row["ci95"][1] for row in rows)


def test_finished_cells_are_not_measured_again(
    study: TradeoffStudy,
    tiny_encoder: TransformerEncoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[str] = []

    def count(study: object, encoder: object, spec: DefenceSpec, seed: int) -> list[dict]:
        if spec.name == "gaussian" and len(measured) == 2:
            measured.append("killed")
            raise KeyboardInterrupt
        measured.append(spec.name)
        return [{"defence": spec.name}]

    monkeypatch.setattr(tradeoff, "_measure", count)
    with pytest.raises(KeyboardInterrupt):
        run(study, tiny_encoder, tmp_path)
    rows = run(study, tiny_encoder, tmp_path)
    assert measured == ["none", "text_to_text", "killed", "gaussian"]
    assert [row["defence"] for row in rows] == ["none", "text_to_text", "gaussian"]
