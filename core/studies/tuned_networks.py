"""Networks that cells share: fine-tuned under a constraint, adapted before, kept as what they say.

A cell of either study is fine-tuning of one network. What it is held against, the same without
noise and the same without pretraining, is fine-tuned once for all cells and kept.
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

from core.defences.trained.adaptive import AdaptivePretraining
from core.defences.trained.constrained import ConstrainedClassifier, usual_rate
from core.durable import make_folder
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.encoders.white_box import require_white_box
from core.errors import InvalidInputError
from core.protocols import WhiteBoxEncoder
from core.specs import EncoderSpec
from core.store import save_artifact, storage_errors
from core.studies.alone import alone
from core.studies.context import versions_of
from core.studies.domains import content_of, open_corpus
from core.studies.rows import Cell
from core.studies.runner import cell_key
from core.tasks.examples import Examples, read_examples
from core.tasks.outcomes import Hits
from core.training.checkpoint import read_kept
from core.training.record import WorkClock

__all__ = ["Adapted", "Tuned", "adapted_for", "examples_of", "same_without_noise", "tuned_for",
           "without_noise", "without_pretraining"]  # fmt: skip

_TUNING = ("task", "texts", "content", "encoder", "encoder_content", "encoder_revision",
           "precision", "reader", "reader_settings", "defence", "defence_settings", "n_train",
           "n_test", "seed")  # fmt: skip
_PRETRAINING = ("encoder", "encoder_content", "encoder_revision", "precision", "defence",
                "defence_settings", "objective", "objective_settings", "etas", "other", "contents",
                "pretraining_seed")  # fmt: skip
"""What of a cell the fine-tuning, and the pretraining before it, depend on."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a fine-tuned network was right about."""

    hits: Hits
    n_train: int
    minutes: float


@dataclass(frozen=True, eq=False)
class Adapted:
    """Weights after pretraining, and what was seen on the way.

    Attributes
    ----------
    tokens : int
        Seen at this η.
    all_tokens : int
        With those at the η that it was continued from.
    distinct_tokens : int
        Of these, the tokens of texts that were not seen before.
    passed : int
        Texts that were taken for them.
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
    """Return the examples of a task, read once a process."""
    return read_examples(name, place)


def without_noise(cell: Cell) -> Cell:
    """Return the fine-tuning of the same reader as a whole, without a constraint."""
    rate = {"learning_rate": usual_rate("none", cell["reader"])}
    return without_pretraining(cell) | {
        "defence": "none",
        "defence_settings": {},
        "reader_settings": {**_without_releases(cell), **rate},
    }


def same_without_noise(cell: Cell) -> Cell:
    """Return the training of the same network on what leaves under the constraint, without noise.

    Of word pieces that is the fine-tuning of the reader as a whole. Of the vector of a whole text
    it is that of the head alone, as under noise: what noise costs is not what the encoder's being
    frozen costs.
    """
    if cell["defence"] != "sequence_representation":
        return without_noise(cell)
    return without_pretraining(cell) | {
        "defence_settings": {},
        "reader_settings": {**_without_releases(cell), "is_noisy": False},
    }


def _without_releases(cell: Cell) -> dict[str, Any]:
    """Return a reader's settings but for how often noise is drawn, which there is none of."""
    return {k: v for k, v in cell["reader_settings"].items() if k != "releases"}


def without_pretraining(cell: Cell) -> Cell:
    """Return the same fine-tuning from the weights as they come."""
    return {name: cell[name] for name in _TUNING if name in cell}


def tuned_for(cell: Cell, folder: Path) -> Tuned:
    """Return what came of a cell's fine-tuning, done now unless another cell did it.

    Raises
    ------
    InvalidInputError
        Another file lies at the path than where the study was begun.
    DivergedError
        The loss went astray.
    """
    is_adapted = "objective" in cell
    told = {name: cell[name] for name in _TUNING + _PRETRAINING * is_adapted if name in cell}
    place = folder / "tuned" / _key(told)
    with alone(place):
        found = read_kept(place, "cell", told, _tuned)
        return found or _tuned(*_tune(cell, told, place, folder))


def adapted_for(cell: Cell, folder: Path) -> Adapted:
    """Return the weights that a cell is fine-tuned from, trained now unless they were before.

    Each η is continued from its neighbour with less noise, on the texts after those of its.
    """
    told = {name: cell[name] for name in _PRETRAINING if name in cell}
    place = folder / "adapted" / _key(told)
    former = None
    if len(cell["etas"]) > 1:
        etas = cell["etas"][:-1]
        former = adapted_for({**cell, "etas": etas, "defence_settings": {"eta": etas[-1]}}, folder)
    with alone(place):
        make = partial(_adapted, former=former)
        return read_kept(place, "cell", told, make) or make(*_adapt(cell, told, place, former))


def _tuned(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Tuned:
    right = arrays["right"]
    if right.ndim != 1 or not len(right):
        raise ValueError(f"what it was right about has the shape {right.shape}")
    hits = Hits(right.astype(bool), float(meta["chance"]))
    return Tuned(hits, int(meta["n_train"]), float(meta["minutes"]))


def _adapted(
    arrays: dict[str, NDArray[Any]], meta: dict[str, Any], *, former: Adapted | None
) -> Adapted:
    before = (0, 0) if former is None else (former.all_tokens, former.distinct_tokens)
    seen, new = int(meta["tokens_seen"]), int(meta["new_tokens"])
    curve = [{str(name): float(value) for name, value in point.items()} for point in meta["curve"]]
    return Adapted(
        arrays, seen, before[0] + seen, before[1] + new, int(meta["passed"]),
        float(meta["minutes"]), curve,
    )  # fmt: skip


def _tune(
    cell: Cell, told: Cell, place: Path, folder: Path
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    examples = examples_of(cell["task"], cell["texts"])
    if examples.digest != cell["content"]:
        raise InvalidInputError(
            f"{cell['texts']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )
    start = adapted_for(cell, folder).service if "objective" in cell else None
    sizes = {"n_train": cell["n_train"], "n_test": cell["n_test"]}
    known, held = examples.parts(**sizes, seed=cell["seed"])
    classifier = ConstrainedClassifier(
        mechanism=cell["defence"], reader=cell["reader"], encoder=cell["encoder"],
        seed=cell["seed"], **cell["reader_settings"], **cell["defence_settings"],
    )  # fmt: skip
    encoder, run = _encoder(cell["encoder"]), place / "run"
    clock = _clock(run, told)
    classifier.fit(
        encoder, examples, known, start=start, checkpoint_dir=run, on_progress=clock.report
    )
    said = classifier.predict(encoder, examples, held)
    classes, counts = np.unique(examples.class_ids[held], return_counts=True)
    meta = {"cell": told, "chance": 100 * int(counts.max()) / len(held), "n_train": len(known),
            "minutes": clock.seconds / 60, "n_classes": len(classes)}  # fmt: skip
    return _keep(place, {"right": said == examples.class_ids[held]}, meta)


def _adapt(
    cell: Cell, told: Cell, place: Path, former: Adapted | None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    if [content_of(cell["other"])] != list(cell["contents"]):
        raise InvalidInputError(
            f"{cell['other']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )
    run = place / "run"
    clock = _clock(run, told)
    pretraining = AdaptivePretraining(
        objective=cell["objective"], mechanism=cell["defence"], encoder=cell["encoder"],
        seed=cell["pretraining_seed"], **cell["objective_settings"], **cell["defence_settings"],
    ).fit(
        _encoder(cell["encoder"]), _sentences(cell["other"]),
        start=None if former is None else former.weights,
        passed=0 if former is None else former.passed,
        checkpoint_dir=run, on_progress=clock.report,
    )  # fmt: skip
    arrays, meta = pretraining.state()
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    meta |= {"cell": told, "minutes": clock.seconds / 60}
    return _keep(place, halves, meta)


@lru_cache(maxsize=2)
def _sentences(corpus: str) -> tuple[str, ...]:
    return tuple(open_corpus(corpus).sentences().texts)


@lru_cache(maxsize=2)
def _encoder(name: str) -> WhiteBoxEncoder:
    encoder = CachedEncoder(load_encoder(EncoderSpec(name=name)))
    return require_white_box(encoder, "Training under noise")


def _clock(run: Path, told: Cell) -> WorkClock:
    with storage_errors(run):
        make_folder(run)
    return WorkClock(run / "clock.json", told, lambda fraction, message: None)


def _keep(
    place: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    save_artifact(place, dict(arrays), dict(meta))
    shutil.rmtree(place / "run", ignore_errors=True)
    return dict(arrays), dict(meta)


def _key(told: Cell) -> str:
    return cell_key({**told, **versions_of(told)})
