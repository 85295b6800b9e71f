"""Latent semantic analysis: a bag of words reduced to its strongest directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD

from core.encoders.bag_of_words import HashingEncoder, TfidfEncoder
from core.encoders.fitted import check_ready, fingerprint_of, training_texts
from core.errors import InvalidInputError
from core.protocols import OnProgress, Vectors, no_progress
from core.specs import setting
from core.vectors import unit

__all__ = ["LSAEncoder"]

_BASES: dict[str, type[TfidfEncoder] | type[HashingEncoder]] = {
    "tfidf": TfidfEncoder,
    "hashing": HashingEncoder,
}


@dataclass
class LSAEncoder:
    """The truncated singular value decomposition of a bag of words, of unit length.

    The settings of Corò (2022), §4.1.2: 1,000 dimensions. Fewer where the texts or their words
    are fewer. Columns that no training text fills are dropped: nothing was learned of them.
    """

    base: str = setting("tfidf", "The bag of words below", choices=tuple(_BASES))
    n_components: int = setting(1000, "Dimensions", low=1, high=10_000, paper="C22")
    seed: int = setting(0, "Of the randomised decomposition", low=0)
    name: str = field(default="lsa", init=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fit the bag of words, then decompose its rows.

        Raises
        ------
        InvalidInputError
            Fewer than three texts, or fewer than three words.
        """
        checked = training_texts(texts, at_least=3)
        bag = _BASES[self.base]().fit(checked, on_progress=on_progress)
        rows = bag.encode(checked)
        columns = np.unique(rows.indices)
        if len(columns) < 3:
            raise InvalidInputError("The texts hold too few words; give a larger corpus.")
        on_progress(0.2, f"Decomposing {rows.shape[0]:,} × {len(columns):,}")
        svd = TruncatedSVD(
            min(self.n_components, min(rows.shape[0], len(columns)) - 1), random_state=self.seed
        )
        svd.fit(rows[:, columns])
        return self._use(bag, columns, svd.components_.astype(np.float32))

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return float32 rows (n, d) of unit length; 0 where no word is known."""
        check_ready(self)
        rows = self.bag_.encode(texts, on_progress)[:, self.columns_]
        reduced: Vectors = unit(np.asarray(rows @ self.components_.T, dtype=np.float32))
        return reduced

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the bag's state, the columns in use and the directions."""
        arrays, meta = self.bag_.state()
        own: dict[str, NDArray[Any]] = {f"bag.{k}": v for k, v in arrays.items()}
        own |= {"columns": self.columns_, "components": self.components_}
        return own, {"bag": meta}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        inner = {k.removeprefix("bag."): v for k, v in arrays.items() if k.startswith("bag.")}
        bag = _BASES[self.base]().load_state(inner, meta["bag"])
        return self._use(bag, arrays["columns"], arrays["components"])

    def _use(
        self,
        bag: TfidfEncoder | HashingEncoder,
        columns: NDArray[np.integer[Any]],
        components: NDArray[np.float32],
    ) -> Self:
        self.bag_, self.components_ = bag, np.ascontiguousarray(components)
        self.columns_ = np.asarray(columns, np.int64)
        if components.ndim != 2 or self.columns_.shape != components.shape[1:]:
            told = f"{self.columns_.shape} columns for components {components.shape}"
            raise ValueError(f"each component weighs each column once, got {told}")
        if not ((self.columns_ >= 0) & (self.columns_ < bag.dimension)).all():
            raise ValueError(f"columns must be 0 to {bag.dimension - 1}, those of the bag")
        self.dimension = len(components)
        self.fingerprint = fingerprint_of(self, *self.state())
        return self
