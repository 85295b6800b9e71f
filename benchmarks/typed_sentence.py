"""From a typed sentence to recovered words, against encoding alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import Measurement, interleaved_medians
from leakscope.core.attacks.inversion import open_attack
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder, InversionAttack, Vectors

GOALS = {"mlc": 1.5, "probe_mlc": 1.5, "msp": 3.0}
REPEATS = 200
SENTENCES = [
    "The patient was given insulin after her blood sugar rose on Thursday evening.",
    "Please transfer the remaining 300 pounds to my sister's account in Leeds.",
    "Police said that two men were arrested near the harbour after the fire.",
    "Shall we meet at the station at nine, or is it too early for you?",
    "The minister rejected calls for an inquiry into the sale of the company.",
    "Our flight to Lisbon was cancelled because of the storm, so we took a train.",
    "He forgot the keys again and had to climb through the kitchen window.",
]


def measure() -> list[Measurement]:
    """Compare the latency of encoding and attacking a typed sentence with encoding alone."""
    encoder = load_encoder("minilm")
    tasks: dict[str, Callable[[int], object]] = {"encoding": lambda i: encode(encoder, i)}
    for name in GOALS:
        try:
            attack = open_attack(name, encoder)
        except ArtifactError:  # no weights ship for it yet
            continue
        tasks[name] = partial(answer, attack, encoder)
    seconds = interleaved_medians(tasks, repeats=REPEATS)
    alone = seconds.pop("encoding")
    return [
        Measurement(
            name=f"typed sentence to words, {name}",
            value=median / alone,
            unit="× encoding alone",
            at_most=GOALS[name],
            n=REPEATS,
            note=f"{1000 * median:.1f} ms against {1000 * alone:.1f} ms",
        )
        for name, median in seconds.items()
    ]


def answer(attack: InversionAttack, encoder: Encoder, turn: int) -> object:
    """Encode the sentence of this turn, invert its vector and return the recovery."""
    return attack.invert(encoder, encode(encoder, turn))


def encode(encoder: Encoder, turn: int) -> Vectors:
    """Encode the sentence of this turn and return its vector."""
    return encoder.encode([SENTENCES[turn % len(SENTENCES)]])
