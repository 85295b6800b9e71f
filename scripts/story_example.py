"""Recover words of the story's example sentence: `python -m scripts.story_example`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from leakscope.core.attacks.inversion.reading import Reading, prior_words, read_vector
from leakscope.core.attacks.inversion.shipped import (
    n_training_texts,
    open_attack,
    shipped_digest,
    shipped_folder,
)
from leakscope.core.encoders import load_encoder
from leakscope.core.findings.reading import ATTACK, ENCODER, EXAMPLE, sample_text
from leakscope.core.protocols import Encoder
from leakscope.core.results.provenance import Stopwatch
from leakscope.core.storage.artifacts import write_sealed


def packed(reading: Reading, encoder: Encoder) -> dict[str, Any]:
    """Convert a reading to JSON-serialisable data, with what it depends on."""
    return {
        "of": {
            "text": reading.text,
            "attack": reading.attack,
            "weights": shipped_digest(encoder, reading.attack),
            "encoder": encoder.fingerprint,
        },
        "pieces": [[piece, mark.value] for piece, mark in reading.pieces],
        "wrong": [word.word for word in reading.wrong],
        "n_recovered": reading.n_recovered,
        "n_guessed": reading.n_guessed,
        "n_words": reading.n_words,
        "n_scored": len(reading.targets),
        "f1": reading.scores.f1,
        "prior_f1": reading.prior.f1,
        "n_queries": reading.recovery.n_queries,
        "n_texts": n_training_texts(shipped_folder(encoder, reading.attack)),
        "dimension": encoder.dimension,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack the vector of the story's example sentence and write the recovered words."""
    parser = argparse.ArgumentParser(prog="python -m scripts.story_example", description=__doc__)
    parser.parse_args(arguments)
    watch = Stopwatch()
    encoder = load_encoder(ENCODER)
    attack, text = open_attack(ATTACK, encoder), sample_text()
    prior = prior_words(encoder, attack, False)
    reading = read_vector(ATTACK, attack, encoder, text, encoder.encode([text]), prior)
    found = packed(reading, encoder)
    write_sealed(EXAMPLE, {**found, "provenance": watch.provenance().to_dict()})


if __name__ == "__main__":
    main()
