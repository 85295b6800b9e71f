"""A label-free test of whether an alignment is right; by chance its statistic is 0.

Principal axes are uncorrelated, but not independent: texts that are alike in some axes are alike
in the others. Only the right rotation keeps this. So neighbours are sought in one half of the axes,
and the other half is predicted from them, on vectors that did not choose the map.

Texts of another domain have farther neighbours, which predict less whatever the map. So what is
found is compared with what known vectors show whose neighbours are as far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.audit.alignment.linear import Floats
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score
from leakscope.core.vectors import unit

N_AXES = 256
"""Leading axes that are compared, every other one in each half. The last ones are compared too
little by 128: a map that is wrong in them alone keeps only .6 to .8 of the cosine."""

N_NEIGHBOURS = 10
N_KEYS = 20_000

LEAST_SHARE = 0.74
"""Minimum share at which a map is accepted.

Chosen on twelve domains against a mixture of sources, where true maps show .75 to 1.15. It tells
maps of mean cosine .95 or more from those of .8 or less; what lies between passes where the
foreign texts are like the known ones, or much like each other."""

LEAST_SHARE_OF_START = 0.5
"""Minimum share of a start from which the likelihood finds a right map, in one mixture."""

_N_BINS = 8
_LEAST_EXPECTED = 0.02


@dataclass(frozen=True)
class Confidence:
    """How much of the known space's dependence between axes a map preserves.

    Attributes
    ----------
    theirs : Score
        Mean over vectors of how the predicted half agrees with its own, in the known space's
        units; chance is 0.
    own : Score
        The same of known vectors whose neighbours are as far.
    """

    theirs: Score
    own: Score

    @property
    def share(self) -> float:
        """The ratio of the mapped vectors' dependence to that of known vectors."""
        return self.theirs.value / max(self.own.value, 1e-9)

    @property
    def is_right(self) -> bool:
        """Whether the share is large enough to trust the map."""
        return self.share >= LEAST_SHARE

    @property
    def can_be_refined(self) -> bool:
        """Whether the share is large enough to refine the map."""
        return self.share >= LEAST_SHARE_OF_START


def measure_confidence(
    known: Vectors, own: Vectors, mapped: Vectors, *, seed: int = 0
) -> Confidence:
    """Measure whether mapped vectors depend on their neighbours as much as known vectors do.

    For each vector: the 10 nearest known vectors by one half of the leading principal axes; their
    mean in the other half, and its correlation over these axes, whitened, with the vector's own.
    Both halves serve in turn.

    Parameters
    ----------
    known : ndarray of float32, shape (n, d)
        Unit vectors among which neighbours are sought.
    own : ndarray of float32, shape (m, d)
        Other known vectors.
    mapped : ndarray of float32, shape (k, d)
        Foreign vectors, mapped, that did not choose the map.
    seed : int
        Of the intervals.
    """
    keys = known[:N_KEYS]
    mean = keys.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(keys.T, dtype=np.float64))
    axes, variances = axes[:, ::-1][:, :N_AXES], variances[::-1][:N_AXES]
    whitener = (axes / np.sqrt(np.maximum(variances, 1e-9))).astype(np.float32)
    plain = axes.astype(np.float32)
    found = []
    for rows in (own, mapped):
        shift = rows.mean(axis=0)
        agreement, nearness = np.zeros((2, len(rows))), np.zeros((2, len(rows)))
        for half in (0, 1):
            seen, hidden = plain[:, half::2], whitener[:, 1 - half :: 2]
            cosines, near = _nearest((rows - shift) @ seen, (keys - mean) @ seen)
            predicted = ((keys - mean) @ hidden)[near].mean(axis=1)
            agreement[half] = (unit(predicted) * unit((rows - shift) @ hidden)).sum(axis=1)
            nearness[half] = cosines.mean(axis=1)
        found.append((agreement, nearness))
    expected = _expected_agreement(*found[0], found[1][1])
    scores = []
    for values in (found[1][0].mean(axis=0), expected.mean(axis=0)):
        interval = bootstrap_interval(values, bounds=(-1.0, 1.0), seed=seed)
        scores.append(Score(float(values.mean()), interval, len(values), 0.0))
    return Confidence(theirs=scores[0], own=scores[1])


def _expected_agreement(agreement: Floats, nearness: Floats, asked: Floats) -> Floats:
    """Interpolate the mean agreement of known vectors at given nearness values."""
    edges = np.quantile(nearness, np.linspace(0, 1, _N_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, nearness)
    kept = np.unique(bins)
    at = np.array([nearness[bins == i].mean() for i in kept])
    means = np.array([agreement[bins == i].mean() for i in kept])
    expected = np.interp(asked, at, means)
    if len(kept) > 1:
        below = means[0] + (means[1] - means[0]) / (at[1] - at[0]) * (asked - at[0])
        expected = np.where(asked < at[0], below, expected)
    found: Floats = np.maximum(expected, _LEAST_EXPECTED)
    return found


def _nearest(queries: Vectors, keys: Vectors) -> tuple[Vectors, NDArray[np.int64]]:
    """Return the cosines and the indices of the keys nearest to each query, shape (n, 10) each."""
    all_keys = torch.from_numpy(np.ascontiguousarray(unit(keys).T))
    found = torch.from_numpy(np.ascontiguousarray(unit(queries))) @ all_keys
    top = torch.topk(found, N_NEIGHBOURS, dim=1)
    return top.values.numpy(), top.indices.numpy()
