"""A fast encoder for tests that records the texts it was given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope.core.protocols import OnProgress, Vectors, no_progress


class CountingEncoder:
    """Encodes a text as random numbers seeded by its bytes, and records its inputs."""

    name = "counting"
    dimension = 4
    fingerprint = "f" * 64
    precision = "float32"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        self.asked += texts
        out = np.empty((len(texts), self.dimension), np.float32)
        for i, text in enumerate(texts):
            seed = list(text.encode())
            out[i] = np.random.default_rng(seed).normal(size=self.dimension)
        on_progress(1.0, "done")
        return out
