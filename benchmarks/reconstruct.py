"""Reconstruction of a 12-word sentence with 1,000 queries, against encoding the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks import Measurement, seconds_of
from leakscope.core.attacks.inversion import open_attack
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.specs import AttackSpec

N_QUERIES = 1000
ROUNDS = 3
SECONDS, RATIO = 3.0, 1.4
SENTENCES = [
    "The patient was given insulin after her blood sugar rose on Thursday.",
    "Please send the remaining money to the account of my sister today.",
    "Police said that two men were arrested near the harbour last night.",
    "The minister rejected calls for an inquiry into the sale of land.",
    "Our flight to Lisbon was cancelled and so we took the train.",
    "He forgot the keys again and had to climb through the window.",
    "She wrote three long letters to her brother who lives in Vienna.",
    "They found an old map of the island under the wooden floor.",
]


class RecordingEncoder:
    """An encoder that records its calls."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint, self._encoder = encoder.fingerprint, encoder
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Record the texts and return their vectors from the wrapped encoder."""
        self.calls.append(list(texts))
        return self._encoder.encode(texts, on_progress)


def measure() -> list[Measurement]:
    """Compare the time of reconstructing sentences with the time of encoding the same texts."""
    encoder = load_encoder("minilm")
    assert isinstance(encoder, TransformerEncoder)
    quick = encoder.quick()
    attack = open_attack(AttackSpec.of("reconstruct", {"n_queries": N_QUERIES}), encoder)
    vectors = encoder.encode(SENTENCES)
    recorder = RecordingEncoder(quick)
    answers = attack.invert(recorder, vectors)  # also warms what is compiled
    whole, alone = [], []
    for _ in range(ROUNDS):
        whole.append(seconds_of(lambda: attack.invert(encoder, vectors)))
        alone.append(seconds_of(lambda: [quick.encode(call) for call in recorder.calls]))
    n = len(SENTENCES)
    n_asked = sum(answer.n_queries for answer in answers) / n
    note = f"{n_asked:,.0f} queries a sentence, {quick.precision}, {quick.backend}"
    return [
        Measurement(
            name="sentence read back, batch of eight",
            value=median(whole) / n,
            unit="s a sentence",
            at_most=SECONDS,
            n=ROUNDS,
            note=note,
        ),
        Measurement(
            name="sentence read back, ratio",
            value=median(w / a for w, a in zip(whole, alone, strict=True)),
            unit="× encoding alone",
            at_most=RATIO,
            n=ROUNDS,
            note=f"{median(whole) / n:.2f} s against {median(alone) / n:.2f} s",
        ),
    ]
