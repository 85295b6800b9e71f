"""Server time for a move of the η slider and for a new sentence."""

from __future__ import annotations

import statistics
import time

from benchmarks import Measurement

N_MOVES = 60
SENTENCES = (
    "The auditors found that the treasurer of the rowing club had paid his rent with its fees.",
    "Please tell the night nurse that the patient in room nine is allergic to penicillin and nuts.",
    "Our landlord in Bruges sold the house last week, so we have to move out before the winter.",
    "The prototype failed twice in the climate chamber because a seal behind the pump was brittle.",
)


def measure() -> list[Measurement]:
    """Measure the deniability engine's response time to slider moves and to new sentences."""
    import numpy as np

    from leakscope.core.defences.deniability.engine import DeniabilityEngine
    from leakscope.core.defences.deniability.sentence import DeniableSentence
    from leakscope.core.defences.metric_dp.candidates import candidate_ids
    from leakscope.core.encoders.minilm import load_minilm

    encoder = load_minilm(device="cpu")
    engine = DeniabilityEngine(encoder.token_vectors.numpy(), candidate_ids(encoder))
    DeniableSentence(encoder, engine, "compiled before the clock runs")
    typed, moved, lengths = [], [], []
    rng = np.random.default_rng(0)
    for turn in range(len(SENTENCES) * 3):
        start = time.perf_counter()
        sentence = DeniableSentence(encoder, engine, SENTENCES[turn % len(SENTENCES)])
        typed.append(time.perf_counter() - start)
        lengths.append(len(sentence.ids))
        for eta in rng.uniform(15, 200, N_MOVES // 6):
            start = time.perf_counter()
            sentence.at(float(eta))
            sentence.unchanged(float(eta))
            sentence.privatised(engine, float(eta), turn)
            moved.append(time.perf_counter() - start)
    tokens = f"{statistics.mean(lengths):.0f} tokens on average, 1,000 draws"
    return [
        Measurement(
            name="a move of the slider, the page's numbers",
            value=1000 * statistics.median(moved),
            unit="ms",
            at_most=100,
            n=len(moved),
            note=f"median; {tokens}",
        ),
        Measurement(
            name="a new sentence, at every η",
            value=1000 * statistics.median(typed),
            unit="ms",
            at_most=300,
            n=len(typed),
            note="median",
        ),
    ]
