"""Identify the encoder of vectors from known texts, or from the vectors' distribution.

A vector alone does not name its encoder, but many together do: each encoder has a mean direction,
directions that it uses much and others that it hardly uses. They are the same for texts of any
subject, and a rotation moves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.assets import ASSETS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.storage.artifacts import META, UNFIT, load_artifact, save_artifact
from leakscope.core.text import check_texts
from leakscope.core.vectors import unit

SHIPPED = ASSETS / "audit"

N_REFERENCE = 2_000
"""Bundled sentences used to measure the distribution of an encoder's vectors."""

LEAST_VECTORS = 30
"""Fewer vectors do not show the distribution well enough."""

LEAST_FIT = -1.3
"""Minimum log-likelihood ratio per dimension of an encoder's vectors, whatever the subject."""

LEAST_SHARE = 0.4
"""Minimum fit, as a share of the way from rotated vectors to the encoder's own vectors.

Both bounds were chosen on 12 encoders, MiniLM, three of its layers and eight that were fitted here,
and 14 corpora."""

SAME = 0.98
"""Minimum median cosine of stored vectors with the encoder's vectors of their texts."""

RELATED = 0.5
"""The same for vectors changed after encoding: noise, rounding, quantisation. In 384
dimensions unrelated vectors have a cosine of 0 ± 0.05; those of two sentences rarely reach 0.5."""


MOST_OTHERS = 0.05
"""Maximum share of texts that do not match their vectors."""


@dataclass(frozen=True, eq=False)
class KnownSpace:
    """The distribution of an encoder's vectors: mean and covariance of many unit vectors.

    Attributes
    ----------
    encoder : str
        Its name.
    fingerprint : str
        Of the encoder that was measured.
    mean : ndarray of float64, shape (d,)
    variances, axes : ndarray of float64, shapes (d,) and (d, d)
        Eigenvalues and eigenvectors, a column each, of the covariance.
    own_fit : float
        `fit_of` vectors of the encoder's that mean and covariance were not taken from.
    """

    encoder: str
    fingerprint: str
    mean: NDArray[np.float64]
    variances: NDArray[np.float64]
    axes: NDArray[np.float64]
    own_fit: float

    @classmethod
    def measure(cls, encoder: str, fingerprint: str, vectors: Vectors) -> Self:
        """Estimate the mean and covariance of vectors, shape (n, d), and build the space.

        The covariance is that of Ledoit and Wolf (2004), of four fifths of the vectors.
        """
        from sklearn.covariance import LedoitWolf

        rows = unit(vectors.astype(np.float64))
        rows = rows[np.linalg.norm(rows, axis=1) > 0.5]  # not of texts without a known word
        kept = np.arange(len(rows)) % 5 > 0
        fitted = LedoitWolf().fit(rows[kept])
        variances, axes = np.linalg.eigh(fitted.covariance_)
        found = cls(encoder, fingerprint, fitted.location_, np.maximum(variances, 1e-12), axes, 0.0)
        return replace(found, own_fit=found.fit_of(rows[~kept]))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the distribution that `save` wrote into a folder.

        Raises
        ------
        ArtifactError
            Files are missing, damaged, or hold something else.
        """
        arrays, meta = load_artifact(folder)
        try:
            mean, variances, axes = (
                arrays[name].astype(np.float64) for name in ("mean", "variances", "axes")
            )
            if axes.shape != (len(mean), len(mean)) or variances.shape != mean.shape:
                raise ValueError("the arrays are of different sizes")
            return cls(
                meta["encoder"], meta["fingerprint"], mean, variances, axes, float(meta["own_fit"])
            )
        except UNFIT as error:
            raise ArtifactError(
                f"{folder} does not contain the distribution of an encoder: {error}"
            ) from error

    def save(self, folder: Path, **record: Any) -> Path:
        """Write the distribution and a record of its measurement into a folder, without texts."""
        arrays = {"mean": self.mean, "variances": self.variances, "axes": self.axes}
        facts = {"encoder": self.encoder, "fingerprint": self.fingerprint, "own_fit": self.own_fit}
        small = {name: array.astype(np.float32) for name, array in arrays.items()}
        return save_artifact(folder, small, {**facts, **record})

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return len(self.mean)

    @cached_property
    def whitener(self) -> NDArray[np.float64]:
        """The whitening matrix W with W Wᵀ = Σ⁻¹, shape (d, d)."""
        whitener: NDArray[np.float64] = self.axes / np.sqrt(self.variances)
        return whitener

    def fit_of(self, vectors: NDArray[np.float64]) -> float:
        """Return the mean log-likelihood ratio of unit vectors: this space to an isotropic one.

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
    """The encoder that made the vectors, if known, with the evidence.

    Attributes
    ----------
    encoder : str or None
        Its name; None where no known encoder fits, which is an answer.
    reason : str
        The evidence, in one sentence with its figures.
    is_certain : bool
        Whether known texts were encoded.
    is_changed : bool
        Whether the vectors were changed after encoding, as a defence changes them.
    """

    encoder: str | None
    reason: str
    is_certain: bool = False
    is_changed: bool = False


def identify(
    vectors: Vectors, spaces: Sequence[KnownSpace], *, seed: int = 0, n_rotations: int = 19
) -> Identification:
    """Identify which known encoder, or none, made the vectors, from their distribution alone.

    The encoder with the best fit is named where the fit is at least `LEAST_FIT`, and where it goes
    at least `LEAST_SHARE` of the way from the best of `n_rotations` random rotations of the vectors
    to vectors that the encoder made itself.

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
            None, f"{n} vectors are too few: at least {LEAST_VECTORS} are needed."
        )
    fitting = [space for space in spaces if space.dimension == d]
    if not fitting:
        return Identification(None, f"No known encoder makes vectors of {d} dimensions.")
    rows = unit(vectors.astype(np.float64))
    fits = [space.fit_of(rows) for space in fitting]
    best = int(np.argmax(fits))
    space, found = fitting[best], fits[best]
    rotated = max(space.fit_of(rows @ random_rotation(d, seed + i)) for i in range(n_rotations))
    share = (found - rotated) / max(space.own_fit - rotated, 1e-9)
    facts = (
        f"fit {found:.2f}; vectors of {space.encoder} itself have {space.own_fit:.2f}, rotated "
        f"ones {rotated:.2f}"
    )
    if found < LEAST_FIT or share < LEAST_SHARE:
        return Identification(
            None,
            f"The vectors do not look like those of {space.encoder} ({facts}). Another encoder "
            "made them, or they were rotated.",
        )
    return Identification(
        space.encoder, f"The vectors look like those of {space.encoder} ({facts})."
    )


def identify_among(
    vectors: Vectors,
    encoders: Mapping[str, Encoder],
    *,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> tuple[Identification, str | None]:
    """Identify which loaded encoder made the vectors; return evidence and its key in `encoders`.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d)
    encoders : mapping of str to Encoder
        By the names that open them; those of another width are left out.
    seed : int
        Of the rotations.
    """
    spaces = {
        name: known_space(encoder, on_progress)
        for name, encoder in encoders.items()
        if encoder.dimension == vectors.shape[1]
    }
    found = identify(vectors, list(spaces.values()), seed=seed)
    name = next((n for n, space in spaces.items() if space.encoder == found.encoder), None)
    return found, name


def median_cosine(encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> float:
    """Encode texts; return the median cosine with their stored vectors, -1 if widths differ.

    It is -1 if the encoder makes vectors of another dimension.
    """
    if encoder.dimension != vectors.shape[1]:
        return -1.0
    return float(np.median(_cosines(encoder, texts, vectors)))


def _cosines(
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    on_progress: OnProgress = no_progress,
) -> NDArray[np.float64]:
    """Encode texts; return the cosine of each text's vector with its stored vector."""
    made = unit(encoder.encode(check_texts(texts), on_progress).astype(np.float64))
    cosines: NDArray[np.float64] = (made * unit(vectors.astype(np.float64))).sum(axis=1)
    return cosines


def known_space(encoder: Encoder, on_progress: OnProgress = no_progress) -> KnownSpace:
    """Load the shipped distribution of an encoder's vectors, or measure it on bundled sentences."""
    folder = SHIPPED / encoder.name.replace("/", "_")
    if (folder / META).exists():
        found = KnownSpace.load(folder)
        if found.fingerprint == encoder.fingerprint:
            return found
    return measured_space(encoder, on_progress)


def measured_space(encoder: Encoder, on_progress: OnProgress = no_progress) -> KnownSpace:
    """Encode bundled sentences and measure the distribution of their vectors."""
    from leakscope.core.attacks.inversion.evaluation import sample_texts
    from leakscope.core.corpora import bundled_sentences
    from leakscope.core.encoders.cache import CachedEncoder

    texts = sample_texts(bundled_sentences(), N_REFERENCE, 0)
    vectors = CachedEncoder(encoder).encode(texts, on_progress)
    return KnownSpace.measure(encoder.name, encoder.fingerprint, vectors)


def random_rotation(d: int, seed: int) -> NDArray[np.float64]:
    """Draw a uniformly random orthogonal matrix (Mezzadri 2007), shape (d, d)."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    rotation: NDArray[np.float64] = q * np.sign(np.diag(r))
    return rotation


def agreement_with_texts(
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    on_progress: OnProgress = no_progress,
) -> Identification:
    """Encode texts and compare with their stored vectors, to tell whether this encoder made them.

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
    n = f"{len(texts):,} known text{'s' if len(texts) > 1 else ''}"
    if encoder.dimension != vectors.shape[1]:
        return Identification(
            None,
            f"{encoder.name} makes vectors of {encoder.dimension} dimensions, but these have "
            f"{vectors.shape[1]}.",
        )
    cosines = _cosines(encoder, texts, vectors, on_progress)
    middle = float(np.median(cosines))
    n_other = int((cosines < RELATED).sum())
    if middle >= RELATED and n_other > MOST_OTHERS * len(texts):
        return Identification(
            None,
            f"{n_other:,} of {n} do not match their vectors (cosine below {RELATED:g}). "
            "The texts belong to other rows.",
            is_certain=True,
        )
    if RELATED <= middle < SAME:
        return Identification(
            encoder.name,
            f"These vectors resemble those of {encoder.name} for {n} (median cosine {middle:.3f}). "
            "They were changed after encoding, or a related encoder made them.",
            is_changed=True,
        )
    if middle < SAME:
        return Identification(
            None,
            f"These vectors do not match those of {encoder.name} for {n} (median cosine "
            f"{middle:.3f}). "
            "Another encoder made them, they were changed, or the texts belong to other rows.",
            is_certain=True,
        )
    title = f" ({ENCODERS[encoder.name].title})" if encoder.name in ENCODERS else ""
    return Identification(
        encoder.name,
        f"These vectors come from {encoder.name}{title}: the {n}, encoded again, give the same "
        f"vectors (median cosine {middle:.3f}; 1 means identical).",
        is_certain=True,
    )
