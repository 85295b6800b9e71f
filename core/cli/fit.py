"""Fit an encoder on a corpus: tf-idf, hashing, LSA, Doc2Vec, word vectors."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.arguments import parse_settings
from core.cli.output import progress_line, show_json
from core.errors import InvalidInputError
from core.specs import FittedEncoderSpec

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `fit`."""
    from core.encoders.fitted import FITTED_ENCODERS

    parser.add_argument("--encoder", required=True, help=f"one of {', '.join(FITTED_ENCODERS)}")
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="a setting of the encoder")  # fmt: skip
    parser.add_argument("--corpus", required=True, help="bundled, a file, or another source")
    parser.add_argument("--limit", type=int, help="sentences taken, from the first")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="written here")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Fit, write the encoder, and say how to use it."""
    from core.corpora import load_corpus
    from core.encoders.fitted import FITTED_ENCODERS, make_encoder, save_encoder

    family = FITTED_ENCODERS.get(arguments.encoder)
    if family is None:
        known = ", ".join(FITTED_ENCODERS)
        raise InvalidInputError(f"--encoder must be one of {known}, got {arguments.encoder!r}.")
    if arguments.limit is not None and arguments.limit < 2:
        raise InvalidInputError(f"--limit must be at least 2, got {arguments.limit}.")
    settings = parse_settings(arguments.encoder, family.kind, arguments.settings)
    encoder = make_encoder(FittedEncoderSpec.of(arguments.encoder, settings))
    if arguments.out.exists() and (not arguments.out.is_dir() or any(arguments.out.iterdir())):
        raise InvalidInputError(f"{arguments.out} exists and is not empty; choose another folder.")
    with progress_line() as on_progress:
        corpus = load_corpus(arguments.corpus)
        texts = corpus.sentences().texts[: arguments.limit]
        encoder.fit(texts, on_progress=on_progress)
    facts = {"corpus": corpus.name, "corpus_hash": corpus.content_hash, "n_texts": len(texts)}
    save_encoder(encoder, arguments.out, training=facts)
    name = f"{encoder.name}:{arguments.out}"
    if arguments.json:
        show_json({"encoder": name, "dimension": encoder.dimension,
                   "fingerprint": encoder.fingerprint, **facts})  # fmt: skip
    else:
        print(f"{name}: {encoder.dimension:,} dimensions, fitted on {len(texts):,} sentences")
        print(f"Use it as --encoder {name}")
