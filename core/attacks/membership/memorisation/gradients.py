"""Canaries that are gradients: what an auditor who sees the whole training can put in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["GradientCanaries"]

_Rows = NDArray[np.int64]


class GradientCanaries:
    """Gradients of one weight each, of the longest length that clipping leaves.

    Implements the gradient-space canaries of Steinke, Nasr & Jagielski (2023): the gradient of
    canary i is C·e_j, j drawn for it, and its score is the sum over the steps of the noisy gradient
    at j.
    Differs from the paper: what the texts give at j is taken off, as who audits knows them; in a
    model of few weights they would hide the canaries.

    Parameters
    ----------
    n : int
        Canaries, m.
    n_weights : int
        Of the model; no two canaries share one.
    is_in : ndarray of bool, shape (n,)
        Which of them are put in.
    length : float
        C.
    """

    def __init__(
        self, n: int, n_weights: int, is_in: NDArray[np.bool_], length: float, seed: int
    ) -> None:
        rng = np.random.default_rng([seed, 43])
        self.places: _Rows = rng.choice(n_weights, n, replace=False).astype(np.int64)
        self.planted: _Rows = np.flatnonzero(is_in)
        self.length = length
        self.scores = np.zeros(n)
        self.waiting: _Rows = np.zeros(0, dtype=np.int64)
        self._of_texts = np.zeros(n)

    def __len__(self) -> int:
        """Return the number of canaries that are put in."""
        return len(self.planted)

    def await_step(self, rows: _Rows) -> None:
        """Note which of those put in are in the batch of the next step."""
        self.waiting = self.planted[rows]

    def put_in(self, weights: Sequence[Any]) -> None:
        """Add what waits to the sums of clipped gradients, before the noise."""
        for weight, rows, places in self._by_weight(weights, np.arange(len(self.places))):
            self._of_texts[rows] = weight.summed_grad.view(-1)[places].double().numpy()
        for weight, _, places in self._by_weight(weights, self.waiting):
            weight.summed_grad.view(-1)[places] += self.length

    def read(self, weights: Sequence[Any]) -> None:
        """Add the noisy gradients of a step to the scores."""
        for weight, rows, places in self._by_weight(weights, np.arange(len(self.places))):
            self.scores[rows] += weight.grad.view(-1)[places].double().numpy()
        self.scores -= self._of_texts

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the scores so far, part of a checkpoint."""
        return {"scores": self.scores}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.scores = np.array(arrays["scores"])
        return self

    def _by_weight(
        self, weights: Sequence[Any], rows: _Rows
    ) -> Iterator[tuple[Any, _Rows, torch.Tensor]]:
        """Yield each array of weights with the canaries that lie in it, and where."""
        start = 0
        for weight in weights:
            places = self.places[rows] - start
            is_here = (places >= 0) & (places < weight.numel())
            if is_here.any():
                yield weight, rows[is_here], torch.from_numpy(places[is_here])
            start += weight.numel()
