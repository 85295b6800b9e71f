"""LEACE: removes from vectors what a linear classifier could infer of an attribute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.errors import (
    EncoderMismatchError,
    InvalidInputError,
    MissingDependencyError,
    NotFittedError,
    install,
)
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.specs import validate_settings
from leakscope.core.text import check_texts
from leakscope.core.vectors import is_sparse

_SMALLEST = 1e-8
"""Share of correlation below which it counts as rounding error."""


def fit_eraser(
    vectors: NDArray[np.float64], labels: NDArray[np.int64], n_labels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute LEACE's P (d, d) and μ (d,) for x ↦ x − (I − P)(x − μ) from labelled vectors.

    Implements Belrose et al. (2023), Theorem 4.3, by their package `concept-erasure`: with Σ_xx
    the covariance of the vectors, W = Σ_xx^(−1/2) (the pseudo-inverse) and Σ_xz the
    cross-covariance with the labels as one-hot vectors, I − P = W⁺ (W Σ_xz)(W Σ_xz)⁺ W. Of all
    affine maps after which no linear classifier does better than a constant, it is the one that
    moves the vectors least.
    Differs from the paper: nothing; the package's shrinkage of Σ_xx and its cut of weak directions
    are off, since they leave a linear trace.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, d)
    labels : ndarray of int64, shape (n,)
        From 0 to n_labels − 1.

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    try:
        from concept_erasure import LeaceFitter
    except ImportError as error:
        raise MissingDependencyError(
            f"LEACE needs the `concept-erasure` package: {install('concept-erasure')}"
        ) from error
    import torch

    fitter = LeaceFitter(
        vectors.shape[1],
        n_labels,
        dtype=torch.float64,
        shrinkage=False,
        constrain_cov_trace=False,
        svd_tol=_SMALLEST,
    )
    fitter.update(torch.from_numpy(vectors), torch.eye(n_labels)[torch.from_numpy(labels)])
    eraser = fitter.eraser
    return eraser.P.numpy(), fitter.mean_x.numpy()


@dataclass(kw_only=True)
class Leace:
    """Removes from vectors what any linear classifier could infer of an attribute.

    Implements Belrose et al. (2023), Theorem 4.3; see `fit_eraser`. It guarantees nothing against
    attackers that are not linear, nor on texts unlike those that it was fitted on.

    Attributes
    ----------
    seconds_ : float
        Of the fit, without the encoding.
    """

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fit the eraser on labelled texts or their vectors; there is no checkpoint.

        Raises
        ------
        InvalidInputError
            No labels, one label only, or sparse vectors.
        """
        validate_settings(self)
        texts = check_texts(texts)
        if labels is None or len(labels) != len(texts) or len(set(labels)) < 2:
            raise InvalidInputError(
                f"LEACE needs a label for each of the {len(texts):,} texts, and at least two "
                "different labels. Name the column of the labels."
            )
        vectors = encoder.encode(texts, on_progress) if vectors is None else vectors
        if is_sparse(vectors):
            raise InvalidInputError(
                f"{encoder.name} gives sparse vectors, which LEACE cannot use. Choose an encoder "
                "of dense vectors."
            )
        names, numbers = np.unique(np.array(labels), return_inverse=True)
        start = time.perf_counter()
        p, mean = fit_eraser(vectors.astype(np.float64), numbers.astype(np.int64), len(names))
        self.seconds_ = time.perf_counter() - start
        self.projection_, self.mean_ = p.astype(np.float32), mean.astype(np.float32)
        self.encoder_name_, self.encoder_fingerprint_ = encoder.name, encoder.fingerprint
        on_progress(1.0, f"Erased {len(names)} labels from {len(texts):,} vectors")
        return self

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors have the attribute erased, without normalising them."""
        self._check_fitted()
        if encoder.fingerprint != self.encoder_fingerprint_:
            raise EncoderMismatchError(
                f"LEACE was fitted on {self.encoder_name_!r}, not on {encoder.name!r}. Protect "
                "that encoder, or fit it on this one."
            )

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            vectors = np.asarray(encoder.encode(texts, on_progress), np.float32)
            erased = (vectors - self.mean_) @ self.projection_.T + self.mean_
            return erased.astype(np.float32)

        return ProtectedEncoder.of(encoder, self, transform)

    def _check_fitted(self) -> None:
        """Raise NotFittedError if neither `fit` nor `load_state` has been called."""
        if not hasattr(self, "projection_"):
            raise NotFittedError("Leace is not fitted: call fit, or load one.")

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the projection and the mean, and the encoder that they belong to."""
        self._check_fitted()
        arrays = {"projection": self.projection_, "mean": self.mean_}
        return arrays, {
            "encoder_name": self.encoder_name_,
            "encoder_fingerprint": self.encoder_fingerprint_,
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the projection and the mean from what `state` returned."""
        projection, mean = arrays["projection"], arrays["mean"]
        if mean.ndim != 1 or projection.shape != (len(mean), len(mean)):
            raise ValueError(f"projection {projection.shape} does not fit the mean {mean.shape}")
        self.projection_, self.mean_ = projection, mean
        self.encoder_name_ = str(meta["encoder_name"])
        self.encoder_fingerprint_ = str(meta["encoder_fingerprint"])
        return self
