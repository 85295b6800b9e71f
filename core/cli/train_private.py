"""Train a classifier of texts with differential privacy, and say what each text was promised."""

from __future__ import annotations

import argparse
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import columns_of, encoder_spec, parse_settings
from core.cli.lessons import (
    CHECKPOINT,
    add_lesson_arguments,
    check_limit,
    is_free,
    read_documents,
)
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_columns
from core.errors import InvalidInputError
from core.store import META, check_writable, clear_leftovers

if TYPE_CHECKING:
    from core.corpora.document import Document
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
    parser.add_argument("--person-column", metavar="NAME",
                        help="column of who a text belongs to, such as a user, or the sentence of "
                        "a phrase: the ε of all their texts together is told too")  # fmt: skip
    parser.add_argument(
        "--texts-per-person", type=int, metavar="K",
        help="texts that belong to one person at most, where no column says it",
    )  # fmt: skip
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="another setting of the training")  # fmt: skip
    add_lesson_arguments(parser, label="of the classes that are learned", rows="a row")


def run(arguments: argparse.Namespace) -> None:
    """Train, write the classifier, and tell its ε by both accountants."""
    columns = checked_columns(arguments.texts, columns_of(arguments, label=arguments.label_column))
    columns = replace(columns, author=arguments.person_column)
    most = arguments.texts_per_person
    if most is not None and most < 1:
        raise InvalidInputError(f"--texts-per-person must be at least 1, got {most}.")
    if arguments.label_column is None:
        raise InvalidInputError("Name the column of the classes: --label-column NAME.")
    check_limit(arguments.limit)
    _check_free(arguments.out)
    from core.training.accounting import Promise, check_installed

    documents = read_documents(arguments, columns)
    Promise(
        epsilon=arguments.epsilon, delta=arguments.delta, n_expected=len(documents)
    ).check()  # in words that name the remedy, before an encoder is loaded
    check_installed()
    training = _made(arguments)
    facts = _trained(training, arguments, documents, _most_a_person(documents, most))
    _show(arguments, training, facts)


def _most_a_person(documents: Sequence[Document], given: int | None) -> int | None:
    """Return the most texts of one person; None where nothing says whose they are.

    Raises
    ------
    InvalidInputError
        A person has more texts than was said, or some text has no person.
    """
    counts = Counter(document.author for document in documents)
    if set(counts) == {None}:
        return given
    if None in counts:
        raise InvalidInputError(
            f"--person-column names nobody for {counts[None]:,} of {len(documents):,} texts. Fill "
            "the column, or give --texts-per-person instead."
        )
    most = max(counts.values())
    if given is not None and most > given:
        raise InvalidInputError(
            f"--texts-per-person must be at least {most}, the most texts of one person here, got "
            f"{given}. Leave out that person's other texts, or raise it."
        )
    return given or most


def _made(given: argparse.Namespace) -> PrivateTraining:
    from core.defences.trained.private import PRIVATE_TRAININGS, make_training

    settings = parse_settings("head", PRIVATE_TRAININGS["head"].kind, given.settings)
    for name, option in _OWN.items():
        if name in settings:
            raise InvalidInputError(f"Give {name} by {option}, not by --set.")
        settings[name] = getattr(given, name)
    return make_training("head", settings)


def _trained(
    training: PrivateTraining, given: argparse.Namespace, documents: Sequence[Document],
    most: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Train and write; return what it was trained on, and what it spent."""
    from core.defences.trained.private import load_training, save_training
    from core.encoders import load_encoder
    from core.encoders.cache import CachedEncoder
    from core.training.accounting import GROUP, PUBLIC, UNIT, delta_warning

    texts, labels = [d.text for d in documents], [str(d.label) for d in documents]
    checkpoint = given.out / CHECKPOINT
    begun = time.perf_counter()
    with progress_line() as on_progress:
        encoder = CachedEncoder(load_encoder(encoder_spec(given)))
        check_writable(given.out)
        training.fit(
            encoder, texts, labels, on_progress=on_progress, checkpoint_dir=str(checkpoint)
        )
    told = training.privacy_.accounts()
    facts = {
        "encoder": given.encoder, "texts": given.texts.name, "n_texts": len(texts),
        "classes": list(training.classes_), "seconds": round(time.perf_counter() - begun, 1),
        "delta": training.privacy_.delta, "epsilon_opacus": told.opacus,
        "epsilon_dp_accounting": told.dp_accounting, "epsilon_tight": told.tight,
        "unit": UNIT, "texts_per_person": most,
        "epsilon_of_person": training.privacy_.of_copies(GROUP if most is None else most),
        "public": PUBLIC, "warning": delta_warning(training.privacy_.delta, len(texts)),
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
    print(f"  The unit is {facts['unit']}: this ε is of one text.")
    print(f"  {_person_said(facts)}")
    print(f"  {facts['public']}")
    if facts["warning"]:
        print(f"  Warning: {facts['warning']}")
    print("Use it from Python: core.defences.trained.private.load_training"
          f"({str(given.out)!r}).answer(encoder, texts)")  # fmt: skip


def _person_said(facts: dict[str, Any]) -> str:
    """Return the ε of all texts of one person, and by which bound."""
    most, epsilon = facts["texts_per_person"], facts["epsilon_of_person"]
    bound = "by group privacy: the loss of all of them together, at the same δ"
    if most is None:
        from core.training.accounting import GROUP

        return (
            f"Of a person with {GROUP} texts, or a sentence with {GROUP} phrases, it is "
            f"{epsilon:.3g} ({bound}). Say whose the texts are by --person-column or "
            "--texts-per-person."
        )
    if most == 1:
        return "Each text belongs to another person: of a person it is the same."
    return f"Of a person it is {epsilon:.3g}, who has up to {most:,} texts ({bound})."
