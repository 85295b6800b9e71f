"""The prior-only baseline: an attacker who never sees the vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, rebind
from leakscope.core.attacks.inversion.decision import best_count
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, Vocabulary
from leakscope.core.vectors import n_rows


@dataclass
class PriorAttack:
    """A baseline that answers the same most frequent words for every vector.

    The number of words maximises the expected F1 under the auxiliary frequencies, so this is
    the strongest constant answer, not a straw man.
    """

    vocabulary_size: int = setting(20_000, "Words counted in the auxiliary texts", low=10)
    keep_stop_words: bool = setting(False, "Count stop words as words to find (SR20)")

    reads_sparse = True

    vocabulary_: Vocabulary = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Count the words of the auxiliary texts and keep the counts; vectors are not used."""
        stop_words = frozenset() if self.keep_stop_words else STOP_WORDS
        vocabulary = Vocabulary.count(texts, size=self.vocabulary_size, stop_words=stop_words)
        return self.fit_vocabulary(encoder, vocabulary)

    def fit_vocabulary(self, encoder: Encoder, vocabulary: Vocabulary) -> Self:
        """Set the word counts from a vocabulary instead of counting texts."""
        bind(self, encoder, vocabulary)
        return self

    def open(self, encoder: Encoder, on_progress: OnProgress = no_progress) -> Self:
        """Load the word counts that ship with the trained attacks, instead of fitting."""
        from leakscope.core.attacks.inversion.shipped import shipped_vocabulary

        return self.fit_vocabulary(encoder, shipped_vocabulary(encoder))

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return one answer per vector, always the same: the most frequent words."""
        vectors = check_fitted(self, encoder, vectors)
        counts = np.asarray(self.vocabulary_.document_frequency, dtype=np.float64)
        share = counts / self.vocabulary_.n_texts
        n_words = best_count(share)
        ranked = tuple(
            RecoveredWord(w, float(s)) for w, s in zip(self.vocabulary_.words, share, strict=True)
        )
        answer = Recovery(ranked[:n_words], runners_up=ranked[n_words : n_words + 25])
        return [answer] * n_rows(vectors)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: no arrays, and metadata with the vocabulary and its counts."""
        return {}, bound_meta(self)

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        rebind(self, meta)
        return self
