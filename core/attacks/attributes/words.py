"""A linear classifier on the words of the raw text: what needs no vector to be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from core.attacks.attributes.attack import Labels, check_fitted, check_labelled
from core.attacks.attributes.program import Problem, Recipe
from core.attacks.attributes.sparse_program import train_sparse
from core.attacks.attributes.tokens import tokens_of
from core.protocols import OnProgress, no_progress
from core.specs import setting

__all__ = ["WordsAttack"]


@dataclass
class WordsAttack:
    """Softmax regression on the tf-idf of words and signs, counted in the labelled texts alone.

    Trained as the linear probe is.
    """

    rate: float = setting(1e-3, "Learning rate of Adam", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(30, "Times that all labelled texts are seen", low=1, paper="SR20")
    batch_size: int = setting(128, "Texts a step", low=1, high=2**16, paper="SR20")
    max_features: int = setting(2**16, "Words counted, the most frequent first", low=2)

    def fit(
        self,
        texts: Sequence[str],
        labels: Labels,
        vectors: Any = None,
        *,
        n_labels: int,
        seed: int = 0,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Learn from the words of labelled texts; their vectors are not read."""
        labels = check_labelled(texts, labels, n_labels)
        self.counter_ = TfidfVectorizer(
            analyzer=tokens_of, max_features=self.max_features, dtype=np.float32
        )
        counted = sparse.csr_array(self.counter_.fit_transform(texts))
        problem = Problem(np.arange(len(labels)), labels, n_labels, seed)
        recipe = Recipe(self.rate, self.epochs, self.batch_size)
        self.linear_ = train_sparse(counted, problem, recipe)
        on_progress(1.0, f"Learnt from {counted.shape[1]:,} words")
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the scores of each target's words; words that were not labelled count nothing."""
        check_fitted(self, "linear_")
        return self.linear_.scores(sparse.csr_array(self.counter_.transform(texts)))
