"""The most frequent labels, whatever the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.attack import Labels, check_fitted, check_labelled
from core.protocols import OnProgress, no_progress

__all__ = ["MajorityAttack"]


@dataclass
class MajorityAttack:
    """Answers labels by how often they occur among the texts that it is fitted on; reads no target.

    Fit it on labels that are as frequent as among the targets: where as many texts of each label
    are labelled, these say nothing of it.
    """

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
        """Count the labels, each once more than it stands there."""
        labels = check_labelled(texts, labels, n_labels)
        counts = np.bincount(labels, minlength=n_labels) + 1
        self.log_shares_ = np.log(counts / counts.sum()).astype(np.float32)
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the logarithm of each label's share, the same for every target."""
        check_fitted(self, "log_shares_")
        return np.tile(self.log_shares_, (len(texts), 1))
