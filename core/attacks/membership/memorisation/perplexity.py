"""Log-perplexity of texts under a language model, computed once for common beginnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.membership.memorisation.network import Network, select_states
from leakscope.core.attacks.membership.memorisation.tokens import Tokens

_Bits = NDArray[np.float64]
_AT_ONCE = 2**17
"""Tokens of texts processed together, which bounds memory."""


def bits_of(log_likelihoods: NDArray[np.float64]) -> float:
    """Return the log-perplexity of a text in bits from its tokens' log-likelihoods in nats.

    Implements Carlini et al. (2019), Definition 1 (METHODS §4): P = Σ_i −log₂ f(x_i | x_<i).

    Examples
    --------
    >>> bits_of(np.log([0.5, 0.25]))
    3.0
    """
    return float(-np.sum(log_likelihoods) / np.log(2))


@torch.no_grad()
def log_perplexities(
    network: Network, tokens: Tokens, texts: Sequence[str], max_length: int | None = None
) -> _Bits:
    """Compute the log-perplexity P = Σ_i −log₂ f(x_i | x_<i) of each text, in bits.

    Implements Carlini et al. (2019), Definition 1. Differs from the paper: nothing; the end of a
    text is not counted. Texts are processed as a prefix tree, so that a common beginning is
    computed once: all 10^6 numbers of six digits take some 10^5 steps.

    Parameters
    ----------
    max_length : int, optional
        The most tokens of a text; all by default.
    """
    network.eval()
    spelt = [tuple(tokens.encode(text)[:max_length]) for text in texts]
    order = sorted(range(len(spelt)), key=spelt.__getitem__)
    found = np.zeros(len(spelt))
    longest = max(map(len, spelt), default=1)
    n_at_once = max(64, _AT_ONCE // max(1, longest))
    for start in range(0, len(order), n_at_once):
        rows = order[start : start + n_at_once]
        found[rows] = _walk_prefix_tree(network, tokens, [spelt[row] for row in rows])
    return found


def _walk_prefix_tree(network: Network, tokens: Tokens, spelt: Sequence[tuple[int, ...]]) -> _Bits:
    """Compute the log-perplexities of sorted token sequences by walking their prefix tree."""
    device = network.output.weight.device
    lengths = np.array([len(each) for each in spelt])
    ids = np.zeros((len(spelt), max(1, lengths.max(initial=1))), dtype=np.int64)
    for row, each in enumerate(spelt):
        ids[row, : len(each)] = each
    node, bits = np.zeros(len(spelt), dtype=np.int64), np.zeros(len(spelt))
    first = torch.tensor([tokens.start], device=device)
    logits, state = network.step(first, network.begin(1))
    for t in range(lengths.max(initial=0)):
        alive = np.flatnonzero(lengths > t)
        nats = _pick_entries(torch.log_softmax(logits.double(), -1), node[alive], ids[alive, t])
        bits[alive] -= nats / np.log(2)
        going = np.flatnonzero(lengths > t + 1)
        if not len(going):
            break
        pairs = node[going] * tokens.size + ids[going, t]
        distinct, node[going] = np.unique(pairs, return_inverse=True)
        parents = torch.from_numpy(distinct // tokens.size).to(device)
        follows = torch.from_numpy(distinct % tokens.size).to(device)
        logits, state = network.step(follows, select_states(state, parents))
    return bits


def _pick_entries(table: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> _Bits:
    """Return a tensor's entries at pairs of rows and columns, as a NumPy array."""
    picked = table[torch.from_numpy(rows), torch.from_numpy(columns)]
    return np.asarray(picked.cpu().numpy(), dtype=np.float64)
