"""Networks shared by cells: pretrained and fine-tuned once, and stored.

A cell of either study fine-tunes one network. Its references, the same network without noise and
without pretraining, are fine-tuned once for all cells and stored.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.trained.adaptive import AdaptivePretraining
from leakscope.core.defences.trained.constrained import ConstrainedClassifier, default_rate
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.results.rows import Cell
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import save_artifact, storage_errors
from leakscope.core.storage.atomic_files import make_folder
from leakscope.core.storage.file_lock import exclusive_lock
from leakscope.core.studies.context import versions_of
from leakscope.core.studies.domains import check_same, content_of, open_corpus
from leakscope.core.studies.runner import cell_key
from leakscope.core.tasks.examples import Examples, read_examples
from leakscope.core.tasks.outcomes import Hits
from leakscope.core.training.checkpoint import load_finished
from leakscope.core.training.record import WorkClock

_ENCODER = ("encoder", "encoder_content", "encoder_revision", "precision")
_DEFENCE = ("defence", "defence_settings")
_TASK = ("task", "texts", "content", "reader", "reader_settings", "n_train", "n_test", "seed")
_CORPUS = ("objective", "objective_settings", "etas", "other", "contents", "pretraining_seed")
_TUNING, _PRETRAINING = (*_TASK, *_ENCODER, *_DEFENCE), (*_CORPUS, *_ENCODER, *_DEFENCE)
"""The cell entries that fine-tuning depends on, and those that pretraining depends on."""


@dataclass(frozen=True, eq=False)
class TunedNetwork:
    """Which test texts a fine-tuned network gets right, with its training size and time."""

    hits: Hits
    n_train: int
    minutes: float


@dataclass(frozen=True, eq=False)
class AdaptedWeights:
    """The weights after pretraining, with the tokens seen and the loss curve.

    Attributes
    ----------
    tokens : int
        Tokens seen at this η.
    all_tokens : int
        Including those at the η that it was continued from.
    distinct_tokens : int
        Of these, the tokens of texts that were not seen before.
    passed : int
        Number of texts used for them.
    curve : list of dict
        The loss on held-out texts by tokens seen at this η.
    """

    weights: dict[str, NDArray[Any]]
    tokens: int
    all_tokens: int
    distinct_tokens: int
    passed: int
    minutes: float
    curve: list[dict[str, float]]

    @property
    def service(self) -> dict[str, NDArray[Any]]:
        """The weights of the Transformer, without the head for masked tokens."""
        start = "service."
        return {k.removeprefix(start): v for k, v in self.weights.items() if k.startswith(start)}


@lru_cache(maxsize=8)
def examples_of(name: str, place: str) -> Examples:
    """Read the examples of a task, once per process."""
    return read_examples(name, place)


def without_constraint(cell: Cell) -> Cell:
    """Return a cell that fine-tunes the same network without noise, all its weights included."""
    rate = {"learning_rate": default_rate("none", cell["reader"])}
    return without_pretraining(cell) | {
        "defence": "none",
        "defence_settings": {},
        "reader_settings": {**_without_releases(cell), **rate},
    }


def same_without_noise(cell: Cell) -> Cell:
    """Return a cell that fine-tunes as much of the same network, but without noise.

    For word pieces, the whole network is fine-tuned. For the vector of a whole text, only the head
    is, as under noise: so the cost of noise does not include that of freezing the encoder.
    """
    if cell["defence"] != "sequence_representation":
        return without_constraint(cell)
    return without_pretraining(cell) | {
        "defence_settings": {},
        "reader_settings": {**_without_releases(cell), "is_noisy": False},
    }


def _without_releases(cell: Cell) -> dict[str, Any]:
    """Return the network's settings without the number of noisy releases."""
    return {k: v for k, v in cell["reader_settings"].items() if k != "releases"}


def without_pretraining(cell: Cell) -> Cell:
    """Return a cell that fine-tunes the same network from its original weights."""
    return {name: cell[name] for name in _TUNING if name in cell}


def load_or_tune(cell: Cell, folder: Path) -> TunedNetwork:
    """Load the result of a cell's fine-tuning, or fine-tune and store it under a lock.

    Raises
    ------
    InvalidInputError
        The file differs from the one with which the study was started.
    DivergedError
        The loss diverged.
    """
    is_adapted = "objective" in cell
    told = {name: cell[name] for name in _TUNING + _PRETRAINING * is_adapted if name in cell}
    place = folder / "tuned" / _storage_key(told)
    with exclusive_lock(place):
        found = load_finished(place, "cell", told, _parse_tuned)
        return found or _parse_tuned(*_tune(cell, told, place, folder))


def load_or_adapt(cell: Cell, folder: Path) -> AdaptedWeights:
    """Load the pretrained weights of a cell, or pretrain and store them under a lock.

    Each η continues from its neighbour with less noise, on the texts after those that it used.
    """
    told = {name: cell[name] for name in _PRETRAINING if name in cell}
    place = folder / "adapted" / _storage_key(told)
    former = None
    if len(cell["etas"]) > 1:
        etas = cell["etas"][:-1]
        former = load_or_adapt(
            {**cell, "etas": etas, "defence_settings": {"eta": etas[-1]}}, folder
        )
    with exclusive_lock(place):
        make = partial(_parse_adapted, former=former)
        return load_finished(place, "cell", told, make) or make(*_adapt(cell, told, place, former))


def _parse_tuned(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> TunedNetwork:
    """Build a `TunedNetwork` from the arrays and metadata of a stored fine-tuning."""
    right = arrays["right"]
    if right.ndim != 1 or not len(right):
        raise ValueError(f"the outcomes have the shape {right.shape}")
    hits = Hits(right.astype(bool), float(meta["chance"]))
    return TunedNetwork(hits, int(meta["n_train"]), float(meta["minutes"]))


def _parse_adapted(
    arrays: dict[str, NDArray[Any]], meta: dict[str, Any], *, former: AdaptedWeights | None
) -> AdaptedWeights:
    """Build `AdaptedWeights` from stored arrays and metadata, adding the tokens of earlier η."""
    before = (0, 0) if former is None else (former.all_tokens, former.distinct_tokens)
    seen, new = int(meta["tokens_seen"]), int(meta["new_tokens"])
    curve = [{str(name): float(value) for name, value in point.items()} for point in meta["curve"]]
    return AdaptedWeights(
        arrays,
        seen,
        before[0] + seen,
        before[1] + new,
        int(meta["passed"]),
        float(meta["minutes"]),
        curve,
    )


def _tune(
    cell: Cell, told: Cell, place: Path, folder: Path
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Fine-tune a cell's network, store which test texts it gets right, and return these."""
    examples = examples_of(cell["task"], cell["texts"])
    check_same(cell["texts"], examples.digest, cell["content"])
    start = load_or_adapt(cell, folder).service if "objective" in cell else None
    sizes = {"n_train": cell["n_train"], "n_test": cell["n_test"]}
    known, held = examples.parts(**sizes, seed=cell["seed"])
    classifier = ConstrainedClassifier(
        mechanism=cell["defence"],
        reader=cell["reader"],
        encoder=cell["encoder"],
        seed=cell["seed"],
        **cell["reader_settings"],
        **cell["defence_settings"],
    )
    encoder, run = _encoder(cell["encoder"]), place / "run"
    clock = _clock(run, told)
    classifier.fit(
        encoder, examples, known, start=start, checkpoint_dir=run, on_progress=clock.report
    )
    said = classifier.predict(encoder, examples, held)
    classes, counts = np.unique(examples.class_ids[held], return_counts=True)
    meta = {
        "cell": told,
        "chance": 100 * int(counts.max()) / len(held),
        "n_train": len(known),
        "minutes": clock.seconds / 60,
        "n_classes": len(classes),
    }
    return _store(place, {"right": said == examples.class_ids[held]}, meta)


def _adapt(
    cell: Cell, told: Cell, place: Path, former: AdaptedWeights | None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Pretrain a cell's network under noise, store its weights, and return what was stored."""
    check_same(cell["other"], [content_of(cell["other"])], list(cell["contents"]))
    run = place / "run"
    clock = _clock(run, told)
    pretraining = AdaptivePretraining(
        objective=cell["objective"],
        mechanism=cell["defence"],
        encoder=cell["encoder"],
        seed=cell["pretraining_seed"],
        **cell["objective_settings"],
        **cell["defence_settings"],
    ).fit(
        _encoder(cell["encoder"]),
        _read_sentences(cell["other"]),
        start=None if former is None else former.weights,
        passed=0 if former is None else former.passed,
        checkpoint_dir=run,
        on_progress=clock.report,
    )
    arrays, meta = pretraining.state()
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    meta |= {"cell": told, "minutes": clock.seconds / 60}
    return _store(place, halves, meta)


@lru_cache(maxsize=2)
def _read_sentences(corpus: str) -> tuple[str, ...]:
    """Read the sentences of a corpus, once per process."""
    return tuple(open_corpus(corpus).sentences().texts)


@lru_cache(maxsize=2)
def _encoder(name: str) -> WhiteBoxEncoder:
    """Load a white-box encoder, once per process."""
    encoder = CachedEncoder(load_encoder(EncoderSpec(name=name)))
    return require_white_box(encoder, "Training under noise")


def _clock(run: Path, told: Cell) -> WorkClock:
    """Build a clock that counts the training time across restarts."""
    with storage_errors(run):
        make_folder(run)
    return WorkClock(run / "clock.json", told, lambda fraction, message: None)


def _store(
    place: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Store arrays and metadata as an artifact, remove the checkpoint, and return both."""
    save_artifact(place, dict(arrays), dict(meta))
    shutil.rmtree(place / "run", ignore_errors=True)
    return dict(arrays), dict(meta)


def _storage_key(told: Cell) -> str:
    """Return the hash of cell entries and their code versions, which names a folder."""
    return cell_key({**told, **versions_of(told)})
