"""Privatise a column of texts of a file by a mechanism that promises something, row by row."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import (
    add_column_arguments,
    add_encoder_arguments,
    columns_of,
    encoder_spec,
    seed_number,
)
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_columns
from core.durable import remove_leftovers
from core.errors import InvalidInputError, similar

if TYPE_CHECKING:
    from core.defences.metric_dp.files import ChangeBatches, PrivatizedFile
    from core.defences.metric_dp.promise import Promises
    from core.defences.metric_dp.repeats import Repeats
    from core.defences.metric_dp.replaced import ReplacementRanks
    from core.protocols import Encoder, Vectors
    from core.specs import DefenceSpec

__all__ = ["MECHANISMS", "add_arguments", "run"]

WHEN_STOPPED = "No file was written."

MECHANISMS = (
    "text_to_text",
    "text_to_text_ranked",
    "token_representation",
    "sequence_representation",
    "santext",
    "santext_plus",
    "custext",
    "tem",
)
"""Those that promise something, in the order of the registry."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `privatize`."""
    add_encoder_arguments(parser)
    parser.add_argument(
        "--mechanism", "--defence", default="text_to_text", metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}, with settings of its own or others behind it, as in "
        "text_to_text:eta=60+int8; what ends in vectors is written to Parquet",
    )  # fmt: skip
    parser.add_argument("--eta", type=float, help="privacy parameter of d_χ-privacy, 1/distance")
    parser.add_argument(
        "--epsilon", type=float, help="privacy parameter of santext, santext_plus, custext and tem"
    )
    parser.add_argument("--in", dest="source", type=Path, required=True, metavar="FILE",
                        help="plain text, CSV, TSV, JSON, JSONL or Parquet")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FILE",
                        help="of the same kind in UTF-8, Parquet for vectors; new")  # fmt: skip
    parser.add_argument(
        "--beside", type=Path, metavar="FILE",
        help="before and after side by side, as CSV, to be checked by you: it holds the texts as "
        "they were and must not be released",
    )  # fmt: skip
    add_column_arguments(parser)
    parser.add_argument("--candidates", help="regular (the default), whole or all")
    parser.add_argument(
        "--seed",
        type=seed_number,
        help="repeats a measurement; never give one for what is released: it takes the noise off",
    )
    parser.add_argument("--json", action="store_true", help="write a summary to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Privatise the file and say how many rows were written."""
    if arguments.out.parent.is_dir():
        remove_leftovers(arguments.out.parent)
    if arguments.out.exists():
        raise InvalidInputError(f"{arguments.out} exists and is not overwritten.")
    columns = checked_columns(arguments.source, columns_of(arguments))
    spec = _spec(arguments)  # after the file: mechanisms need torch, which takes seconds
    from core.defences.metric_dp.beside import readable, side_by_side
    from core.defences.metric_dp.files import privatize_file
    from core.defences.metric_dp.repeats import Repeats
    from core.encoders import load_encoder

    repeats = Repeats()
    first = _first_of(spec)
    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        change = _change(encoder, spec, arguments.seed)
        start = time.perf_counter()
        with side_by_side(repeats.counting(readable(change)), arguments.beside) as change:
            done = privatize_file(
                arguments.source,
                arguments.out,
                change,
                column=columns.text,
                gives_vectors=_gives_vectors(spec),
                on_progress=on_progress,
            )
        seconds = time.perf_counter() - start
    promises = _promises(encoder, first, done.texts)
    ranks = _ranks(encoder, first, done.texts)
    _report(arguments, spec, encoder.name, (done, seconds), promises, ranks, repeats)


def _report(
    arguments: argparse.Namespace,
    spec: DefenceSpec,
    encoder: str,
    work: tuple[PrivatizedFile, float],
    promises: Promises,
    ranks: ReplacementRanks | None,
    repeats: Repeats,
) -> None:
    from core.defences.registry import guarantee_of

    done, seconds = work
    n_rows = done.n_rows
    summary = {
        "mechanism": spec.name,
        **dict(spec.settings),
        "encoder": encoder,
        "rows": n_rows,
        "seconds": seconds,
        "out": str(arguments.out),
        "guarantee": guarantee_of(spec),
        "promise": promises.to_dict(),
        "replacement_ranks": ranks and ranks.to_dict(),
        "repeats": repeats.to_dict(promises),
        "passed_through": done.passed.to_dict(),
    }
    if arguments.json:
        show_json(summary)
        return
    print(f"{n_rows:,} rows in {seconds:.1f} s: {arguments.out}")
    print(*done.passed.sentences, sep="\n")
    if done.texts and not promises.is_of_texts:
        print("For the text of median length among some of this file:")
    print(*promises.sentences, sep="\n")
    print(repeats.said(promises))
    if "+" in spec.name:
        print(f"The chain as a whole promises: {guarantee_of(spec) or 'nothing'}.")
    if ranks is not None:
        print(f"In texts of this file: {ranks.said[0].lower()}{ranks.said[1:]}")
    print("This summary counts what your texts hold: keep it, do not release it with the file.")


def _spec(arguments: argparse.Namespace) -> DefenceSpec:
    """Return the mechanism, or chain, with its strength and candidates where they stand apart.

    Raises
    ------
    InvalidInputError
        There is none, it promises nothing, or its strength is missing or no number it can have.
    """
    from core.defences.metric_dp.noise import check_eta
    from core.defences.registry import DEFENCES, make_defence, stages_of
    from core.defences.told import read_defence
    from core.specs import DefenceSpec, settings_of

    first = re.split("[:+]", arguments.mechanism)[0]
    if first in DEFENCES and first not in MECHANISMS:
        read_defence(arguments.mechanism, option="--mechanism")  # an order that works is named
    if first not in MECHANISMS:
        raise InvalidInputError(
            f"--mechanism must be one of {', '.join(MECHANISMS)}, or begin with one, got "
            f"{first!r}.{similar(first, MECHANISMS)}"
        )
    told = read_defence(arguments.mechanism, option="--mechanism")
    stages, settings = stages_of(told.name), dict(told.settings)
    head = f"{first}." if len(stages) > 1 else ""
    known = settings_of(DEFENCES[first].kind)
    for name in ("eta", "epsilon", "candidates"):
        value = getattr(arguments, name)
        if value is None:
            continue
        if name not in known:
            raise InvalidInputError(f"--{name} is none of {first}; it has {', '.join(known)}.")
        if name == "eta":
            check_eta(value)
        settings[f"{head}{name}"] = value
    strong = next(iter(DEFENCES[first].strengths))
    if f"{head}{strong}" not in settings:
        raise InvalidInputError(f"{first} needs its privacy parameter. Give --{strong}.")
    spec = DefenceSpec.of(told.name, settings)
    make_defence(spec)  # says what is wrong
    return spec


def _first_of(spec: DefenceSpec) -> DefenceSpec:
    """Return the first stage with its settings: what it promises, the rest keeps."""
    from core.defences.registry import stages_of
    from core.specs import DefenceSpec

    first, *others = stages_of(spec.name)
    settings = dict(spec.settings)
    if others:
        head = f"{first}."
        settings = {k.removeprefix(head): v for k, v in settings.items() if k.startswith(head)}
    return DefenceSpec.of(first, settings)


def _gives_vectors(spec: DefenceSpec) -> bool:
    """Return whether what is released are vectors rather than texts."""
    from core.defences.registry import DEFENCES, stages_of

    return DEFENCES[stages_of(spec.name)[-1]].acts_on != "text"


def _promises(encoder: Encoder, spec: DefenceSpec, texts: Sequence[str]) -> Promises:
    """Return what the mechanism promises for texts of the file, without quoting their words.

    Where the file holds too few texts to measure, sentences that ship stand for them, and what
    is promised names these.
    """
    from core.defences.metric_dp.choice_promise import promises_by, promises_of
    from core.defences.metric_dp.promised import distances_in
    from core.defences.registry import make_defence

    candidates = getattr(make_defence(spec), "candidates", "regular")
    found = distances_in(encoder, spec.name, texts, candidates)
    if found is None:
        promises = promises_of(encoder, spec)
        of = " (of sentences that ship: the file holds too few texts)"
        nearest = replace(promises.nearest, what=promises.nearest.what + of)
        return replace(promises, nearest=nearest)
    promises = promises_by(spec, found)
    if promises.is_of_texts or spec.name == "custext":  # these name no token
        return promises
    return replace(
        promises,
        nearest=replace(promises.nearest, what="one of its tokens from its nearest neighbour"),
        widest=replace(promises.widest, what="one of its tokens from the farthest one"),
    )


def _ranks(encoder: Encoder, spec: DefenceSpec, texts: Sequence[str]) -> ReplacementRanks | None:
    """Return what becomes of tokens of the file, where the mechanism releases a text."""
    from core.defences.metric_dp.noise import secure_generator
    from core.defences.metric_dp.replaced import ranks_in_texts
    from core.defences.registry import make_defence
    from core.encoders.white_box import require_white_box

    mechanism: Any = make_defence(spec)
    if not hasattr(mechanism, "privatizer"):
        return None
    known = require_white_box(encoder, spec.name)
    return ranks_in_texts(mechanism.privatizer(known, secure_generator()), texts)


def _change(encoder: Encoder, spec: DefenceSpec, seed: int | None) -> ChangeBatches:
    """Return what a mechanism does to batches of texts."""
    import numpy as np

    from core.defences.chain import Chain
    from core.defences.metric_dp.files import each
    from core.defences.metric_dp.texts import batches_of
    from core.defences.registry import make_defence
    from core.specs import DefenceSpec

    settings = {**dict(spec.settings), "seed": seed}
    defence: Any = make_defence(DefenceSpec.of(spec.name, settings))
    if not _gives_vectors(spec):
        if isinstance(defence, Chain):
            return defence.change_batches(encoder)
        return batches_of(defence, encoder)
    protected = defence.protect(encoder)

    def encode(texts: Sequence[str]) -> Vectors:
        return protected.encode(texts) if texts else np.zeros((0, protected.dimension), np.float32)

    return each(encode)
