"""One sentence as an attacker reads it: the reading ships, and no slide waits for encoders."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any

from core.assets import ASSETS
from core.attacks.inversion.reading import Mark, Reading, prior_words, read_vector
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.inversion.sentence import read_said, scored_said
from core.attacks.inversion.shipped import (
    n_taught_by,
    open_attack,
    shipped_digest,
    shipped_folder,
)
from core.encoders import load_encoder
from core.errors import ArtifactError
from core.protocols import Encoder
from core.store import UNFIT, read_json, read_sealed, write_sealed
from core.story.format import Slide
from core.story.views_read import F1_TOLD, origin
from core.studies.provenance import Provenance, Stopwatch

__all__ = ["ATTACK", "EXAMPLE", "SAMPLES", "example", "main", "packed", "sample_text"]

EXAMPLE = ASSETS / "story" / "example.json"
SAMPLES = ASSETS / "samples" / "samples.json"
"""Sentences to try; people and events are invented."""
ATTACK = "search"
ENCODER = "minilm"
_REMEDY = "Make it anew: python -m core.story.example"


def sample_text() -> str:
    """Return the sentence that the overview opens with, too.

    Raises
    ------
    ArtifactError
        The file of samples is missing, damaged, or holds no sentence.
    """
    samples = read_json(SAMPLES)
    try:
        return str(samples[0]["text"])
    except UNFIT as error:
        raise ArtifactError(f"{SAMPLES} holds no sentence ({error!r}). Restore it.") from error


def packed(reading: Reading, encoder: Encoder) -> dict[str, Any]:
    """Return what is shown of a reading, and what it depends on."""
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
        "n_texts": n_taught_by(shipped_folder(encoder, reading.attack)),
        "dimension": encoder.dimension,
    }


def example() -> Slide:
    """Return an invented sentence with the words marked that are read from its vector.

    Raises
    ------
    ArtifactError
        The file is missing, damaged, or of another sentence; the message names the remedy.
    """
    found, _ = read_sealed(EXAMPLE, _REMEDY)
    try:
        return _slide(found)
    except UNFIT as error:
        raise ArtifactError(f"{EXAMPLE} holds no reading ({error}). {_REMEDY}") from error


def _slide(found: dict[str, Any]) -> Slide:
    if found["of"]["text"] != sample_text():
        raise ArtifactError(f"{EXAMPLE} is of a sentence that ships no more. {_REMEDY}")
    entry = INVERSION_ATTACKS[found["of"]["attack"]]
    n_unnamed = found["n_words"] - found["n_scored"]
    wrong = ", ".join(found["wrong"])
    beside = f" Words that it answers and that are not there: {wrong}." if wrong else ""
    return Slide(
        title=read_said(found["n_recovered"], found["n_scored"], n_unnamed),
        body=f"An invented e-mail became {found['dimension']:,} numbers, and nothing else was "
        f"kept. From these alone, the {entry.title.lower()} reads the marked words.{beside} "
        f"That is an F1 of **{found['f1']:.0f}**; whoever guesses without the numbers reads "
        f"{found['n_guessed'] or 'none'} of them (F1 {found['prior_f1']:.0f}). {F1_TOLD}.",
        sentence=tuple((str(piece), Mark(mark).value) for piece, mark in found["pieces"]),
        facts=(
            ("Data", "one invented sentence, an example"),
            ("n", f"1 sentence; scores count {scored_said(found['n_scored'], n_unnamed)}"),
            ("Interval", "none: a sentence is no measurement"),
            ("Attacker", entry.title),
            ("Access", entry.access.needs),
            ("Cost", f"taught by {found['n_texts']:,} sentences; {found['n_queries']} queries"),
            *origin([_provenance(found)]),
        ),
        commands=(_command(str(found["of"]["text"])),),
        live=(("text", str(found["of"]["text"])), ("attack", ATTACK)),
    )


def _command(text: str) -> str:
    asked = ("invert", "--encoder", ENCODER, "--attack", ATTACK, "--text", text)
    return shlex.join(["python", "-m", "core", *asked])


def _provenance(found: dict[str, Any]) -> Provenance:
    return Provenance.from_dict(found["provenance"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the sentence and write what was read."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    watch = Stopwatch()
    encoder = load_encoder(ENCODER)
    attack, text = open_attack(ATTACK, encoder), sample_text()
    prior = prior_words(encoder, attack, False)
    reading = read_vector(ATTACK, attack, encoder, text, encoder.encode([text]), prior)
    found = packed(reading, encoder)
    write_sealed(EXAMPLE, {**found, "provenance": watch.provenance().to_dict()})


if __name__ == "__main__":
    main()
