"""Privatise a column of texts of a file under d_χ-privacy, row by row."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.defences.metric_dp.files import ChangeTexts
    from core.protocols import Encoder

__all__ = ["MECHANISMS", "add_arguments", "run"]

WHEN_STOPPED = "No file was written."

MECHANISMS = ("text_to_text", "token_representation", "sequence_representation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `privatize`."""
    add_encoder_arguments(parser)
    parser.add_argument(
        "--mechanism",
        default="text_to_text",
        help=f"one of {', '.join(MECHANISMS)}; the last two write vectors, to Parquet",
    )
    parser.add_argument("--eta", type=float, required=True, help="privacy parameter, 1/distance")
    parser.add_argument("--in", dest="source", type=Path, required=True, metavar="FILE",
                        help="plain text, CSV, TSV, JSONL or Parquet")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FILE",
                        help="of the same kind, in UTF-8; must not exist")  # fmt: skip
    add_column_arguments(parser)
    parser.add_argument("--candidates", default="regular", help="regular, whole or all")
    parser.add_argument(
        "--seed",
        type=seed_number,
        help="repeats a measurement; never give one for what is released: it takes the noise off",
    )
    parser.add_argument("--json", action="store_true", help="write a summary to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Privatise the file and say how many rows were written."""
    if arguments.mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise InvalidInputError(f"--mechanism must be one of {known}, got {arguments.mechanism!r}.")
    if arguments.out.parent.is_dir():
        remove_leftovers(arguments.out.parent)
    if arguments.out.exists():
        raise InvalidInputError(f"{arguments.out} exists and is not overwritten.")
    columns = checked_columns(arguments.source, columns_of(arguments))
    from core.defences.metric_dp.noise import check_eta

    check_eta(arguments.eta)
    from core.defences.metric_dp.files import privatize_file
    from core.defences.metric_dp.promised import EXAMPLE, promises_at
    from core.encoders import load_encoder

    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        change = _change(encoder, arguments)
        promises = promises_at(
            encoder, arguments.mechanism, arguments.eta, candidates=arguments.candidates
        )
        start = time.perf_counter()
        n_rows = privatize_file(
            arguments.source,
            arguments.out,
            change,
            column=columns.text,
            on_progress=on_progress,
        )
        seconds = time.perf_counter() - start
    summary = {
        "mechanism": arguments.mechanism,
        "eta": arguments.eta,
        "encoder": encoder.name,
        "rows": n_rows,
        "seconds": seconds,
        "out": str(arguments.out),
        "promise": promises.to_dict(),
    }
    if arguments.json:
        show_json(summary)
    else:
        print(f"{n_rows:,} rows in {seconds:.1f} s: {arguments.out}")
        if not promises.is_of_texts:
            print(f"Of a text such as “{EXAMPLE}”:")
        print(*promises.sentences, sep="\n")


def _change(encoder: Encoder, arguments: argparse.Namespace) -> ChangeTexts:
    """Return what a mechanism does to a batch of texts."""
    from core.defences.metric_dp.mechanisms import TextPrivatizer
    from core.defences.protected import generator_of
    from core.defences.registry import make_defence
    from core.encoders.white_box import require_white_box
    from core.protocols import Vectors
    from core.specs import DefenceSpec

    if arguments.mechanism == "text_to_text":
        return TextPrivatizer(
            require_white_box(encoder, "text_to_text"),
            arguments.eta,
            candidates=arguments.candidates,
            rng=generator_of(arguments.seed),
        ).texts
    settings = {"eta": arguments.eta, "seed": arguments.seed}
    protected = make_defence(DefenceSpec.of(arguments.mechanism, settings)).protect(encoder)

    def encode(texts: Sequence[str]) -> Vectors:
        return protected.encode(texts)

    return encode
