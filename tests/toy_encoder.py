"""An encoder in one file, as contributors write it: it counts letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

import numpy as np

from leakscope.core.encoders.fitted import Arrays, CorpusEncoder
from leakscope.core.encoders.registry import FittedEncoderEntry
from leakscope.core.protocols import OnProgress, Vectors
from leakscope.core.specs import setting


@dataclass
class LetterEncoder(CorpusEncoder):
    """Encodes a text by its letter frequencies relative to those of the corpus."""

    power: float = setting(0.5, "Of the counts", low=0.1, high=2.0)
    name: str = field(default="letters", init=False)
    dimension: int = field(default=len(ascii_lowercase) + 1, init=False)

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Compute the mean letter counts of the corpus."""
        usual = self._count(texts).mean(0) + np.float32(1e-3)
        on_progress(1.0, "counted")
        return {"usual": np.asarray(usual, np.float32)}

    def set_arrays(self, arrays: Arrays) -> None:
        """Take up the usual counts."""
        self.usual_ = arrays["usual"]

    def embed(self, texts: list[str], on_progress: OnProgress) -> Vectors:
        """Return letter counts relative to the corpus, float32 (n, 27); the last entry counts 1."""
        return np.asarray(self._count(texts) / self.usual_, np.float32)

    def vector_settings(self) -> dict[str, Any]:
        """Return the power."""
        return {"power": self.power}

    def _count(self, texts: Sequence[str]) -> Vectors:
        """Return the letter counts of texts, raised to the power."""
        rows = [[*map(text.lower().count, ascii_lowercase), 1] for text in texts]
        return np.asarray(rows, np.float32).reshape(-1, self.dimension) ** np.float32(self.power)


ENTRY = FittedEncoderEntry(
    "Letters",
    "Counts the letters of a text.",
    "a test",
    f"{__name__}:LetterEncoder",
    formula=r"\Phi(x)_a = n_a(x) / \bar n_a",
)
