"""Train a classifier of texts with differential privacy, and say what each text was promised."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import columns_of, encoder_spec, parse_settings
from core.cli.lessons import CHECKPOINT, add_lesson_arguments, check_limit, is_free, read_lesson
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_columns
from core.errors import InvalidInputError
from core.store import META, clear_leftovers

if TYPE_CHECKING:
    from core.defences.trained.private import PrivateTraining

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "The same command goes on from its last checkpoint, with its accountant."

_OWN = {"epsilon": "--epsilon", "delta": "--delta"}
"""Settings that have an option of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `train-private`."""
    from core.training.accounting import DELTA

    parser.add_argument("--epsilon", type=float, default=8.0,
                        help="what a text may cost: less hides more (default: 8)")  # fmt: skip
    parser.add_argument("--delta", type=float, default=DELTA,
                        help="chance left beside it, below 1 in the number of texts "
                        f"(default: {DELTA:g})")  # fmt: skip
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="another setting of the training")  # fmt: skip
    add_lesson_arguments(parser, label="of the classes that are learned", rows="a row")


def run(arguments: argparse.Namespace) -> None:
    """Train, write the classifier, and tell its ε by both accountants."""
    columns = checked_columns(arguments.texts, columns_of(arguments, label=arguments.label_column))
    if arguments.label_column is None:
        raise InvalidInputError("Name the column of the classes: --label-column NAME.")
    check_limit(arguments.limit)
    _check_free(arguments.out)
    from core.training.accounting import Promise, check_installed

    texts, labels = read_lesson(arguments, columns)
    assert labels is not None  # their column was named
    Promise(
        epsilon=arguments.epsilon, delta=arguments.delta, n_expected=len(texts)
    ).check()  # in words that name the remedy, before an encoder is loaded
    check_installed()
    training = _made(arguments)
    facts = _trained(training, arguments, texts, labels)
    _show(arguments, training, facts)


def _made(given: argparse.Namespace) -> PrivateTraining:
    from core.defences.trained.private import PRIVATE_TRAININGS, make_training

    settings = parse_settings("head", PRIVATE_TRAININGS["head"].kind, given.settings)
    for name, option in _OWN.items():
        if name in settings:
            raise InvalidInputError(f"Give {name} by {option}, not by --set.")
        settings[name] = getattr(given, name)
    return make_training("head", settings)


def _trained(
    training: PrivateTraining, given: argparse.Namespace, texts: list[str], labels: list[str]
) -> dict[str, Any]:
    """Train and write; return what it was trained on, and what it spent."""
    from core.defences.trained.private import load_training, save_training
    from core.encoders import load_encoder
    from core.encoders.cache import CachedEncoder

    checkpoint = given.out / CHECKPOINT
    begun = time.perf_counter()
    with progress_line() as on_progress:
        encoder = CachedEncoder(load_encoder(encoder_spec(given)))
        training.fit(
            encoder, texts, labels, on_progress=on_progress, checkpoint_dir=str(checkpoint)
        )
    told = training.privacy_.accounts()
    facts = {
        "encoder": given.encoder, "texts": given.texts.name, "n_texts": len(texts),
        "classes": list(training.classes_), "seconds": round(time.perf_counter() - begun, 1),
        "delta": training.privacy_.delta, "epsilon_opacus": told.opacus,
        "epsilon_dp_accounting": told.dp_accounting, "epsilon_tight": told.tight,
    }  # fmt: skip
    save_training(training, given.out, training=facts)
    load_training(given.out)  # finished means that all of it reads back
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_leftovers(given.out)
    return facts


def _check_free(out: Path) -> None:
    """Raise InvalidInputError where `out` holds more than the checkpoint of a stopped run."""
    if not is_free(out):
        is_done = (out / META).exists()
        raise InvalidInputError(
            f"{out} holds a model already: trained again on the same texts, they would cost ε "
            "twice. Choose another folder, or remove that one."
            if is_done
            else f"{out} exists and is not empty; choose another folder."
        )


def _show(given: argparse.Namespace, training: PrivateTraining, facts: dict[str, Any]) -> None:
    if given.json:
        show_json({**facts, "epsilon": given.epsilon, "out": str(given.out)})
        return
    print(f"{given.out}: a classifier of {len(facts['classes'])} classes for {given.encoder}, "
          f"trained on {facts['n_texts']:,} texts in {facts['seconds']:,.1f} s")  # fmt: skip
    print(f"  ε = {facts['epsilon_opacus']:.3f} by opacus, {facts['epsilon_dp_accounting']:.3f} by "
          f"dp-accounting, δ = {facts['delta']:g}; by the distribution of the privacy loss no more "
          f"than {facts['epsilon_tight']:.3f}")  # fmt: skip
    print("  That is promised of a text that stands there once. Of one that stands there more "
          "often, or of a person with several, less is.")  # fmt: skip
    print("Use it from Python: core.defences.trained.private.load_training"
          f"({str(given.out)!r}).answer(encoder, texts)")  # fmt: skip
