"""Baselines that see no vector: the frequency of labels, and a bag of words of the raw text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from leakscope.core.attacks.attributes.attack import AttributeAttack, Labels, check_fitted
from leakscope.core.protocols import OnProgress
from leakscope.core.specs import setting

_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}\s]")


def tokens_of(text: str) -> list[str]:
    """Split a text into lower-cased words and single punctuation marks.

    Function words and punctuation are kept, because they carry style.

    Examples
    --------
    >>> tokens_of("Well, it is!")
    ['well', ',', 'it', 'is', '!']
    """
    found: list[str] = _TOKEN.findall(text.lower())
    return found


@dataclass
class MajorityAttack(AttributeAttack):
    """A baseline that ranks labels by their frequency in the fitted texts and reads no target.

    Fit it on labels as frequent as among the targets: labelled texts, which are equally many per
    label, do not show these frequencies.
    """

    def _learn(
        self, texts: Sequence[str], labels: Labels, vectors: Any, on_progress: OnProgress
    ) -> None:
        """Count how often each label occurs, with add-one smoothing; the texts are not read."""
        counts = np.bincount(labels, minlength=self.n_labels_) + 1
        self.log_shares_ = np.log(counts / counts.sum()).astype(np.float32)

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the logarithm of each label's share, (n, n_labels), the same for every target."""
        check_fitted(self, "log_shares_")
        return np.tile(self.log_shares_, (len(texts), 1))


@dataclass
class WordsAttack(AttributeAttack):
    """Logistic regression on the tf-idf of words and punctuation, counted in the labelled texts.

    Solved to convergence, not trained for thirty epochs like the probe. In so few steps, Adam moves
    the weight of a word that occurred once as far as that of an informative word, and a weak
    baseline would make the probe look too strong.
    """

    strength: float = setting(10.0, "Inverse of the penalty", low=1e-6, high=1e6)
    max_features: int = setting(2**16, "Words counted, the most frequent first", low=2)

    def _learn(
        self, texts: Sequence[str], labels: Labels, vectors: Any, on_progress: OnProgress
    ) -> None:
        """Count the words of labelled texts and fit the regression on their tf-idf."""
        self.counter_ = TfidfVectorizer(
            analyzer=tokens_of, max_features=self.max_features, dtype=np.float32
        )
        counted = self.counter_.fit_transform(texts)
        self.regression_ = LogisticRegression(C=self.strength, max_iter=200).fit(counted, labels)
        on_progress(1.0, f"Trained on {counted.shape[1]:,} words")

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return label log-probabilities from each target's words; -1e9 for labels never seen."""
        check_fitted(self, "regression_")
        known = self.regression_.predict_log_proba(self.counter_.transform(texts))
        found = np.full((len(texts), self.n_labels_), -1e9, np.float32)
        found[:, self.regression_.classes_] = known
        return found
