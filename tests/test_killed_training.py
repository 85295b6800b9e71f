"""Training under noise, and with privacy, that is killed in the middle ends as one that was not.

The process dies by SIGKILL within an epoch, so that steps are lost with the noise that they drew.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_constrained import classifier, pretraining
from test_private_training import SMALL, N, _Toy, fitted, problem

from leakscope.core.attacks.membership.memorisation.network import make_network
from leakscope.core.attacks.membership.memorisation.private import (
    CLIP_NORM,
    GradientCanaries,
    train_model,
)
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.tokens import make_tokens
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.storage.artifacts import load_artifact, read_record
from leakscope.core.tasks.examples import Examples
from leakscope.core.training.accounting import Guarantee, epsilon_spent

HERE = Path(__file__).parent

Arrays = Mapping[str, NDArray[Any]]
Train = Callable[[Path, Sequence[str], Path | None, OnProgress], Arrays]


def constrained(reader: str, mechanism: str) -> Train:
    def train(
        tiny: Path, texts: Sequence[str], folder: Path | None, on_progress: OnProgress
    ) -> Arrays:
        examples = Examples("toy", tuple(texts[:80]), (), tuple("ab" * 40))
        found = classifier(tiny, reader=reader, mechanism=mechanism)
        found.fit(
            encoder(tiny), examples, np.arange(80), checkpoint_dir=folder, on_progress=on_progress
        )
        return {k: v.numpy() for k, v in found.network_.state_dict().items()}

    return train


def adaptive(objective: str, mechanism: str) -> Train:
    def train(
        tiny: Path, texts: Sequence[str], folder: Path | None, on_progress: OnProgress
    ) -> Arrays:
        found = pretraining(tiny, objective=objective, mechanism=mechanism)
        found.fit(encoder(tiny), texts, checkpoint_dir=folder, on_progress=on_progress)
        losses = np.array([[point["tokens"], point["loss"]] for point in found.curve_])
        return {**found.state()[0], "curve": losses}

    return train


def private(
    tiny: Path, texts: Sequence[str], folder: Path | None, on_progress: OnProgress
) -> Arrays:
    found = fitted(folder, on_progress=on_progress)
    assert found.privacy is not None
    spent = np.array([found.privacy.epsilon, found.privacy.n_steps])
    return {**found.weights, "spent": spent}


def language_model(
    tiny: Path, texts: Sequence[str], folder: Path | None, on_progress: OnProgress
) -> Arrays:
    """Train a small one on texts and on gradients of canaries, whose scores are read along."""
    settings = MemorisationSettings(
        model="transformer", epochs=5, hidden=16, batch_size=8, max_length=32
    )
    known = list(texts[:40])
    tokens = make_tokens("bytes", known, (), 0)
    shape = make_network("transformer", tokens.size, 16, 32)
    n_weights = sum(weight.numel() for weight in shape.parameters())
    canaries = GradientCanaries(60, n_weights, np.arange(60) < 30, CLIP_NORM, 3)
    promise = Guarantee(epsilon=4.0, delta=1e-5, n_expected=70)
    network, privacy = train_model(
        known,
        tokens,
        settings,
        3,
        promise=promise,
        canaries=canaries,
        checkpoint_dir=folder,
        on_progress=on_progress,
    )
    assert privacy is not None
    weights = {name: each.detach().numpy() for name, each in network.state_dict().items()}
    spent = np.array([privacy.epsilon, privacy.n_steps])
    return {**weights, "spent": spent, "scores": canaries.scores}


def encoder(tiny: Path) -> TransformerEncoder:
    return TransformerEncoder(tiny, name="mlm:tiny", max_length=64, device="cpu")


TRAININGS: dict[str, Train] = {
    "constrained-tokens": constrained("transformer", "token_representation"),
    "constrained-texts": constrained("bilstm", "text_to_text"),
    "adaptive-denoising": adaptive("denoising", "token_representation"),
    "adaptive-probability": adaptive("probability", "text_to_text"),
    "private-language-model": language_model,
}

KILLED = """
import json, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_killed_training as trainings
def kill(done, message):
    if done > float(sys.argv[6]):
        os.kill(os.getpid(), signal.SIGKILL)
texts = json.loads(Path(sys.argv[4]).read_text())
train = trainings.TRAININGS.get(sys.argv[2]) or getattr(trainings, sys.argv[2])
train(Path(sys.argv[3]), texts, Path(sys.argv[5]), kill)
"""


def kill(name: str, tiny: Path, texts: Sequence[str], place: Path, *, at: float = 0.6) -> Path:
    """Train in a process that kills itself; return the folder of the checkpoint."""
    (place / "texts.json").write_text(json.dumps(list(texts)))
    given = [HERE, name, tiny, place / "texts.json", place / "run", at]
    died = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, given)],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    return place / "run"


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_what_was_killed_within_an_epoch_ends_bit_for_bit_as_what_was_not(
    name: str, tiny_bert: Path, small_texts: list[str], tmp_path: Path
) -> None:
    whole = TRAININGS[name](tiny_bert, small_texts, None, no_progress)
    folder = kill(name, tiny_bert, small_texts, tmp_path)
    _, meta = load_artifact(folder)
    assert meta["epoch"] >= 1 and meta["log"]["n_resumed"] == 0
    begun: list[float] = []
    again = TRAININGS[name](tiny_bert, small_texts, folder, lambda done, _: begun.append(done))
    assert 0 < begun[0] < 0.7, "it went on, from before where it was killed"
    assert load_artifact(folder)[1]["log"]["n_resumed"] == 1
    assert again.keys() == whole.keys()
    for part, array in whole.items():
        assert np.array_equal(again[part], array), part


@pytest.mark.slow
def test_a_private_run_that_is_killed_twice_tells_all_that_its_weights_have_cost(
    tiny_bert: Path, tmp_path: Path
) -> None:
    """At each kill the accountant holds the steps of the weights beside it, none less."""
    spent = []
    for n_resumed, at in enumerate((0.35, 0.85)):
        folder = kill("private", tiny_bert, [], tmp_path, at=at)
        _, meta = load_artifact(folder)
        assert meta["log"]["n_resumed"] == n_resumed
        steps = [(float(noise), float(rate), int(n)) for noise, rate, n in meta["extra"]["steps"]]
        assert sum(n for _, _, n in steps) == 4 * meta["epoch"] + meta["batch"] > 0
        spent.append(epsilon_spent(steps))
    ended = private(tiny_bert, [], folder, no_progress)
    whole = private(tiny_bert, [], None, no_progress)
    assert load_artifact(folder)[1]["log"]["n_resumed"] == 2
    assert 0 < spent[0] < spent[1] < whole["spent"][0] and whole["spent"][1] == 20
    assert ended.keys() == whole.keys()
    for part, array in whole.items():
        assert np.array_equal(ended[part], array), part


def seedless(tiny: Path, texts: Sequence[str], folder: Path, on_progress: OnProgress) -> Any:
    """Train a private classifier with a seed that it draws itself."""
    return private_classifier(folder, None, on_progress)


def private_classifier(folder: Path, seed: int | None, on_progress: OnProgress) -> Any:
    from leakscope.core.defences.trained.private import PrivateTraining

    texts, labels = [str(i) for i in range(N)], [f"c{label}" for label in problem()[1]]
    made = PrivateTraining(epsilon=4.0, seed=seed, **SMALL)
    return made.fit(_Toy(), texts, labels, checkpoint_dir=str(folder), on_progress=on_progress)


@pytest.mark.slow
def test_a_killed_private_classifier_goes_on_with_its_unknown_seed_and_then_forgets_it(
    tiny_bert: Path, tmp_path: Path
) -> None:
    folder = kill("seedless", tiny_bert, [], tmp_path)
    seed = int(read_record(folder / "seed.json", seed=int)["seed"])
    again = seedless(tiny_bert, [], folder, no_progress)
    assert not (folder / "seed.json").exists()
    whole = private_classifier(tmp_path / "whole", seed, no_progress)
    assert again.privacy_ == whole.privacy_ and again.privacy_.n_steps == 20
    for name, weights in whole.head_.weights.items():
        assert np.array_equal(again.head_.weights[name], weights)
