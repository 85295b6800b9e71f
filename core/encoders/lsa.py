"""Latent semantic analysis: a bag of words projected onto its largest singular vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

from leakscope.core.encoders.bag_of_words import HashingEncoder, TfidfEncoder
from leakscope.core.encoders.fitted import Arrays, CorpusEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors
from leakscope.core.specs import setting
from leakscope.core.vectors import unit

_BASES: dict[str, type[TfidfEncoder] | type[HashingEncoder]] = {
    "tfidf": TfidfEncoder,
    "hashing": HashingEncoder,
}


@dataclass
class LSAEncoder(CorpusEncoder):
    """The truncated singular value decomposition of a bag of words, of unit length.

    The settings of Corò (2022), §4.1.2: 1,000 dimensions, or fewer if there are fewer texts or
    words. Columns that no training text fills are dropped, as nothing was learned about them.
    """

    base: str = setting("tfidf", "Bag of words to decompose", choices=tuple(_BASES))
    n_components: int = setting(1000, "Dimensions", low=1, high=10_000, paper="C22")
    seed: int = setting(0, "Random seed of the decomposition", low=0)
    name: str = field(default="lsa", init=False)

    least_texts = 3

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Fit the bag of words and its truncated SVD on texts; return the learned arrays."""
        bag = _BASES[self.base]().fit(texts, on_progress=on_progress)
        rows = bag.encode(texts)
        columns = np.unique(rows.indices)
        if len(columns) < 3:
            raise InvalidInputError("The texts contain too few words. Provide a larger corpus.")
        on_progress(0.2, f"Decomposing {rows.shape[0]:,} × {len(columns):,}")
        svd = TruncatedSVD(
            min(self.n_components, min(rows.shape[0], len(columns)) - 1), random_state=self.seed
        )
        svd.fit(rows[:, columns])
        return {
            **{f"bag.{name}": array for name, array in bag.arrays_.items()},
            "columns": columns.astype(np.int64),
            "components": svd.components_.astype(np.float32),
        }

    def set_arrays(self, arrays: Arrays) -> None:
        """Set the bag of words, the columns in use and the singular vectors."""
        inner = {k.removeprefix("bag."): v for k, v in arrays.items() if k.startswith("bag.")}
        self.bag_ = _BASES[self.base]().load_state(inner, {})
        self.columns_, self.components_ = arrays["columns"], arrays["components"]
        if self.components_.ndim != 2 or self.columns_.shape != self.components_.shape[1:]:
            text = f"{self.columns_.shape} columns for components {self.components_.shape}"
            raise ValueError(f"each component weighs each column once, got {text}")
        if not ((self.columns_ >= 0) & (self.columns_ < self.bag_.dimension)).all():
            raise ValueError(f"columns must be 0 to {self.bag_.dimension - 1}, those of the bag")
        self.dimension = len(self.components_)

    def embed(self, texts: list[str], on_progress: OnProgress) -> Vectors:
        """Encode texts as word counts projected on the singular vectors, scaled to unit length."""
        rows = self.bag_.embed(texts, on_progress)[:, self.columns_]
        reduced: Vectors = unit(np.asarray(rows @ self.components_.T, dtype=np.float32))
        return reduced

    def vector_settings(self) -> dict[str, Any]:
        """Return by name the settings that the vectors depend on: those of the bag of words."""
        return {"bag": self.bag_.vector_settings()}
