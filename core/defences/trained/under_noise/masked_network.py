"""The network of privacy-adaptive pretraining, its loop, and its loss curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.defences.trained.under_noise.readers import Received, states_of
from leakscope.core.training.devices import autocast, fast_dtype, pick_device
from leakscope.core.training.loop import Loop

_FIRST_SCALE = 0.25
"""Initial scale of the untrained head's output."""


class MaskedHead(nn.Module):
    """Predicts tokens from states; its output layer is the user's frozen embedding.

    It is initialised to the tokens' frequencies and unchanged states.
    """

    table: Tensor

    def __init__(self, table: NDArray[np.float32], counts: NDArray[np.int64]) -> None:
        super().__init__()
        n = table.shape[1]
        self.transform = nn.Linear(n, n)
        nn.init.eye_(self.transform.weight)
        nn.init.zeros_(self.transform.bias)
        self.norm = nn.LayerNorm(n)
        nn.init.constant_(self.norm.weight, _FIRST_SCALE)
        share = (counts + 0.1) / (counts + 0.1).sum()
        self.bias = nn.Parameter(torch.from_numpy(np.log(share)).float())
        fixed = torch.from_numpy(table).to(fast_dtype(pick_device()))
        self.register_buffer("table", fixed, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Return (m, |V|) logits of (m, n) states."""
        normalised = self.norm(self.transform(states))
        logits: Tensor = F.linear(normalised.to(self.table.dtype), self.table)
        return logits + self.bias.to(logits.dtype)


class AdaptiveNetwork(nn.Module):
    """The service's Transformer with a head that predicts masked tokens."""

    def __init__(self, service: nn.Module, head: MaskedHead) -> None:
        super().__init__()
        self.service, self.head = service, head

    def forward(self, received: Received, places: Tensor) -> Tensor:
        """Return (m, |V|) logits at the masked places only."""
        states = states_of(self.service, received)
        chosen = states.reshape(-1, states.shape[-1])[places]
        device = chosen.device
        is_quick = fast_dtype(device) == torch.bfloat16
        with autocast(device, "bfloat16" if is_quick else "float32"):
            logits: Tensor = self.head(chosen)
        return logits


@dataclass(kw_only=True)
class PartedLoop(Loop):
    """A training loop over precomputed batches, validated after each of `epochs` equal parts."""

    plan: list[NDArray[np.int64]]

    @property
    def n_batches(self) -> int:
        """Number of batches in a part."""
        return len(self.plan) // self.epochs

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the batches of a part."""
        return self.plan[epoch * self.n_batches : (epoch + 1) * self.n_batches]


class LossCurve:
    """The held-out loss by number of tokens seen, stored in checkpoints."""

    def __init__(self) -> None:
        self.points: list[dict[str, float]] = []

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the points of the curve."""
        return {}, {"points": self.points}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the points of the curve from what `state` returned."""
        self.points = list(meta["points"])
        return self
