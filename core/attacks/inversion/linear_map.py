"""M: from the embedding Φ(x) to a lower layer Ψ(x), by least squares (SR20 §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.moments import LayerSums
from core.errors import InvalidInputError
from core.protocols import OnProgress, Vectors, WhiteBoxEncoder, no_progress

__all__ = ["LinearMap"]


@dataclass(frozen=True)
class LinearMap:
    """M of Song & Raghunathan (2020), §3.1 and Alg. 1 line 3.

    Parameters
    ----------
    weight : ndarray of float32, shape (d, hidden size)
    intercept : ndarray of float32, shape (hidden size,)
    layer : int
        The layer ℓ that is predicted; 0 is the mean of token vectors.
    r_squared : float
        Share of the variance of Ψ(x) explained on texts held out of the fit.
    n_texts : int
        Texts fitted and held out together.
    """

    weight: NDArray[np.float32]
    intercept: NDArray[np.float32]
    layer: int
    r_squared: float
    n_texts: int

    @classmethod
    def fit(
        cls,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        layer: int = 0,
        ridge: float = 0.3,
        held_out: float = 0.05,
        seed: int = 0,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Minimise Σ ‖M(Φ(x_i)) − Ψ(x_i)‖² over auxiliary texts.

        Implements Song & Raghunathan (2020), Alg. 1 line 3, in closed form.
        Differs from the paper: adds an intercept and a ridge penalty (encoders may have
        constant output dimensions), and measures R² on a share `held_out` of the texts.

        Parameters
        ----------
        vectors : ndarray, shape (n, d), optional
            Φ of the texts where it is known; encoded here otherwise.
        seed : int
            Of the choice of held-out texts.
        checkpoint_dir : str, optional
            Where the sums are kept while running; a later call takes them up.

        Raises
        ------
        InvalidInputError
            Fewer than two texts, an unknown layer, or vectors that do not match the texts.
        ArtifactError
            The checkpoint is damaged or belongs to other texts or settings.
        StoppedError
            Raised by `on_progress` and passed on, after a checkpoint was written.
        """
        _check(encoder, texts, vectors, layer)
        is_held_out = np.random.default_rng(seed).random(len(texts)) < held_out
        is_held_out[:2] = False
        run = LayerSums(encoder, texts, layer, is_held_out, checkpoint_dir)
        run.go(vectors, on_progress)
        solution = run.fitted.solve(ridge)
        return cls(
            weight=solution[:-1].astype(np.float32),
            intercept=solution[-1].astype(np.float32),
            layer=layer,
            r_squared=run.held_out.r_squared(solution),
            n_texts=len(texts),
        )

    def apply(self, vectors: NDArray[Any]) -> Vectors:
        """Return M(Φ(x)), shape (n, hidden size), float32."""
        return np.asarray(vectors, dtype=np.float32) @ self.weight + self.intercept

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        return {"map_weight": self.weight, "map_intercept": self.intercept}

    def meta(self) -> dict[str, Any]:
        """Return the JSON-able rest."""
        return {"layer": self.layer, "r_squared": self.r_squared, "n_texts": self.n_texts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `arrays` and `meta` returned."""
        weight = arrays["map_weight"].astype(np.float32)
        return cls(weight, arrays["map_intercept"].astype(np.float32), **meta)


def _check(
    encoder: WhiteBoxEncoder, texts: Sequence[str], vectors: Vectors | None, layer: int
) -> None:
    if len(texts) < 2:
        raise InvalidInputError(f"texts must hold at least 2 texts to fit a map, got {len(texts)}.")
    if not 0 <= layer <= encoder.n_layers:
        raise InvalidInputError(
            f"layer must lie in [0, {encoder.n_layers}] for {encoder.name}, got {layer}."
        )
    if vectors is not None and vectors.shape != (len(texts), encoder.dimension):
        raise InvalidInputError(
            f"vectors must have shape ({len(texts)}, {encoder.dimension}), one row a text, "
            f"got {vectors.shape}."
        )
