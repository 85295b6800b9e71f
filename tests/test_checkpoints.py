"""What is kept of works, well sealed but not as it was written, is refused or made anew."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.linear_map import LinearMap
from leakscope.core.defences.trained.private import load_training
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, EncoderMismatchError, InvalidInputError
from leakscope.core.names.shipped import restore_experiment
from leakscope.core.protocols import no_progress
from leakscope.core.storage.artifacts import save_artifact
from tools.fuzz.making import ANSWERING, MAKERS, RUNS, Artefact, Making, load_without_training

Arrays = dict[str, NDArray[Any]]
Change = Callable[[Arrays, dict[str, Any]], object]


@pytest.fixture
def making(tiny_encoder: TransformerEncoder, small_texts: list[str], tmp_path: Path) -> Making:
    return Making(tmp_path / "made", tiny_encoder, small_texts[:60])


def changed(whole: Artefact, change: Change, folder: Path) -> Path:
    """Save an artefact with a change in it, and return where."""
    arrays, meta = dict(whole.arrays), {**whole.meta}
    change(arrays, meta)
    return save_artifact(folder, arrays, meta)


def put(name: str, array: Callable[[NDArray[Any]], NDArray[Any]]) -> Change:
    return lambda arrays, _: arrays.update({name: array(arrays[name])})


def tell(name: str, value: Any) -> Change:
    return lambda _, meta: meta.update({name: value})


CHANGES: dict[str, list[Change]] = {
    "an attack": [
        put("now.words", np.transpose),
        put("best.bias", lambda array: array[:-1]),
        put("adam.0.exp_avg", lambda array: array[:1]),
        put("adam.1.exp_avg_sq", lambda array: array.reshape(-1, 1)),
        put("adam.0.exp_avg", lambda array: array.astype(np.int64)),
        put("adam.0.step", lambda array: -array),
        put("adam.0.step", lambda array: np.zeros(3, np.float32)),
        lambda arrays, _: arrays.pop("adam.0.exp_avg_sq"),
        lambda arrays, _: arrays.update({"adam.99.step": arrays["adam.0.step"]}),
        lambda arrays, _: arrays.pop("now.words"),
        lambda arrays, _: arrays.pop("random"),
        tell("epoch", -1),
        tell("epoch", 99),
        tell("batch", "2"),
        tell("best_score", "none"),
        tell("epochs_without_gain", None),
        tell("log", {"validation": [], "seconds": "1", "n_sentences": 0, "n_resumed": 0}),
        tell("log", []),
    ],
    "a defence": [tell("extra", {"scores": [{"value": "x"}]}), tell("extra", [])],
    "a map to a layer": [
        put("fitted.xx", lambda array: array[:-1]),
        put("fitted.xx", np.zeros_like),
        put("held_out.yy", lambda array: array.astype(np.float32)),
        tell("n", [1, 2]),
        tell("n", [1]),
        tell("done", 10_000),
        tell("done", "all"),
    ],
}


@pytest.mark.parametrize("run", CHANGES)
def test_a_checkpoint_that_no_run_can_go_on_from_is_refused_by_folder(
    run: str, making: Making, tmp_path: Path
) -> None:
    whole = MAKERS[f"checkpoint of {run}"](making)
    for i, change in enumerate([lambda *_: None, *CHANGES[run]]):
        place = changed(whole, change, tmp_path / str(i))
        going_on = replace(making, place=place)
        if i == 0:
            assert RUNS[run].go(going_on, no_progress), "it is whole"
            continue
        with pytest.raises(ArtifactError, match="Move it away") as refused:
            RUNS[run].go(going_on, no_progress)
        assert str(place) in str(refused.value)


def test_vectors_that_do_not_differ_fit_no_map(tiny_encoder: TransformerEncoder) -> None:
    with pytest.raises(InvalidInputError, match="texts are equal"):
        LinearMap.fit(tiny_encoder, ["The same."] * 3, np.zeros((3, 32), np.float32))


@pytest.mark.slow
def test_a_private_classifier_of_other_weights_is_refused(making: Making, tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    whole = MAKERS["private classifier"](making)
    assert load_training(changed(whole, lambda *_: None, tmp_path / "whole")).classes_ == ("a", "b")
    wrong: list[Change] = [
        put("last.bias", lambda array: array[:0]),
        put("last.weight", np.transpose),
        put("last.weight", lambda array: array.astype(np.int64)),
        put("first.bias", lambda array: array[:-1]),
        lambda arrays, _: arrays.pop("first.weight"),
        lambda arrays, _: arrays.update({"more": np.zeros(2, np.float32)}),
        lambda _, meta: meta["state"].update({"classes": ["a"]}),
        lambda _, meta: meta["state"].update({"privacy": {"epsilon": "x"}}),
    ]
    for i, change in enumerate(wrong):
        place = changed(deepcopy(whole), change, tmp_path / str(i))
        with pytest.raises(ArtifactError, match="does not contain a private classifier"):
            load_training(place)
    narrow = changed(whole, put("first.weight", lambda array: array[:, :-1]), tmp_path / "narrow")
    with pytest.raises(EncoderMismatchError):
        load_training(narrow).answer(making.encoder, ["A text."])


NAMES: list[Change] = [
    put("said", lambda array: array[:-1]),
    put("sentence.scores", np.transpose),
    put("alone.truth", lambda array: array + 100),
    lambda _, meta: meta["texts"].pop(),
    lambda _, meta: meta["texts"][0].__setitem__(0, ["no text"]),
    lambda _, meta: meta["answers"][0].pop(),
    lambda _, meta: meta["probed"].append([0, 99]),
    lambda _, meta: meta["probes"].pop(),
    lambda _, meta: meta["training_counts"].pop(),
    lambda _, meta: meta["names"].__setitem__(0, [3, "Ada"]),
]


@pytest.mark.parametrize("change", NAMES)
def test_an_example_of_names_whose_parts_do_not_fit_is_refused(
    change: Change, making: Making
) -> None:
    whole = MAKERS["example of names"](making)
    assert restore_experiment(whole.arrays, whole.meta).table()
    change(whole.arrays, whole.meta)
    with pytest.raises(ArtifactError, match="Make it again"):
        restore_experiment(whole.arrays, whole.meta)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ANSWERING)
def test_answers_of_other_texts_are_made_anew(kind: str, making: Making, tmp_path: Path) -> None:
    if kind == "heads":
        pytest.importorskip("opacus")
    whole = MAKERS[f"answers of {kind}"](making)
    before = ANSWERING[kind](making)
    cut = put("answers", lambda array: array[:-1])
    for i, change in enumerate(
        [cut, lambda arrays, _: arrays.update({"answer": arrays.pop("answers")})]
    ):
        place = tmp_path / str(i)
        changed(whole, change, place / "model-0")
        found = ANSWERING[kind](replace(making, place=place))
        assert found.shape == before.shape == (1, 60, 2) and np.allclose(found, before, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("answers of a study", [put("answers", lambda array: array[0]), tell("lesson", "other")]),
        (
            "tuned network",
            [
                put("right", lambda array: array[None]),
                tell("minutes", "x"),
                put("right", lambda array: array[:0]),
                tell("chance", None),
            ],
        ),
        ("adapted network", [tell("curve", 3), tell("tokens_seen", None), tell("curve", [[1]])]),
    ],
)
def test_what_a_study_kept_is_taken_whole_or_not_at_all(
    kind: str, changes: list[Change], making: Making, tmp_path: Path
) -> None:
    whole = MAKERS[kind](making)
    for i, change in enumerate([lambda *_: None, *changes]):
        folder = changed(whole, change, tmp_path / str(i) / "a")
        assert (load_without_training(kind, folder, making.texts) is not None) is (i == 0)
