"""An encoder in one file, as whoever adds one writes it: it counts letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.encoders.fitted import check_ready, fingerprint_of, training_texts
from core.encoders.registry import FittedEncoderEntry
from core.protocols import OnProgress, Vectors, no_progress
from core.specs import setting
from core.text import check_texts

__all__ = ["ENTRY", "LetterEncoder"]


@dataclass
class LetterEncoder:
    """How often each letter stands in a text, beside how often it does in all."""

    power: float = setting(0.5, "Of the counts", low=0.1, high=2.0)
    name: str = field(default="letters", init=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)
    dimension: int = field(default=len(ascii_lowercase) + 1, init=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Count all letters."""
        rows = self._count(training_texts(texts))
        on_progress(1.0, "counted")
        return self._use(rows.mean(0) + np.float32(1e-3))

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, 27) float32 counts over the usual counts; the last is 1."""
        check_ready(self)
        return np.asarray(self._count(check_texts(texts)) / self.usual_, np.float32)

    def _count(self, texts: Sequence[str]) -> Vectors:
        rows = [[*map(text.lower().count, ascii_lowercase), 1] for text in texts]
        return np.asarray(rows, np.float32).reshape(-1, self.dimension) ** np.float32(self.power)

    def _use(self, usual: NDArray[np.float32]) -> Self:
        self.usual_ = np.asarray(usual, np.float32)
        self.fingerprint = fingerprint_of(self, *self.state())
        return self

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the usual counts."""
        return {"usual": self.usual_}, {"power": self.power}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        return self._use(arrays["usual"])


ENTRY = FittedEncoderEntry(
    "Letters",
    "Counts the letters of a text.",
    "a test",
    f"{__name__}:LetterEncoder",
    formula=r"\Phi(x)_a = n_a(x) / \bar n_a",
)
