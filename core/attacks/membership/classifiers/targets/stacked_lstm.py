"""Many LSTMs of one shape as one network with an axis of models, its gradients by hand.

A step of an LSTM is small, and what it costs is mostly the call. Here a step is one batched
product for all models, and autograd sees a layer as one operation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["StackedLSTM", "lstm_layer"]


class _Layer(torch.autograd.Function):
    """The recurrence of one layer of all models over a batch each."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, recurrent: Tensor) -> Tensor:
        """Return h_1 … h_T.

        Parameters
        ----------
        gates : Tensor, shape (T, n_models, batch, 4 H)
            W x_t + b, for input, forget, output gate and candidate.
        recurrent : Tensor, shape (n_models, H, 4 H)
        """
        n_steps, m, b, width = gates.shape
        size = width // 4
        states = gates.new_zeros((n_steps + 1, m, b, size))
        cells = gates.new_zeros((n_steps + 1, m, b, size))
        acts = torch.empty_like(gates)
        for t in range(n_steps):
            a = torch.baddbmm(gates[t], states[t], recurrent, out=acts[t])
            a[..., : 3 * size].sigmoid_()
            a[..., 3 * size :].tanh_()
            i, f, o, g = a.split(size, 2)
            torch.addcmul(i * g, f, cells[t], out=cells[t + 1])
            torch.mul(o, cells[t + 1].tanh(), out=states[t + 1])
        ctx.save_for_backward(acts, states, cells, recurrent)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of `gates` and `recurrent`."""
        acts, states, cells, recurrent = ctx.saved_tensors
        (grad,) = grads
        n_steps, m, b, width = acts.shape
        size = width // 4
        i, f, o, g = acts.split(size, 3)
        squashed = cells[1:].tanh()
        slopes = torch.empty_like(acts)  # of what each gate's sum does to the cell, or to h
        torch.mul(g, i * (1 - i), out=slopes[..., :size])
        torch.mul(cells[:-1], f * (1 - f), out=slopes[..., size : 2 * size])
        torch.mul(squashed, o * (1 - o), out=slopes[..., 2 * size : 3 * size])
        torch.mul(i, 1 - g * g, out=slopes[..., 3 * size :])
        into_cell = o * (1 - squashed * squashed)
        back = recurrent.transpose(1, 2).contiguous()
        dh, dc = grad[-1], grad.new_zeros((m, b, size))
        for t in range(n_steps - 1, -1, -1):
            dc = torch.addcmul(dc, dh, into_cell[t])
            s = slopes[t]
            s[..., : 2 * size].view(m, b, 2, size).mul_(dc[:, :, None])
            s[..., 2 * size : 3 * size].mul_(dh)
            s[..., 3 * size :].mul_(dc)
            if t:
                dh = torch.baddbmm(grad[t - 1], s, back)
                dc = dc * f[t]
        flat = slopes.transpose(0, 1).reshape(m, n_steps * b, width)
        before = states[:-1].transpose(0, 1).reshape(m, n_steps * b, size)
        return slopes, torch.bmm(before.transpose(1, 2), flat)


def lstm_layer(inputs: Tensor, weights: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """Return the states of a layer of every model.

    Implements Hochreiter & Schmidhuber (1997) with the forget gate of Gers et al. (2000):
    c_t = f ⊙ c_{t−1} + i ⊙ g, h_t = o ⊙ tanh c_t, with i, f, o = σ(·) and g = tanh(·) of
    W x_t + R h_{t−1} + b.
    Differs from the papers: nothing; `torch.nn.LSTM` has a second bias, which adds nothing.

    Parameters
    ----------
    inputs : Tensor, shape (T, n_models, batch, D)
    weights, recurrent, bias : Tensor, shapes (n_models, D, 4 H), (n_models, H, 4 H), (n_models, 4 H)
        Their last axis holds input, forget and output gate, and the candidate.

    Returns
    -------
    Tensor, shape (T, n_models, batch, H)
    """
    n_steps, m, b, d = inputs.shape
    flat = inputs.transpose(0, 1).reshape(m, n_steps * b, d)
    gates = torch.baddbmm(bias[:, None], flat, weights)
    gates = gates.view(m, n_steps, b, -1).transpose(0, 1).contiguous()
    states: Tensor = _Layer.apply(gates, recurrent)  # type: ignore[no-untyped-call]
    return states


class StackedLSTM(nn.Module):
    """Word vectors, two LSTM layers, the mean of their states and a linear head, of each model.

    Parameters
    ----------
    n_models : int
        Models side by side; each begins with weights of its own.
    n_tokens, dimension, hidden, n_classes : int
        Sizes, the same for all models.
    seed : int
        Of the first weights.
    """

    def __init__(
        self, n_models: int, n_tokens: int, n_classes: int, *, dimension: int, hidden: int, seed: int
    ) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.n_tokens = n_tokens
        self.words = self._drawn((n_models, n_tokens, dimension), 1.0)
        edge = hidden**-0.5
        for layer, width in enumerate((dimension, hidden)):
            self.register_parameter(f"in{layer}", self._even((n_models, width, 4 * hidden), edge))
            self.register_parameter(f"back{layer}", self._even((n_models, hidden, 4 * hidden), edge))
            bias = torch.zeros(n_models, 4 * hidden)
            bias[:, hidden : 2 * hidden] = 1.0  # what was seen is kept at first
            self.register_parameter(f"bias{layer}", nn.Parameter(bias))
        self.head = self._even((n_models, hidden, n_classes), edge)
        self.head_bias = nn.Parameter(torch.zeros(n_models, n_classes))

    def _drawn(self, shape: tuple[int, ...], scale: float) -> nn.Parameter:
        return nn.Parameter(scale * torch.randn(shape, generator=self.generator))

    def _even(self, shape: tuple[int, ...], edge: float) -> nn.Parameter:
        return nn.Parameter(edge * (2 * torch.rand(shape, generator=self.generator) - 1))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return (n_models, batch, n_classes) logits of (n_models, batch, T) token ids."""
        m, d = len(self.words), self.words.shape[2]
        offsets = torch.arange(m, device=ids.device)[:, None, None] * self.n_tokens
        rows = (ids + offsets).permute(2, 0, 1).contiguous()
        states = F.embedding(rows, self.words.view(-1, d))
        for layer in range(2):
            parts = (getattr(self, f"{name}{layer}") for name in ("in", "back", "bias"))
            states = lstm_layer(states, *parts)
        weights = (mask / mask.sum(2, keepdim=True).clamp(min=1)).permute(2, 0, 1)[..., None]
        return torch.baddbmm(self.head_bias[:, None], (states * weights).sum(0), self.head)
