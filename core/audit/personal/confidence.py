"""How confident an attacker can be that the best-fitting candidate is the true value.

The distance of a vector v to candidate j is r_j = 1 − cos², the part of v that no multiple of the
candidate's vector explains. The first candidate is right if it is the best of the list, and if the
list holds the true value at all; before the list is seen, it does with a probability of 1/2.

- Within the list: where v is a multiple of the true candidate's vector with isotropic noise of
  unknown strength, the likelihood of j, integrated over both, is r_j^(−(d − 1)/2) (Jeffreys' prior
  of the strength; d is the dimension).
- The rest of v, once the best candidate is taken off, is isotropic noise if that candidate is the
  true one: then its power within the m main directions in which candidates differ, over its power
  elsewhere, follows F with m and d − 1 − m degrees of freedom. If it is only the nearest of the
  others, the rest also holds the difference of the two, and the ratio is non-central. The distances
  between neighbours are measured on the candidates themselves.
- The gap: the spacings k · (log r_(k+1) − log r_(k)) of many distances of one distribution are
  independent and exponential (Rényi 1953), so that the first over the mean of m next ones follows F
  with 2 and 2m degrees of freedom, of which the upper tail is (1 + T / m)^(−m).

The last two and log r_(1) are weighed by a logistic regression, which is fitted on made-up
identifiers with known answers. The confidence is the product of both probabilities.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from leakscope.core.assets import ASSETS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Vectors
from leakscope.core.storage.artifacts import UNFIT, read_json
from leakscope.core.vectors import unit

SHIPPED = ASSETS / "personal" / "confidence.json"

LEAST_CANDIDATES = 20
"""Fewer candidates do not show the spacing of the nearest distances."""

_SPACINGS = 50
_MOST_DIRECTIONS = 64
_ROUNDING = 1e-13
"""Squared error of a coordinate that float32 and the order of sums explain."""


def distances(
    vector: NDArray[np.float32], candidates: Vectors | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return 1 − cos² between a vector and each candidate's vector, shape (n,).

    Parameters
    ----------
    vector : ndarray of float, shape (d,)
    candidates : ndarray of float32, shape (n, d)

    Returns
    -------
    ndarray of float64, shape (n,)
        1 where the cosine is not above 0; at least 1e-13 d, which is rounding.

    Examples
    --------
    >>> rows = np.float32([[3, 4], [0, 1], [-1, 0], [2, 0]])
    >>> distances(np.float32([1, 0]), rows).round(2).tolist()
    [0.64, 1.0, 1.0, 0.0]
    """
    rows = unit(np.asarray(candidates, np.float64))
    own = unit(np.asarray(vector, np.float64)[None])[0]
    cosines = rows @ own
    # Of nearly equal vectors 1 − cos² loses all digits; the length of what is left does not.
    rest = ((own - cosines[:, None] * rows) ** 2).sum(axis=1)
    least = _ROUNDING * rows.shape[1]
    found: NDArray[np.float64] = np.where(cosines > 0, np.clip(rest, least, 1.0), 1.0)
    return found


def log_share(found: NDArray[np.float64], dimension: int) -> float:
    """Return, from distances, the log-probability of the nearest candidate if one is the truth.

    Examples
    --------
    >>> round(float(np.exp(log_share(np.array([1.0, 0.5, 1.0]), 5))), 4)  # 0.5⁻² / (0.5⁻² + 2)
    0.6667
    """
    fits = -0.5 * (dimension - 1) * np.log(found)
    return float(fits.max() - logsumexp(fits))


def log_gap_tail(found: NDArray[np.float64]) -> float:
    """Return −log of the probability that chance makes the first gap of distances this large.

    Parameters
    ----------
    found : ndarray of float64, shape (n,)
        Distances in any order; the 52 least count.

    Examples
    --------
    >>> found = np.exp([0.0, 3.0, 3.5, 3.5 + 1 / 3])  # spacings 3, then 1 and 1
    >>> round(log_gap_tail(found), 4)  # T = 3, m = 2: 2 · log(1 + 3 / 2)
    1.8326
    """
    logs = np.log(np.sort(found)[: _SPACINGS + 2])
    spacings = np.arange(1, len(logs)) * np.diff(logs)
    m, mean = len(spacings) - 1, float(spacings[1:].mean())
    if mean <= 0:
        return 0.0
    return float(m * np.log1p(spacings[0] / mean / m))


@dataclass(frozen=True, eq=False)
class CandidateSpace:
    """The candidates' vectors and the main directions in which they differ.

    Attributes
    ----------
    rows : ndarray of float64, shape (n, d)
        Of length 1.
    axes : ndarray of float64, shape (d, m)
        The main directions in which they differ: at most 64, and at most n/4.
    apart : ndarray of float64, shape (n,)
        The squared distance of each to its nearest neighbour within these directions.
    """

    rows: NDArray[np.float64]
    axes: NDArray[np.float64]
    apart: NDArray[np.float64]

    @classmethod
    def of(cls, candidates: Vectors) -> Self:
        """Build the space from candidates' vectors, shape (n, d): compute its main directions."""
        rows = unit(np.asarray(candidates, np.float64))
        n, d = rows.shape
        m = min(_MOST_DIRECTIONS, n // 4, (d - 1) // 2)
        centred = rows - rows.mean(axis=0)
        if n < d:  # the same directions from the smaller of the two products
            powers, left = np.linalg.eigh(centred @ centred.T)
            axes = centred.T @ left[:, -m:] / np.sqrt(np.maximum(powers[-m:], 1e-300))
        else:
            axes = np.linalg.eigh(centred.T @ centred)[1][:, -m:]
        alike = rows @ rows.T
        np.fill_diagonal(alike, -np.inf)
        apart = ((rows - rows[alike.argmax(axis=1)]) @ axes) ** 2
        return cls(rows, axes, apart.sum(axis=1))


def log_presence(vector: NDArray[np.float32], space: CandidateSpace) -> float:
    """Return the log-likelihood ratio of a vector's nearest candidate being the true value.

    The logarithm of each ratio of powers is taken for normal, with the mean log(1 + λ/m) and the
    variance 2 (m + 2λ) / (m + λ)² + 2 / (d − 1 − m), where λ is the squared distance to the true
    value over the noise: 0 if the nearest is the true one, else that of one candidate to its own
    nearest, averaged over all.
    """
    own = unit(np.asarray(vector, np.float64)[None])[0]
    d, m = space.axes.shape
    cosines = space.rows @ own
    best = int(cosines.argmax())
    rest = own - cosines[best] * space.rows[best]
    inside = float(((rest @ space.axes) ** 2).sum())
    outside = max(0.0, float((rest**2).sum()) - inside)
    noise = outside / (d - 1 - m) + _ROUNDING
    seen = np.log((inside / m + _ROUNDING) / noise)
    away = np.append(0.0, cosines[best] ** 2 * space.apart / noise)
    mean = np.log1p(away / m)
    variance = 2 * (m + 2 * away) / (m + away) ** 2 + 2 / (d - 1 - m)
    fits = -0.5 * ((seen - mean) ** 2 / variance + np.log(variance))
    return float(fits[0] - logsumexp(fits[1:]) + np.log(len(space.apart)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a vector and a candidate list show about the nearest candidate.

    Attributes
    ----------
    log_share : float
        Its log-probability, given that the list holds the true value.
    traits : ndarray of float64, shape (3,)
        The evidence that it does: `log_presence` and `log_gap_tail`, both on a logarithmic scale,
        and log10 of the least distance.
    """

    log_share: float
    traits: NDArray[np.float64]

    @classmethod
    def of(cls, vector: NDArray[np.float32], space: CandidateSpace) -> Self:
        """Compute the evidence of a vector, shape (d,), for a list of candidates."""
        found = distances(vector, space.rows)
        traits = [
            np.arcsinh(log_presence(vector, space)),
            np.log1p(log_gap_tail(found)),
            np.log10(found.min()),
        ]
        return cls(log_share(found, space.rows.shape[1]), np.array(traits, np.float64))


@dataclass(frozen=True)
class Confidence:
    """A calibrated model of the probability that the best candidate is the true value.

    Attributes
    ----------
    encoder, fingerprint : str
        Whose vectors it was fitted on; it is used for no other.
    mean, scale, weights : tuple of float
        Of the traits, and their weights in the logistic regression.
    bias : float
    most : float
        The highest probability that is stated: so many lists were not enough for more.
    """

    encoder: str
    fingerprint: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    most: float

    def of(self, evidence: Evidence) -> float:
        """Return the probability, given evidence, that the nearest candidate is the true value."""
        scaled = (evidence.traits - np.array(self.mean)) / np.array(self.scale)
        is_there = float(expit(scaled @ np.array(self.weights) + self.bias))
        return min(self.most, float(np.exp(evidence.log_share)) * is_there)

    def of_list(self, vector: NDArray[np.float32], candidates: Vectors) -> float:
        """Return the probability that a vector's nearest of ≥ 20 candidates is the true value.

        Raises
        ------
        InvalidInputError
            Fewer candidates.
        """
        if len(candidates) < LEAST_CANDIDATES:
            raise InvalidInputError(
                f"The confidence needs at least {LEAST_CANDIDATES} candidates, got "
                f"{len(candidates)}. Draw more."
            )
        return self.of(Evidence.of(vector, CandidateSpace.of(candidates)))

    def to_dict(self) -> dict[str, Any]:
        """Return the model's parameters as a JSON-able dict."""
        return asdict(self)

    @classmethod
    def load(cls, path: Path = SHIPPED) -> Self:
        """Load a confidence model from a JSON file, by default the shipped one.

        Raises
        ------
        ArtifactError
            The file is missing or damaged.
        """
        stored = read_json(path)
        try:
            vectors = {
                part: tuple(map(float, stored[part])) for part in ("mean", "scale", "weights")
            }
            if {len(part) for part in vectors.values()} != {3} or min(vectors["scale"]) <= 0:
                raise ValueError("not three traits")
            return cls(
                str(stored["encoder"]),
                str(stored["fingerprint"]),
                **vectors,
                bias=float(stored["bias"]),
                most=float(stored["most"]),
            )
        except UNFIT as error:
            raise ArtifactError(
                f"{path} contains no calibration of the confidence. Restore it, or create it "
                "again: python -m scripts.personal_confidence"
            ) from error
