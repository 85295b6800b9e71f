"""A defence in one file, as whoever adds one writes it: it clips numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.defences.protected import ProtectedEncoder
from core.defences.registry import DefenceEntry
from core.protocols import Encoder, OnProgress, Vectors
from core.ranges import Strength
from core.specs import setting

__all__ = ["ENTRY", "Clipping"]


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """Cuts every number that is greater than a bound down to it."""

    bound: float = setting(
        0.05,
        "Greatest magnitude",
        low=0.0,
        strength=Strength("Greatest magnitude kept", 0.05, (0.01, 0.02, 0.05, 0.1)),
    )

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of clipped vectors."""

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
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
