"""Encoding of 5,000 sentences from the disk cache, against encoding them again."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks import Measurement, seconds_of
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder

N_TEXTS = 5_000
REPEATS = 5


def measure() -> list[Measurement]:
    """Compare the time to read vectors from the cache with the time to encode the texts."""
    encoder = load_encoder("minilm")
    texts = list(dict.fromkeys(bundled_sentences()))[:N_TEXTS]
    encoder.encode(texts[:64])
    with tempfile.TemporaryDirectory() as folder:

        def encode() -> None:
            """Encode all texts through a newly opened cache."""
            CachedEncoder(encoder, Path(folder)).encode(texts)  # opened anew: reads and checks

        cold, *warm = (seconds_of(encode) for _ in range(1 + REPEATS))
    seconds = statistics.median(warm)
    note = f"{cold:.1f} s anew, written to the cache; {1000 * seconds:.0f} ms from it"
    return [
        Measurement(
            name=f"cached encoding, {len(texts):,} sentences",
            value=cold / seconds,
            unit="× faster",
            goal=50,
            n=REPEATS,
            note=note,
        )
    ]
