"""The majority baseline: answer the most frequent labels without reading the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.attack import Labels, check_fitted, check_labelled
from leakscope.core.protocols import OnProgress, no_progress


@dataclass
class MajorityAttack:
    """A baseline that ranks labels by their frequency in the fitted texts and reads no target.

    Fit it on labels as frequent as among the targets: labelled texts, which are equally many per
    label, do not show these frequencies.
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
        """Count the labels with add-one smoothing."""
        labels = check_labelled(texts, labels, n_labels)
        counts = np.bincount(labels, minlength=n_labels) + 1
        self.log_shares_ = np.log(counts / counts.sum()).astype(np.float32)
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the logarithm of each label's share, the same for every target."""
        check_fitted(self, "log_shares_")
        return np.tile(self.log_shares_, (len(texts), 1))
