"""Which encoder made these vectors: from known texts where there are any, else from their shape.

A vector alone does not name its encoder, but many together do: each encoder has a mean direction,
directions that it uses much and others that it hardly uses. They are the same for texts of any
subject, and a rotation moves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.text import check_texts
from core.vectors import unit

N_REFERENCE = 2_000
"""Bundled sentences from which the shape of an encoder's vectors is measured."""

LEAST_VECTORS = 30
"""Fewer say too little of their shape."""

LEAST_FIT = -0.5
"""Least log-likelihood ratio by dimension of vectors that the encoder made itself."""

SAME = 0.98
"""Least median cosine of stored vectors with those that the encoder makes of their texts."""


class KnownSpace:
    """The shape of an encoder's vectors: the mean and covariance of unit vectors of many texts.

    Parameters
    ----------
    encoder : str
        Its name.
    vectors : ndarray of float32, shape (n, d)
        Of texts of several subjects.
    """

    def __init__(self, encoder: str, vectors: Vectors) -> None:
        from sklearn.covariance import LedoitWolf

        self.encoder, self.dimension = encoder, vectors.shape[1]
        fitted = LedoitWolf().fit(unit(vectors.astype(np.float64)))
        self.mean: NDArray[np.float64] = fitted.location_
        variances, axes = np.linalg.eigh(fitted.covariance_)
        self.variances, self.axes = np.maximum(variances, 1e-12), axes

    @cached_property
    def whitener(self) -> NDArray[np.float64]:
        """W with W Wᵀ = Σ⁻¹, shape (d, d)."""
        whitener: NDArray[np.float64] = self.axes / np.sqrt(self.variances)
        return whitener

    def fit_of(self, vectors: NDArray[np.float64]) -> float:
        """Return how much better this space explains unit vectors than one without directions.

        The mean log-likelihood ratio by dimension of N(μ, Σ), the encoder's, against N(m, s² I)
        with the mean m and the variance s² of the vectors themselves:
        (1/2d) · [d·log s² − log det Σ + d − (x − μ)ᵀ Σ⁻¹ (x − μ)].
        """
        spread = vectors - vectors.mean(axis=0)
        variance = max(float((spread**2).mean()), 1e-12)
        far = (((vectors - self.mean) @ self.whitener) ** 2).sum(axis=1).mean()
        d = self.dimension
        return float((d * np.log(variance) - np.log(self.variances).sum() + d - far) / (2 * d))


@dataclass(frozen=True)
class Identification:
    """Which encoder made the vectors.

    Attributes
    ----------
    encoder : str or None
        Its name; None where no known encoder fits, which is an answer.
    reason : str
        The evidence, in one sentence with its figures.
    is_certain : bool
        Whether known texts were encoded and gave these vectors.
    """

    encoder: str | None
    reason: str
    is_certain: bool = False


def identify(
    vectors: Vectors, spaces: Sequence[KnownSpace], *, seed: int = 0, n_rotations: int = 39
) -> Identification:
    """Return which of the known encoders made the vectors, by their shape; or none.

    Two questions have to be answered with yes. Does an encoder fit the vectors as well as it fits
    its own of other subjects (`LEAST_FIT`)? And does it fit better than after each of `n_rotations`
    random rotations of them? If their directions had nothing to do with the encoder's, the vectors
    themselves would be the best of 40 in one case of 40.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d)
        At least 30.
    spaces : sequence of KnownSpace
    seed : int
        Of the rotations.
    """
    n, d = vectors.shape
    if n < LEAST_VECTORS:
        return Identification(
            None, f"{n} vectors are too few: at least {LEAST_VECTORS} are needed to tell."
        )
    fitting = [space for space in spaces if space.dimension == d]
    if not fitting:
        return Identification(None, f"No known encoder makes vectors of {d} dimensions.")
    rows = unit(vectors.astype(np.float64))
    fits = [space.fit_of(rows) for space in fitting]
    best = int(np.argmax(fits))
    space, found = fitting[best], fits[best]
    rotated = max(space.fit_of(rows @ _rotation(d, seed + i)) for i in range(n_rotations))
    told = f"log-likelihood ratio {found:.2f} by dimension; {rotated:.2f} at best when rotated"
    if found < LEAST_FIT or found <= rotated:
        return Identification(
            None,
            f"The vectors do not look like those of {space.encoder} ({told}). They are of another "
            "encoder, or were rotated.",
        )
    return Identification(
        space.encoder, f"The vectors have the shape of those of {space.encoder} ({told})."
    )


def _rotation(d: int, seed: int) -> NDArray[np.float64]:
    """Return an orthogonal matrix, uniform over all (Mezzadri 2007), shape (d, d)."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    rotation: NDArray[np.float64] = q * np.sign(np.diag(r))
    return rotation


def agreement_with_texts(
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    on_progress: OnProgress = no_progress,
) -> Identification:
    """Say whether an encoder makes these vectors of these texts: one known text is enough.

    Parameters
    ----------
    texts : sequence of str
        What the vectors were made from.
    vectors : ndarray of float32, shape (n, d)

    Raises
    ------
    InvalidInputError
        A text that cannot be encoded.
    """
    if encoder.dimension != vectors.shape[1]:
        return Identification(
            None,
            f"{encoder.name} makes vectors of {encoder.dimension} dimensions, these have "
            f"{vectors.shape[1]}.",
        )
    made = unit(encoder.encode(check_texts(texts), on_progress).astype(np.float64))
    cosines = (made * unit(vectors.astype(np.float64))).sum(axis=1)
    middle = float(np.median(cosines))
    n = f"{len(texts):,} known text{'s' if len(texts) > 1 else ''}"
    if middle < SAME:
        return Identification(
            None,
            f"{encoder.name} makes other vectors of {n} (median cosine {middle:.3f}). They are of "
            "another encoder, were changed after encoding, or the texts are not theirs.",
            is_certain=True,
        )
    return Identification(
        encoder.name,
        f"{encoder.name} makes the same vectors of {n} (median cosine {middle:.3f}).",
        is_certain=True,
    )
