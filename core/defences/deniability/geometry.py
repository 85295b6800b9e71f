"""Distances between tokens compared with the length of the noise (Qu et al. 2021, Fig. 3).

`scripts/deniability_geometry.py` writes what ships.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, EncoderMismatchError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.storage.artifacts import read_record

NEIGHBOURS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000)
"""The k of Figure 3; the farthest token comes last."""


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Mean Euclidean distance from a token to its k-th nearest other token.

    The mean norm of the noise at η is `dimension`/η.
    """

    encoder: str
    fingerprint: str
    dimension: int
    n_tokens: int
    neighbours: tuple[int, ...]
    mean_distance: tuple[float, ...]
    sd_distance: tuple[float, ...]

    def neighbours_within(self, eta: float) -> int:
        """Return the greatest k whose mean distance is within the mean noise norm at η, or 0."""
        within = [
            k
            for k, distance in zip(self.neighbours, self.mean_distance, strict=True)
            if distance <= self.dimension / eta
        ]
        return max(within, default=0)


@torch.inference_mode()
def measure_geometry(
    encoder: WhiteBoxEncoder,
    tokens: NDArray[np.int64],
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    on_progress: OnProgress = no_progress,
) -> Geometry:
    """Measure tokens' mean distance to their k-th nearest neighbour, exactly, for several k."""
    vectors = encoder.token_vectors.detach().float()[torch.as_tensor(tokens)]
    n = len(vectors)
    ranks = sorted({k for k in neighbours if k < n} | {n - 1})
    total, squares = np.zeros(len(ranks)), np.zeros(len(ranks))
    for start in range(0, n, 512):
        rows = torch.cdist(vectors[start : start + 512], vectors)
        rows[torch.arange(len(rows)), torch.arange(start, start + len(rows))] = -1  # itself first
        found = rows.sort(dim=1).values[:, ranks].double().cpu().numpy()
        total += found.sum(0)
        squares += (found**2).sum(0)
        on_progress(min(1.0, (start + 512) / n), f"{min(start + 512, n):,} of {n:,} tokens")
    mean = total / n
    spread = np.sqrt(np.maximum(squares / n - mean**2, 0))
    return Geometry(
        encoder=encoder.name,
        fingerprint=encoder.fingerprint,
        dimension=vectors.shape[1],
        n_tokens=n,
        neighbours=tuple(ranks),
        mean_distance=tuple(mean.tolist()),
        sd_distance=tuple(spread.tolist()),
    )


def load_geometry(path: Path, encoder: WhiteBoxEncoder | None = None) -> Geometry:
    """Load a Geometry from a JSON file; raise ArtifactError or EncoderMismatchError if unfit."""
    data = read_record(
        path,
        encoder=str,
        fingerprint=str,
        dimension=int,
        n_tokens=int,
        neighbours=list,
        mean_distance=list,
        sd_distance=list,
    )
    try:
        facts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        found = Geometry(**facts)
        parts = (found.neighbours, found.mean_distance, found.sd_distance)
        if len({len(part) for part in parts}) != 1 or not found.neighbours:
            raise ValueError("the numbers of distances and neighbours differ")
        if not all(math.isfinite(number) for part in parts for number in part):
            raise ValueError("some distances are not finite")
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not contain token distances. Move it away, then measure the encoder "
            "again."
        ) from error
    if encoder is not None and found.fingerprint != encoder.fingerprint:
        raise EncoderMismatchError(
            f"{path} belongs to {found.encoder}, not to this {encoder.name}."
        )
    return found
