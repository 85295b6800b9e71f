"""An inversion attack in one file, as contributors write it: it echoes the nearest text's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, check_vectors, rebind
from leakscope.core.attacks.inversion.registry import AttackEntry
from leakscope.core.protocols import Access, Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import Vocabulary
from leakscope.core.vectors import unit


@dataclass
class EchoAttack:
    """Answers the words of the auxiliary text with the nearest vector."""

    n_words: int = setting(
        5, "Echoed words, at most", low=1, high=50, at="answer", search=Uniform(1, 20)
    )
    vocabulary_size: int = setting(1000, "Words that can be echoed", low=10)

    answers_in_order = True

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Store the vectors of the texts and the words of each."""
        vocabulary = Vocabulary.count(texts, size=self.vocabulary_size)
        vectors = encoder.encode(texts, on_progress) if vectors is None else vectors
        self.vectors_ = check_vectors(vectors, encoder.dimension, len(texts))
        self.echoes_ = [sorted(vocabulary.targets(text)) for text in texts]
        bind(self, encoder, vocabulary)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the first words of the nearest text, each scored by the cosine."""
        vectors = check_fitted(self, encoder, vectors)
        cosines = unit(vectors) @ unit(self.vectors_).T
        return [self._echo(int(row.argmax()), float(row.max())) for row in cosines]

    def _echo(self, nearest: int, cosine: float) -> Recovery:
        """Return the first words of a text as a Recovery."""
        echo = self.echoes_[nearest][: self.n_words]
        return Recovery(tuple(RecoveredWord(word, cosine) for word in echo))

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the stored vectors and words."""
        return {"vectors": self.vectors_}, {**bound_meta(self), "echoes": self.echoes_}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        rebind(self, meta)
        self.vectors_ = np.asarray(arrays["vectors"], np.float32)
        self.echoes_ = [list(words) for words in meta["echoes"]]
        return self


ENTRY = AttackEntry(
    "Echo",
    "Echoes the words of the text whose vector is nearest.",
    "a test",
    f"{__name__}:EchoAttack",
    access=Access.PAIRS,
    is_live=True,
    score="cosine with the echoed text",
    formula=r"\text{echo} = \arg\max_{x'} \cos(\Phi(x), \Phi(x'))",
)
