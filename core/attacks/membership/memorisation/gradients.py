"""Gradient canaries for an auditor who sees every step of the training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

_Rows = NDArray[np.int64]


class GradientCanaries:
    """Canary gradients of one weight each, of the maximum clipped length.

    Implements the gradient-space canaries of Steinke, Nasr & Jagielski (2023): the gradient of
    canary i is C·e_j, j drawn for it, and its score is the sum over the steps of the noisy gradient
    at j.
    Differs from the paper: the texts' own gradient at j is subtracted, since the auditor knows it;
    in a model of few weights it would hide the canaries.

    Parameters
    ----------
    n : int
        Canaries, m.
    n_weights : int
        Weights of the model; no two canaries share one.
    is_in : ndarray of bool, shape (n,)
        Which of them are included.
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
        """Return the number of included canaries."""
        return len(self.planted)

    def set_batch(self, rows: _Rows) -> None:
        """Set the included canaries that are in the batch of the next step."""
        self.waiting = self.planted[rows]

    def add_to_gradients(self, weights: Sequence[Any]) -> None:
        """Add the batch's canaries to the summed clipped gradients, before the noise."""
        for weight, rows, places in self._by_weight(weights, np.arange(len(self.places))):
            self._of_texts[rows] = weight.summed_grad.view(-1)[places].double().numpy()
        for weight, _, places in self._by_weight(weights, self.waiting):
            weight.summed_grad.view(-1)[places] += self.length

    def read(self, weights: Sequence[Any]) -> None:
        """Add the noisy gradients of a step, less the texts' own, to the scores."""
        for weight, rows, places in self._by_weight(weights, np.arange(len(self.places))):
            self.scores[rows] += weight.grad.view(-1)[places].double().numpy()
        self.scores -= self._of_texts

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the scores so far, for a checkpoint."""
        return {"scores": self.scores}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.scores = np.array(arrays["scores"])
        return self

    def _by_weight(
        self, weights: Sequence[Any], rows: _Rows
    ) -> Iterator[tuple[Any, _Rows, torch.Tensor]]:
        """Yield each weight array with the canaries in it and their positions."""
        start = 0
        for weight in weights:
            places = self.places[rows] - start
            is_here = (places >= 0) & (places < weight.numel())
            if is_here.any():
                yield weight, rows[is_here], torch.from_numpy(places[is_here])
            start += weight.numel()
