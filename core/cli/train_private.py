"""Train a text classifier with differential privacy, and state each text's privacy guarantee."""

from __future__ import annotations

import argparse
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.arguments import (
    add_set_argument,
    columns_of,
    encoder_spec,
    parse_settings,
)
from leakscope.core.cli.shared.output import progress_line, show_json
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.cli.shared.training_arguments import (
    CHECKPOINT,
    add_training_arguments,
    check_limit,
    is_free,
    read_documents,
)
from leakscope.core.corpora.document import Document
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import META, check_writable, clear_leftovers
from leakscope.core.training.accounting import (
    DELTA,
    GROUP,
    PUBLIC,
    UNIT,
    Guarantee,
    check_installed,
    delta_warning,
)

if TYPE_CHECKING:
    from leakscope.core.defences.trained.private import PrivateTraining

EXAMPLE = "leakscope train-private --texts letters.csv --label-column kind --out my-classifier"
WHEN_STOPPED = "The same command resumes from its last checkpoint, privacy accountant included."

_OWN = {"epsilon": "--epsilon", "delta": "--delta"}
"""Settings with their own option."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `train-private` to its parser."""
    parser.add_argument(
        "--epsilon",
        type=float,
        default=8.0,
        help="privacy budget of a text; the smaller, the more private (default: 8)",
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=DELTA,
        help=f"probability δ, below 1 / number of texts (default: {DELTA:g})",
    )
    parser.add_argument(
        "--person-column",
        metavar="NAME",
        help="column of a text's owner, such as a user, or the sentence of a phrase; the ε of all "
        "texts of one owner is also reported",
    )
    parser.add_argument(
        "--texts-per-person",
        type=int,
        metavar="K",
        help="maximum number of texts of one person, if no column names the person",
    )
    add_set_argument(parser, "another setting of the training")
    add_training_arguments(parser, label="of the classes that are learned", rows="a row")


def run(arguments: argparse.Namespace) -> None:
    """Train a private classifier, write it, and print its ε by each accountant."""
    columns = checked_columns(arguments.texts, columns_of(arguments, label=arguments.label_column))
    columns = replace(columns, author=arguments.person_column)
    most = arguments.texts_per_person
    if most is not None and most < 1:
        raise InvalidInputError(f"--texts-per-person must be at least 1, got {most}.")
    if arguments.label_column is None:
        raise InvalidInputError("The column of the classes is missing. Give --label-column NAME.")
    check_limit(arguments.limit)
    _check_free(arguments.out)

    documents = read_documents(arguments, columns)
    Guarantee(
        epsilon=arguments.epsilon, delta=arguments.delta, n_expected=len(documents)
    ).check()  # in words that name the remedy, before an encoder is loaded
    check_installed()
    training = _make_training(arguments)
    facts = _train_and_save(training, arguments, documents, _most_texts_per_person(documents, most))
    _print_result(arguments, facts)


def _most_texts_per_person(documents: Sequence[Document], given: int | None) -> int | None:
    """Return the largest number of texts of one person; None if it is neither counted nor given.

    Raises
    ------
    InvalidInputError
        A person has more texts than `--texts-per-person`, or a text has no person.
    """
    counts = Counter(document.author for document in documents)
    if set(counts) == {None}:
        return given
    if None in counts:
        raise InvalidInputError(
            f"--person-column is empty for {counts[None]:,} of {len(documents):,} texts. Fill in "
            "the column, or give --texts-per-person instead."
        )
    most = max(counts.values())
    if given is not None and most > given:
        raise InvalidInputError(
            f"--texts-per-person must be at least {most}, the most texts of one person here, got "
            f"{given}. Leave out some texts of that person, or raise the number."
        )
    return given or most


def _make_training(given: argparse.Namespace) -> PrivateTraining:
    """Build the private training, not yet run, from the parsed arguments."""
    from leakscope.core.defences.trained.private import PRIVATE_TRAININGS, make_training

    settings = parse_settings("head", PRIVATE_TRAININGS["head"].kind, given.settings)
    for name, option in _OWN.items():
        if name in settings:
            raise InvalidInputError(f"Give {name} with {option}, not with --set.")
        settings[name] = getattr(given, name)
    return make_training("head", settings)


def _train_and_save(
    training: PrivateTraining,
    given: argparse.Namespace,
    documents: Sequence[Document],
    most: int | None,
) -> dict[str, Any]:
    """Train a private classifier on documents, save it, and return training and privacy facts."""
    from leakscope.core.defences.trained.private import load_training, save_training
    from leakscope.core.encoders import load_encoder

    texts, labels = [d.text for d in documents], [str(d.label) for d in documents]
    checkpoint = given.out / CHECKPOINT
    begun = time.perf_counter()
    with progress_line() as on_progress:
        encoder = CachedEncoder(load_encoder(encoder_spec(given)))
        check_writable(given.out)
        training.fit(
            encoder, texts, labels, on_progress=on_progress, checkpoint_dir=str(checkpoint)
        )
    epsilons = training.privacy_.epsilons()
    facts = {
        "encoder": given.encoder,
        "texts": given.texts.name,
        "n_texts": len(texts),
        "classes": list(training.classes_),
        "seconds": round(time.perf_counter() - begun, 1),
        "delta": training.privacy_.delta,
        "epsilon_opacus": epsilons.opacus,
        "epsilon_dp_accounting": epsilons.dp_accounting,
        "epsilon_tight": epsilons.tight,
        "unit": UNIT,
        "texts_per_person": most,
        "epsilon_of_person": training.privacy_.of_copies(GROUP if most is None else most),
        "public": PUBLIC,
        "warning": delta_warning(training.privacy_.delta, len(texts)),
    }
    save_training(training, given.out, training=facts)
    load_training(given.out)  # a run is finished once the model loads
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_leftovers(given.out)
    return facts


def _check_free(out: Path) -> None:
    """Raise InvalidInputError if `out` holds more than the checkpoint of a stopped run."""
    if not is_free(out):
        is_done = (out / META).exists()
        raise InvalidInputError(
            f"{out} already contains a model. Training again on the same texts would spend ε "
            "twice. Choose another folder, or remove this one."
            if is_done
            else f"{out} exists and is not empty. Choose another folder."
        )


def _print_result(given: argparse.Namespace, facts: dict[str, Any]) -> None:
    """Print the classifier's facts and its ε for a text and for a person, or write JSON."""
    if given.json:
        show_json({**facts, "epsilon": given.epsilon, "out": str(given.out)})
        return
    print(
        f"{given.out}: a classifier of {len(facts['classes'])} classes for {given.encoder}, "
        f"trained on {facts['n_texts']:,} texts in {facts['seconds']:,.1f} s"
    )
    print(
        f"  ε = {facts['epsilon_opacus']:.3f} by opacus, {facts['epsilon_dp_accounting']:.3f} by "
        f"dp-accounting, δ = {facts['delta']:g}; at most {facts['epsilon_tight']:.3f} by the "
        "distribution of the privacy loss"
    )
    print(f"  The unit is {facts['unit']}: this ε holds for one text.")
    print(f"  {_describe_person(facts)}")
    print(f"  {facts['public']}")
    if facts["warning"]:
        print(f"  Warning: {facts['warning']}")
    print(
        "Use it from Python: leakscope.core.defences.trained.private.load_training"
        f"({str(given.out)!r}).answer(encoder, texts)"
    )


def _describe_person(facts: dict[str, Any]) -> str:
    """Return a sentence on the ε of all training texts of one person, by group privacy."""
    most, epsilon = facts["texts_per_person"], facts["epsilon_of_person"]
    bound = "by group privacy: the loss of all of them together, at the same δ"
    if most is None:
        return (
            f"For a person with {GROUP} texts, or a sentence with {GROUP} phrases, it is "
            f"{epsilon:.3g} ({bound}). State whose texts they are with --person-column or "
            "--texts-per-person."
        )
    if most == 1:
        return "Each text belongs to a different person: the ε of a person is the same."
    return f"For a person with up to {most:,} texts it is {epsilon:.3g} ({bound})."
