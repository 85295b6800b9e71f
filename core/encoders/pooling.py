"""Batches of texts with similar length, and mean pooling over tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch


def batches_by_length(texts: Sequence[str], size: int) -> Iterator[list[int]]:
    """Yield batches of text positions, similar lengths together and longest first."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def mean_of_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average (batch, length, hidden) states where the (batch, length) mask is 1."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
