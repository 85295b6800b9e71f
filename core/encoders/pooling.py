"""Batches of texts with similar length, and mean pooling over tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from leakscope.core.protocols import OnProgress, Vectors


def batches_by_length(texts: Sequence[str], size: int) -> Iterator[list[int]]:
    """Group texts by similar length, longest first; yield each batch's positions in `texts`."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def encode_in_batches(
    texts: Sequence[str],
    size: int,
    dimension: int,
    encode: Callable[[list[str]], Vectors],
    on_progress: OnProgress,
) -> Vectors:
    """Encode texts by a function, in batches of similar length; return (n, dimension) vectors."""
    out = np.empty((len(texts), dimension), dtype=np.float32)
    done = 0
    for rows in batches_by_length(texts, size):
        out[rows] = encode([texts[i] for i in rows])
        done += len(rows)
        on_progress(done / len(texts), f"Encoded {done:,} of {len(texts):,} texts")
    return out


def mean_of_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average (batch, length, hidden) states where the (batch, length) mask is 1."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
