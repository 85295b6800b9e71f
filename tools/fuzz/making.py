"""Small artifacts of every kind that is stored on disk, and runs that are stopped and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Run:
    """A resumable run, and the progress message from which it has a checkpoint.

    Parameters
    ----------
    go : callable
        Takes what it is made of, and what is told of its progress.
    tells : str
        How what it tells begins, once there is something to keep.
    """

    go: Callable[[Making, Any], object]
    tells: str


def _train_attack(making: Making, on_progress: Any) -> object:
    """Train an MLC attack with checkpoints, resuming from one in `making.place`."""
    from leakscope.core.attacks.inversion.classifiers.mlc import MLCAttack

    attack = MLCAttack(vocabulary_size=30, epochs=2, batch_size=16)
    return attack.fit(
        making.encoder,
        making.texts,
        making.vectors,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


def _train_defence(making: Making, on_progress: Any) -> object:
    """Train an adversarial adapter with checkpoints, resuming from one in `making.place`."""
    from leakscope.core.defences.trained.adversarial import AdversarialAdapter

    adapter = AdversarialAdapter(epochs=2, hidden=8, n_words=10, batch_size=16, device="cpu")
    return adapter.fit(
        making.encoder,
        making.texts,
        making.vectors,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


def _train_head(making: Making, on_progress: Any) -> object:
    """Train a private head with checkpoints, resuming from one in `making.place`."""
    from leakscope.core.training.private_heads import HeadSettings, fit_head

    labels = np.arange(len(making.texts), dtype=np.int64) % 2
    settings = HeadSettings(delta=1e-3, batch_size=16, steps=6)
    with _patch_noise_multiplier():
        return fit_head(
            making.vectors,
            labels,
            2,
            settings,
            0,
            checkpoint_dir=making.place,
            on_progress=on_progress,
        )


@contextmanager
def _patch_noise_multiplier() -> Iterator[None]:
    """Within the block, compute each noise multiplier only once, since it takes seconds."""
    with patch("leakscope.core.training.private.noise_multiplier_for", _cached_noise_multiplier):
        yield


@cache
def _cached_noise_multiplier(*given: Any) -> float:
    """Compute the noise multiplier for these arguments, once."""
    from leakscope.core.training.accounting import noise_multiplier_for

    return noise_multiplier_for(*given)


def _fit_layer_map(making: Making, on_progress: Any) -> object:
    """Fit a linear map to a layer with checkpoints, resuming from one in `making.place`."""
    from leakscope.core.attacks.inversion.linear_map import LinearMap

    return LinearMap.fit(
        making.encoder,
        making.texts,
        making.vectors,
        layer=1,
        held_out=0.2,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


RUNS: dict[str, Run] = {
    "an attack": Run(_train_attack, "Epoch"),
    "a defence": Run(_train_defence, "Epoch"),
    "a private head": Run(_train_head, "Epoch"),
    "a map to a layer": Run(_fit_layer_map, "Fitted"),
}
"""By what is trained."""


def training_batch(texts: list[str]) -> Any:
    """Build a batch of one classifier that trains on the first half of the texts."""
    from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch

    n = len(texts)
    trained, validated = np.zeros((2, 1, n), dtype=bool)
    trained[0, : n // 2], validated[0, n // 2 : n // 2 + 4] = True, True
    return TrainingBatch(tuple(texts), np.arange(n, dtype=np.int64) % 2, 2, trained, validated, 0)


def _train_lstm_targets(making: Making) -> Any:
    """Train LSTM classifiers to attack, unless they are stored; return their answers."""
    from leakscope.core.attacks.membership.classifiers.targets.lstm import LSTMs

    made = LSTMs(vocabulary_size=20, max_length=6, dimension=4, hidden=4, epochs=1)
    return made.fit(training_batch(making.texts), checkpoint_dir=str(making.place)).answers_


def _train_private_heads(making: Making) -> Any:
    """Train private classifiers to attack, unless they are stored; return their answers."""
    from leakscope.core.attacks.membership.classifiers.targets.private import PrivateHeads

    made = PrivateHeads(delta=1e-3, batch_size=16, steps=3)
    with _patch_noise_multiplier():
        made.fit_vectors(
            training_batch(making.texts), making.vectors, checkpoint_dir=str(making.place)
        )
    return made.answers_


ANSWERING: dict[str, Callable[[Making], Any]] = {
    "networks": _train_lstm_targets,
    "heads": _train_private_heads,
}
"""What answers for the texts of a lesson: read back where it was trained before."""


_ENCODED = {
    "encoder": "minilm",
    "encoder_content": "",
    "precision": "float32",
    "defence": "text_to_text",
    "defence_settings": {"eta": 50.0},
}
CELL: dict[str, Any] = {
    **_ENCODED,
    "task": "news",
    "texts": "news.csv",
    "content": "a",
    "reader": "pretrained",
    "reader_settings": {},
    "n_train": 20,
    "n_test": 10,
    "seed": 0,
}
ADAPTED_CELL: dict[str, Any] = {
    **_ENCODED,
    "objective": "masked",
    "objective_settings": {},
    "etas": [50.0],
    "other": "texts.txt",
    "contents": ["b"],
    "pretraining_seed": 0,
}


class _TrainsAgainError(Exception):
    """Raised where a study would train again instead of using saved results."""


def _refuse_training(*_: Any, **__: Any) -> Any:
    """Raise _TrainsAgainError; stands in for a study's training."""
    raise _TrainsAgainError


def load_without_training(kind: str, folder: Path, texts: list[str]) -> Any:
    """Load what a study has saved in a folder; return None if the study would train again."""
    from leakscope.core.studies.membership import trained_classifiers
    from leakscope.core.studies.training import tuned_networks

    with (
        patch.object(tuned_networks, "_tune", _refuse_training),
        patch.object(tuned_networks, "_adapt", _refuse_training),
    ):
        try:
            if kind == "answers of a study":
                return trained_classifiers.load_answers(folder, training_batch(texts))
            read, cell, part = {
                "tuned network": (tuned_networks.load_or_tune, CELL, "tuned"),
                "adapted network": (tuned_networks.load_or_adapt, ADAPTED_CELL, "adapted"),
            }[kind]
            place = folder.parent / part / tuned_networks._storage_key(cell)
            place.parent.mkdir()
            folder.rename(place)
            return read(cell, folder.parent)
        except _TrainsAgainError:
            return None


N_VECTORS = 30
LABELS = ("a", "b")
LENDER = "lender"
"""The folder of the attack whose arrays another borrows."""


@dataclass(frozen=True)
class Artefact:
    """An artifact's arrays and metadata."""

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Making:
    """Inputs from which artifacts are made.

    Parameters
    ----------
    place : Path
        An empty folder, or one that is yet to be made.
    encoder : Encoder
        A language model of two layers with random weights.
    texts : list of str
        Some dozens, in the order of their document.
    """

    place: Path
    encoder: Any
    texts: list[str]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The encoder's vectors of the texts."""
        found: NDArray[np.float32] = self.encoder.encode(self.texts)
        return found

    @property
    def labels(self) -> list[str]:
        """A class label for each text."""
        return [LABELS[i % 2] for i in range(len(self.texts))]


def stopping(beginning: str) -> Callable[[float, str], None]:
    """Return a progress callback that raises StoppedError at the first message with a prefix."""
    from leakscope.core.errors import StoppedError

    def report(_: float, told: str) -> None:
        """Raise StoppedError if the message has the prefix."""
        if told.startswith(beginning):
            raise StoppedError("stopped")

    return report


_ATTACKS: dict[str, dict[str, Any]] = {
    "prior": {},
    "retrieval": {},
    "probe": {},
    "mlc": {"vocabulary_size": 30, "epochs": 1},
    "msp": {"vocabulary_size": 30, "epochs": 1, "hidden": 8},
    "relaxation": {"n_steps": 2, "length": 3},
    "staged": {"n_steps": 2, "length": 3},
    "sparse": {},
    "probe_mlc": {"vocabulary_size": 30, "epochs": 1, "hidden": 8, "substitutions": 0},
    "search": {
        "vocabulary_size": 30,
        "base_epochs": 1,
        "base_substitutions": 0,
        "n_calibration": 20,
        "n_candidates": 4,
        "n_later_candidates": 3,
        "corrector_hidden": 8,
        "corrector_epochs": 1,
    },
    "reconstruct": {
        "vocabulary_size": 30,
        "base_epochs": 1,
        "base_substitutions": 0,
        "lexicon_size": 30,
        "n_queries": 10,
        "width": 4,
    },
}
_DUAL = {"dimension": 8, "epochs": 1, "n_negatives": 10, "n_candidates": 2, "n_validation": 4}
_TRANSFORMER = {**_DUAL, "n_layers": 1, "n_heads": 2, "feed_forward": 16}
_WORDS = {"vector_size": 8, "epochs": 1, "min_count": 1}
_ENCODERS: dict[str, dict[str, Any]] = {
    "tfidf": {},
    "hashing": {},
    "lsa_tfidf": {"n_components": 4},
    "lsa_hashing": {"n_components": 4},
    "doc2vec": _WORDS,
    "word2vec": _WORDS,
    "fasttext": _WORDS,
    "glove": _WORDS,
    "dual_lstm": {**_DUAL, "word_dimension": 6},
    "dual_transformer": _TRANSFORMER,
    "adversarial_lstm": {**_DUAL, "word_dimension": 6, "n_words": 10},
    "adversarial_transformer": {**_TRANSFORMER, "n_words": 10},
    "sbert": {"epochs": 1, "max_length": 16},
}
_DEFENCES: dict[str, dict[str, Any]] = {
    "adversarial": {"epochs": 1, "hidden": 8, "n_words": 10, "device": "cpu"},
    "leace": {},
}


def _load_artefact(folder: Path) -> Artefact:
    """Load the arrays and metadata of a saved artifact."""
    from leakscope.core.storage.artifacts import load_artifact

    return Artefact(*load_artifact(folder))


def _make_attack(making: Making, name: str) -> Artefact:
    """Train and save an inversion attack of a name; return its artifact."""
    from leakscope.core.attacks.inversion.registry import make_attack
    from leakscope.core.attacks.inversion.shipped import save_attack
    from leakscope.core.specs import AttackSpec

    attack: Any = make_attack(AttackSpec.of(name, _ATTACKS[name]))
    attack.fit(making.encoder, making.texts)
    if name == "reconstruct":
        attack.calibrate(making.encoder, making.texts[:4])
    save_attack(attack, making.place)
    return _load_artefact(making.place)


def _make_borrower(making: Making) -> Artefact:
    """Train and save a search attack that borrows another's arrays; return its artifact."""
    from leakscope.core.attacks.inversion.search.attack import SearchAttack
    from leakscope.core.attacks.inversion.shipped import save_attack

    attack = SearchAttack(**_ATTACKS["search"]).fit(making.encoder, making.texts)
    save_attack(attack.base_, making.place.with_name(LENDER))
    save_attack(attack, making.place, borrow=("base.", LENDER))
    return _load_artefact(making.place)


def _make_encoder(making: Making, name: str) -> Artefact:
    """Fit and save an encoder of a name; return its artifact."""
    from leakscope.core.encoders.fitted import make_encoder, save_encoder
    from leakscope.core.specs import FittedEncoderSpec

    more = {"base": making.encoder.name.removeprefix("mlm:")} if name == "sbert" else {}
    encoder: Any = make_encoder(FittedEncoderSpec.of(name, _ENCODERS[name] | more))
    if name == "sbert":
        scores = [float(i % 6) for i in range(len(making.texts))]
        encoder.fit_pairs(making.texts, making.texts[::-1], scores)
    else:
        encoder.fit(making.texts)
    save_encoder(encoder, making.place, training={"corpus": "texts.txt"})
    return _load_artefact(making.place)


def _make_defence(making: Making, name: str) -> Artefact:
    """Fit and save a trained defence of a name; return its artifact."""
    from leakscope.core.defences.stored import save_defence
    from leakscope.core.defences.trained.registry import make_trained_defence
    from leakscope.core.specs import DefenceSpec

    defence: Any = make_trained_defence(DefenceSpec.of(name, _DEFENCES[name]))
    defence.fit(making.encoder, making.texts, labels=making.labels)
    save_defence(defence, making.place, training={"encoder": making.encoder.name})
    return _load_artefact(making.place)


def _make_private_classifier(making: Making) -> Artefact:
    """Train and save a private classifier; return its artifact."""
    from leakscope.core.defences.trained.private import PrivateTraining, save_training

    made = PrivateTraining(delta=1e-3, hidden=4, batch_size=16, steps=3, seed=0)
    save_training(made.fit(making.encoder, making.texts, making.labels), making.place)
    return _load_artefact(making.place)


def map_vectors() -> NDArray[np.float32]:
    """Draw the vectors that the kit's map is drawn from, the same each time."""
    return np.random.default_rng(0).standard_normal((N_VECTORS, 6)).astype(np.float32)


def _make_map(making: Making) -> Artefact:
    """Draw and save a map; return its artifact."""
    from leakscope.core.projection.layout import project
    from leakscope.core.projection.layout_cache import save_layout
    from leakscope.core.projection.spec import ProjectionSpec

    save_layout(making.place, project(map_vectors(), ProjectionSpec(method="pca")))
    return _load_artefact(making.place)


def _make_statistics(making: Making) -> Artefact:
    """Measure and save deniability statistics; return their artifact."""
    from leakscope.core.defences.deniability.vocabulary import measure_vocabulary, save_vocabulary

    found = measure_vocabulary(making.encoder, etas=np.array([10.0, 40.0]), n_draws=20)
    save_vocabulary(making.place, found)
    return _load_artefact(making.place)


def _make_shipped_vectors(making: Making) -> Artefact:
    """Build an artifact of vectors in the form in which they ship, without saving it."""
    vectors = making.vectors[:N_VECTORS].astype(np.float16)
    return Artefact({"vectors": vectors}, {"kind": "vectors"})


def _make_shape(making: Making) -> Artefact:
    """Measure and save the shape of a known embedding space; return its artifact."""
    from leakscope.core.audit.identification import KnownSpace

    space = KnownSpace.measure("bert", making.encoder.fingerprint, making.vectors)
    space.save(making.place)
    return _load_artefact(making.place)


def _make_names(making: Making) -> Artefact:
    """Run a names experiment and convert it to an artifact, without saving it."""
    from leakscope.core.attacks.inversion.prior import PriorAttack
    from leakscope.core.names.experiment import run_experiment
    from leakscope.core.names.person import parse_names
    from leakscope.core.names.sentences import read_sentences
    from scripts.names_example import packed

    names = parse_names(["Ada River", "Ben Market", "Eva Winter"])
    sentences, listed = read_sentences(
        "The doctor met Ada River.\nA letter from Ben Market.\nEva Winter saw it.", names
    )
    attack = PriorAttack().fit(making.encoder, making.texts)
    return Artefact(*packed(run_experiment(attack, making.encoder, sentences, listed)))


def _make_checkpoint(making: Making, run: str) -> Artefact:
    """Start a run, stop it early and return the artifact of its checkpoint."""
    from leakscope.core.errors import StoppedError

    try:
        RUNS[run].go(making, stopping(RUNS[run].tells))
    except StoppedError:
        return _load_artefact(making.place)
    raise AssertionError(f"{run} told nothing that begins with {RUNS[run].tells!r}")


def _make_target_answers(making: Making, kind: str) -> Artefact:
    """Train a classifier target and return the artifact of its saved answers."""
    ANSWERING[kind](making)
    return _load_artefact(making.place / "model-0")


def _make_study_answers(making: Making) -> Artefact:
    """Build an artifact of a study cell's answers, without training."""
    answers = np.full((1, len(making.texts), 2), 0.5, np.float32)
    return Artefact({"answers": answers}, {"lesson": training_batch(making.texts).digest})


def _make_tuned_network(making: Making) -> Artefact:
    """Build an artifact of a tuned network's results, without training."""
    told = {"cell": CELL, "chance": 50.0, "n_train": 20, "minutes": 0.5, "n_classes": 2}
    return Artefact({"right": np.arange(10) % 2 == 0}, told)


def _make_adapted_network(making: Making) -> Artefact:
    """Build an artifact of an adapted network, without training."""
    told = {
        "cell": ADAPTED_CELL,
        "tokens_seen": 100,
        "new_tokens": 90,
        "passed": 12,
        "minutes": 0.5,
        "curve": [{"tokens": 100.0, "loss": 2.5}],
    }
    return Artefact({"service.words": np.ones((3, 4), np.float16)}, told)


MAKERS: dict[str, Callable[[Making], Artefact]] = {
    **{f"attack {name}": partial(_make_attack, name=name) for name in _ATTACKS},
    "attack that borrows": _make_borrower,
    **{f"encoder {name}": partial(_make_encoder, name=name) for name in _ENCODERS},
    **{f"defence {name}": partial(_make_defence, name=name) for name in _DEFENCES},
    "private classifier": _make_private_classifier,
    "map": _make_map,
    "vectors of the map": _make_shipped_vectors,
    "statistics of tokens": _make_statistics,
    "example of names": _make_names,
    "shape of an encoder's vectors": _make_shape,
    **{f"checkpoint of {run}": partial(_make_checkpoint, run=run) for run in RUNS},
    **{f"answers of {kind}": partial(_make_target_answers, kind=kind) for kind in ANSWERING},
    "answers of a study": _make_study_answers,
    "tuned network": _make_tuned_network,
    "adapted network": _make_adapted_network,
}
"""By what the report calls them."""
