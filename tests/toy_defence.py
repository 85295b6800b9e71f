"""A defence in one file, as contributors write it: it clips vector entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.defences.registry import DefenceEntry
from leakscope.core.protocols import Encoder, OnProgress, Vectors
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """Clips every vector entry to [-bound, bound]."""

    bound: float = setting(
        0.05,
        "Greatest magnitude",
        low=0.0,
        strength=Strength("Greatest magnitude kept", 0.05, (0.01, 0.02, 0.05, 0.1)),
    )

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors are clipped."""

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            """Encode texts and clip the vectors."""
            return np.clip(encoder.encode(texts, on_progress), -self.bound, self.bound)

        return ProtectedEncoder.of(encoder, self, transform)


ENTRY = DefenceEntry(
    "Clipping",
    "Numbers beyond a bound are cut down to it.",
    "a test",
    f"{__name__}:Clipping",
    "vector",
    formula=r"\tilde e_i = \max(-b, \min(b, e_i))",
)
