"""Privatise a column of texts, row by row, by a mechanism with a privacy guarantee."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    add_encoder_arguments,
    columns_of,
    encoder_spec,
    seed_number,
)
from leakscope.core.cli.shared.output import progress_line, show_json
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.metric_dp.noise import check_eta, secure_generator
from leakscope.core.defences.registry import DEFENCES, guarantee_of, make_defence
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.specs import DefenceSpec, settings_of
from leakscope.core.storage.atomic_files import remove_leftovers

if TYPE_CHECKING:
    from leakscope.core.defences.metric_dp.files import ChangeBatches
    from leakscope.core.defences.metric_dp.guarantee import Guarantees
    from leakscope.core.defences.metric_dp.replacement_ranks import ReplacementRanks
    from leakscope.core.protocols import Encoder, Vectors

EXAMPLE = "leakscope privatize --eta 75 --in letters.txt --out private.txt"
WHEN_STOPPED = "No file was written."

MECHANISMS = tuple(name for name, entry in DEFENCES.items() if entry.guarantee)
"""The mechanisms with a guarantee."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `privatize` to its parser."""
    add_encoder_arguments(parser)
    parser.add_argument(
        "--mechanism",
        "--defence",
        default="text_to_text",
        metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}, with its settings or further defences, as in "
        "text_to_text:eta=60+int8; vectors are written to Parquet",
    )
    parser.add_argument(
        "--eta", type=float, help="privacy parameter η of d_χ-privacy, in 1/distance"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help="privacy parameter ε of santext, santext_plus, custext and tem",
    )
    parser.add_argument(
        "--in",
        dest="source",
        type=Path,
        required=True,
        metavar="FILE",
        help="plain text, CSV, TSV, JSON, JSONL or Parquet",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="new file of the same kind in UTF-8, Parquet for vectors",
    )
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="FILE",
        help="CSV with each text before and after, for you to check; contains the original texts "
        "and must not be released",
    )
    add_column_arguments(parser)
    parser.add_argument("--candidates", help="replacement tokens: regular (default), whole or all")
    parser.add_argument(
        "--seed",
        type=seed_number,
        help="makes a measurement repeatable; never set it for a release: noise could be removed",
    )
    parser.add_argument("--json", action="store_true", help="write a summary to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Privatise a file's texts; print the number of rows written and the guarantee."""
    if arguments.out.parent.is_dir():
        remove_leftovers(arguments.out.parent)
    if arguments.out.exists():
        raise InvalidInputError(
            f"{arguments.out} exists and is not overwritten. Choose another file."
        )
    columns = checked_columns(arguments.source, columns_of(arguments))
    spec = _mechanism_spec(arguments)  # after the file: mechanisms need torch, which takes seconds
    from leakscope.core.defences.metric_dp.files import (
        RepeatCounter,
        privatize_file,
        strip_leading_mark,
        write_before_and_after,
    )
    from leakscope.core.defences.setting import first_of
    from leakscope.core.encoders import load_encoder

    repeats = RepeatCounter()
    first = first_of(spec)
    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        change = _make_batch_transform(encoder, spec, arguments.seed)
        start = time.perf_counter()
        with write_before_and_after(
            repeats.counted(strip_leading_mark(change)), arguments.beside
        ) as change:
            done = privatize_file(
                arguments.source,
                arguments.out,
                change,
                column=columns.text,
                gives_vectors=_gives_vectors(spec),
                on_progress=on_progress,
            )
        seconds = time.perf_counter() - start
    guarantees = _compute_guarantees(encoder, first, done.texts)
    ranks = _replacement_ranks(encoder, first, done.texts)
    summary = {
        "mechanism": spec.name,
        **dict(spec.settings),
        "encoder": encoder.name,
        "rows": done.n_rows,
        "seconds": seconds,
        "out": str(arguments.out),
        "guarantee": guarantee_of(spec),
        "promise": guarantees.to_dict(),
        "replacement_ranks": ranks and ranks.to_dict(),
        "repeats": repeats.to_dict(guarantees),
        "passed_through": done.passed.to_dict(),
    }
    if arguments.json:
        show_json(summary)
        return
    print(f"{done.n_rows:,} rows in {seconds:.1f} s: {arguments.out}")
    print(*done.passed.sentences, sep="\n")
    if done.texts and not guarantees.is_of_texts:
        print("For a text of median length in this file:")
    print(*guarantees.sentences, sep="\n")
    print(repeats.describe(guarantees))
    if "+" in spec.name:
        print(f"The chain as a whole guarantees: {guarantee_of(spec) or 'nothing'}.")
    if ranks is not None:
        print(f"In texts of this file: {ranks.sentence[0].lower()}{ranks.sentence[1:]}")
    print("This summary reveals counts from your texts: do not release it with the file.")


def _mechanism_spec(arguments: argparse.Namespace) -> DefenceSpec:
    """Parse and check the mechanism, or chain, with its privacy parameter and candidates.

    Raises
    ------
    InvalidInputError
        No such mechanism, one without a guarantee, or a missing or invalid privacy parameter.
    """
    first = re.split("[:+]", arguments.mechanism)[0]
    if first in DEFENCES and first not in MECHANISMS:
        read_defence(arguments.mechanism, option="--mechanism")  # its error names a valid order
    if first not in MECHANISMS:
        raise InvalidInputError(
            f"--mechanism must be one of {', '.join(MECHANISMS)}, or begin with one, got "
            f"{first!r}.{similar(first, MECHANISMS)}"
        )
    parsed = read_defence(arguments.mechanism, option="--mechanism")
    stages, settings = stages_of(parsed.name), dict(parsed.settings)
    head = f"{first}." if len(stages) > 1 else ""
    known = settings_of(DEFENCES[first].kind)
    for name in ("eta", "epsilon", "candidates"):
        value = getattr(arguments, name)
        if value is None:
            continue
        if name not in known:
            raise InvalidInputError(f"{first} has no setting --{name}; it has {', '.join(known)}.")
        if name == "eta":
            check_eta(value)
        settings[f"{head}{name}"] = value
    strong = next(iter(DEFENCES[first].strengths))
    if f"{head}{strong}" not in settings:
        raise InvalidInputError(f"{first} needs a privacy parameter. Give --{strong}.")
    spec = DefenceSpec.of(parsed.name, settings)
    make_defence(spec)  # raises an error for invalid settings
    return spec


def _gives_vectors(spec: DefenceSpec) -> bool:
    """Return whether the mechanism releases vectors rather than texts."""
    return DEFENCES[stages_of(spec.name)[-1]].acts_on != "text"


def _compute_guarantees(encoder: Encoder, spec: DefenceSpec, texts: Sequence[str]) -> Guarantees:
    """Compute the mechanism's guarantees for the file's texts, without quoting their words.

    If the file holds too few texts to measure, shipped sentences are used instead, and the
    guarantees say so.
    """
    from leakscope.core.defences.metric_dp.distances import distances_of_texts
    from leakscope.core.defences.metric_dp.exponential_guarantee import (
        guarantees_from_distances,
        guarantees_of,
    )

    candidates = getattr(make_defence(spec), "candidates", "regular")
    found = distances_of_texts(encoder, spec.name, texts, candidates)
    if found is None:
        guarantees = guarantees_of(encoder, spec)
        of = " (measured on bundled sentences: the file has too few texts)"
        nearest = replace(guarantees.nearest, what=guarantees.nearest.what + of)
        return replace(guarantees, nearest=nearest)
    guarantees = guarantees_from_distances(spec, found)
    if guarantees.is_of_texts or spec.name == "custext":  # these guarantees name no token
        return guarantees
    return replace(
        guarantees,
        nearest=replace(guarantees.nearest, what="one of its tokens and its nearest neighbour"),
        widest=replace(guarantees.widest, what="one of its tokens and the farthest one"),
    )


def _replacement_ranks(
    encoder: Encoder, spec: DefenceSpec, texts: Sequence[str]
) -> ReplacementRanks | None:
    """Measure how far replacements are from the file's tokens; None if no text is released."""
    from leakscope.core.defences.metric_dp.replacement_ranks import ranks_in_texts

    mechanism: Any = make_defence(spec)
    if not hasattr(mechanism, "privatizer"):
        return None
    known = require_white_box(encoder, spec.name)
    return ranks_in_texts(mechanism.privatizer(known, secure_generator()), texts)


def _make_batch_transform(encoder: Encoder, spec: DefenceSpec, seed: int | None) -> ChangeBatches:
    """Return a function that turns batches of texts into privatised texts or vectors."""
    import numpy as np

    from leakscope.core.defences.chain import Chain
    from leakscope.core.defences.metric_dp.files import map_batches
    from leakscope.core.defences.metric_dp.texts import batch_privatiser

    settings = {**dict(spec.settings), "seed": seed}
    defence: Any = make_defence(DefenceSpec.of(spec.name, settings))
    if not _gives_vectors(spec):
        if isinstance(defence, Chain):
            return defence.change_batches(encoder)
        return batch_privatiser(defence, encoder)
    protected = defence.protect(encoder)

    def encode(texts: Sequence[str]) -> Vectors:
        """Encode texts and return their protected vectors."""
        return protected.encode(texts) if texts else np.zeros((0, protected.dimension), np.float32)

    return map_batches(encode)
