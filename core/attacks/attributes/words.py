"""The bag-of-words baseline: a linear classifier on the raw text, which sees no vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from leakscope.core.attacks.attributes.attack import Labels, check_fitted, check_labelled
from leakscope.core.attacks.attributes.tokens import tokens_of
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting


@dataclass
class WordsAttack:
    """Logistic regression on the tf-idf of words and punctuation, counted in the labelled texts.

    Solved to convergence, not trained for thirty epochs like the probe. In so few steps, Adam moves
    the weight of a word that occurred once as far as that of an informative word, and a weak
    baseline would make the probe look too strong.
    """

    strength: float = setting(10.0, "Inverse of the penalty", low=1e-6, high=1e6)
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
        counted = self.counter_.fit_transform(texts)
        self.n_labels_ = n_labels
        self.regression_ = LogisticRegression(C=self.strength, max_iter=200).fit(counted, labels)
        on_progress(1.0, f"Trained on {counted.shape[1]:,} words")
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return label log-probabilities from each target's words; -1e9 for labels not trained."""
        check_fitted(self, "regression_")
        known = self.regression_.predict_log_proba(self.counter_.transform(texts))
        found = np.full((len(texts), self.n_labels_), -1e9, np.float32)
        found[:, self.regression_.classes_] = known
        return found
