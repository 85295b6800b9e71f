"""A classifier trained with differential privacy from the command line, and what is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ArtifactError
from leakscope.core.training.accounting import delta_warning, epsilon_spent

pytest.importorskip("opacus")
pytest.importorskip("dp_accounting")

N = 120


@pytest.fixture
def given(tmp_path: Path, tiny_bert: Path, small_texts: list[str]) -> list[object]:
    path = tmp_path / "texts.csv"
    lines = [f"{text} {i},{'ab'[i % 2]}" for i, text in enumerate(small_texts[:N])]
    path.write_text("\n".join(["text,mood", *lines]) + "\n", encoding="utf-8")
    return shlex.split(
        f"train-private --encoder mlm:{tiny_bert} --texts {path} --label-column mood "
        f"--out {tmp_path / 'out'} --set steps=10"
    )


@pytest.mark.slow
def test_a_classifier_is_trained_and_both_accountants_are_told(
    core: Any, given: list[object], tiny_bert: Path, tmp_path: Path
) -> None:
    from leakscope.core.defences.trained.private import load_training

    out = tmp_path / "out"
    told = core(*given, "--epsilon", "2", "--json").json()
    assert 1.9 < told["epsilon_opacus"] <= 2 == told["epsilon"] and told["delta"] == 1e-5
    assert told["epsilon_dp_accounting"] == pytest.approx(told["epsilon_opacus"], rel=0.01)
    assert told["epsilon_tight"] < told["epsilon_opacus"] and told["n_texts"] == N
    made = load_training(out)
    spent = made.privacy_
    steps = [(spent.noise_multiplier, spent.sample_rate, spent.n_steps)]
    assert epsilon_spent(steps) == told["epsilon_opacus"]
    answers = made.answer(load_encoder(f"mlm:{tiny_bert}"), ["a text", "another"])
    assert answers.shape == (2, len(told["classes"])) and np.allclose(answers.sum(1), 1)
    names = sorted(path.name for path in out.rglob("*"))
    assert names[1] == "model.json" and len(names) == 2, "neither checkpoint nor seed is left"
    assert set(json.loads((out / "model.json").read_text())) == {
        "kind",
        "settings",
        "training",
        "state",
        "format",
        "arrays_file",
        "arrays_sha256",
    }
    assert "would spend ε twice. Choose another folder" in core(*given).refusal()


@pytest.mark.slow
def test_what_is_said_names_both_packages(core: Any, given: list[object]) -> None:
    said = core(*given).out
    assert "by opacus" in said and "by dp-accounting, δ = 1e-05" in said
    assert "load_training" in said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--epsilon", "0", "epsilon must lie between 0.01 and 1000"),
        ("--epsilon", "nan", "epsilon must lie between 0.01 and 1000"),
        ("--delta", "-1e-5", "delta must lie between 0 and 1/n"),
        ("--delta", str(1 / N), "delta must lie between 0 and 1/n"),
        ("--epsilon", "much", "invalid float value"),
        ("--set", "epsilon=2", "Give epsilon with --epsilon"),
        ("--set", "delta=1e-6", "Give delta with --delta"),
        ("--set", "steps=0", "steps must lie in"),
        ("--limit", "1", "--limit must be at least 2"),
        ("--limit", "5", "at least 20 texts"),
    ],
)
def test_what_promises_nothing_is_refused_with_a_remedy(
    core: Any, given: list[object], tmp_path: Path, option: str, value: str, said: str
) -> None:
    assert said in core(*given, f"{option}={value}").refusal()
    assert not (tmp_path / "out").exists()


def test_a_column_of_classes_is_asked_for(core: Any, given: list[object]) -> None:
    at = given.index("--label-column")
    assert "--label-column NAME" in core(*given[:at], *given[at + 2 :]).refusal()


def test_what_is_no_such_classifier_is_refused(tmp_path: Path) -> None:
    from leakscope.core.defences.trained.private import load_training
    from leakscope.core.storage.artifacts import save_artifact

    with pytest.raises(ArtifactError, match="does not exist"):
        load_training(tmp_path)
    save_artifact(tmp_path, {"x": np.zeros(2)}, {"kind": "defence"})
    with pytest.raises(ArtifactError, match="does not contain a private classifier"):
        load_training(tmp_path)


@pytest.mark.slow
def test_the_unit_of_epsilon_is_named_and_that_of_a_person_is_told(
    core: Any, given: list[object], tmp_path: Path
) -> None:
    from leakscope.core.defences.trained.private import load_training

    path = tmp_path / "texts.csv"
    lines = path.read_text("utf-8").splitlines()
    rows = [f"{line},user {min(i, 90) // 2}" for i, line in enumerate(lines[1:])]
    path.write_text("\n".join([f"{lines[0]},who", *rows]) + "\n", encoding="utf-8")
    said = core(*given, "--person-column", "who", "--epsilon", "1")
    assert said.status == 0, said.err
    spent = load_training(tmp_path / "out").privacy_
    n = 30  # the last 30 texts are of one person
    assert f"For a person with up to 30 texts it is {spent.of_copies(n):.3g}" in said.out
    assert "The unit is one text, which is one row of the file" in said.out
    assert "number of texts and the class names are public" in said.out
    assert "Warning" not in said.out
    fewer = core(
        *given, "--out", tmp_path / "a", "--person-column", "who", "--texts-per-person", "2"
    ).refusal()
    assert "--texts-per-person must be at least 30" in fewer
    told = core(*given, "--out", tmp_path / "b", "--texts-per-person", "4", "--json").json()
    made = load_training(tmp_path / "b").privacy_
    assert told["texts_per_person"] == 4 and told["epsilon_of_person"] == made.of_copies(4)
    assert told["epsilon_of_person"] > 2 * told["epsilon_tight"]
    assert "--texts-per-person must be at least 1" in core(*given, "--texts-per-person=0").refusal()
    path.write_text(path.read_text("utf-8").replace(",user 3\n", ",\n", 1), encoding="utf-8")
    some = core(*given, "--out", tmp_path / "c", "--person-column", "who").refusal()
    assert "is empty for 1 of 120 texts" in some


@pytest.mark.slow
def test_a_delta_that_is_too_great_for_so_many_texts_is_warned_of(
    core: Any, given: list[object]
) -> None:
    said = core(*given, "--delta", "1e-3").out
    assert "Warning: δ · n = 0.12 exceeds 0.1" in said and "at most 0.0008 for 120 texts" in said
    assert "For a person with 10 texts, or a sentence with 10 phrases, it is" in said
    assert delta_warning(1e-3, 100) == "" and delta_warning(1e-3, 101)
