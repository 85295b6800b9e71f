"""The recurrent network of multi-set prediction, its loss and its greedy decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.attacks.inversion.sparse_input import from_stored, network_input, stored_layer
from leakscope.core.protocols import Vectors
from leakscope.core.text import Vocabulary
from leakscope.core.training.devices import fast_dtype


@dataclass(frozen=True)
class Candidates:
    """The words scored in one training step, with their inclusion probabilities."""

    ids: Tensor
    """(C,) positions in V, sorted."""
    log_inclusion: Tensor
    """(C,) log of the probability that the word is a candidate of a text that lacks it."""


def draw_candidates(
    targets: list[NDArray[np.int32]],
    share: NDArray[np.float64],
    n_negatives: int,
    rng: np.random.Generator,
    always: tuple[int, ...] = (),
) -> Candidates:
    """Draw the words that a batch is scored on: its own and `n_negatives` random ones.

    Parameters
    ----------
    targets : list of int arrays
        The words of each text of the batch.
    share : ndarray, shape (|V|,)
        Share of training texts that hold each word: it gives the chance that another text of
        the batch brought the word in.
    """
    size = len(share)
    drawn = rng.choice(size, min(n_negatives, size), replace=False)
    ids = np.unique(np.concatenate([*targets, drawn, np.array(always, dtype=np.int64)]))
    missed = (1 - share[ids]) ** (len(targets) - 1) * (1 - len(drawn) / size)
    inclusion = np.log(np.clip(1 - missed, 1e-6, 1.0))
    return Candidates(
        torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(inclusion.astype(np.float32))
    )


def all_candidates(size: int) -> Candidates:
    """Return all `size` words of a vocabulary as candidates, as in the papers' full softmax."""
    return Candidates(torch.arange(size), torch.zeros(size))


def rare_word_weights(vocabulary: Vocabulary, power: float, *, end_token: bool) -> Tensor:
    """Return a loss weight per word, higher for rare words: (N/df)^power, with weighted mean 1.

    C22 §6.1 proposes to weight rare words in the loss; the formula is ours. [EOS] weighs 1.
    """
    counts = np.asarray(vocabulary.document_frequency, dtype=np.float64)
    weight = (vocabulary.n_texts / counts) ** power
    weight /= (weight * counts).sum() / counts.sum()
    if end_token:
        weight = np.append(weight, 1.0)
    return torch.from_numpy(weight.astype(np.float32))


_NEVER = -1e9
_State = tuple[Tensor, Tensor]


class MSPNetwork(nn.Module):
    """A recurrent network (LSTM) that predicts the words of a vector one after another.

    u_1 = W_1 (e − μ); h_t, c_t = LSTMCell(u_t, h, c); logits = W_2 h_t + b; u_{t+1} = W_2[argmax].

    Parameters
    ----------
    dimension : int
        Of the vectors under attack.
    words : ndarray of float32, shape (|V| or |V| + 1, H)
        Start of W_2; a further row stands for [EOS].
    bias : ndarray of float32, shape (|V| or |V| + 1,)
        Start of b; all zero in the papers, which have no b.
    first : Module, optional
        W_1 where it is no plain matrix: of sparse vectors.
    centre : float32 tensor (dimension,), optional
        μ, the mean of the vectors; 0 in the papers and by default.
    """

    centre: Tensor | None

    def __init__(
        self,
        dimension: int,
        words: NDArray[np.float32],
        bias: NDArray[np.float32],
        *,
        dropout: float,
        first: nn.Module | None = None,
        centre: Tensor | None = None,
    ) -> None:
        super().__init__()
        hidden = words.shape[1]
        self.first: nn.Module = first or nn.Linear(dimension, hidden, bias=False)
        self.register_buffer("centre", centre)
        self.cell = nn.LSTMCell(hidden, hidden)
        self.h0 = nn.Parameter(torch.zeros(hidden))
        self.c0 = nn.Parameter(torch.zeros(hidden))
        self.words = nn.Parameter(torch.as_tensor(words).clone())
        self.bias = nn.Parameter(torch.as_tensor(bias).clone())
        self.dropout = dropout

    @torch.no_grad()
    def start_as_probe(
        self,
        words: Vectors,
        log_odds: NDArray[np.float32],
        word_scale: float,
        vector_scale: float,
    ) -> None:
        """Set the weights to the zero-shot probe: first logits rank words by similarity.

        W_1 = vector_scale · R and W_2 = word_scale · R Φ(w), R being the identity where H = d and a
        random projection else, which nearly keeps angles. With the identity in the cell's
        candidate gate and open input and output gates, h_1 points along the vector. Ours: it
        spares the network many epochs.

        Parameters
        ----------
        words : float32 array or csr_array (|V|, d)
            Each word's own encoding, less their mean where they are dense; a further row of W_2,
            for [EOS], stays as it is.
        log_odds : float32 array (|V|,)
            Start of b.
        """
        hidden = self.h0.shape[0]
        if isinstance(self.first, nn.Linear):
            if self.first.weight.shape[1] == hidden:
                nn.init.eye_(self.first.weight)
            else:
                nn.init.normal_(self.first.weight, std=hidden**-0.5)
        n_words = len(log_odds)
        images = self.first(network_input(self.first, words, self.words.device))
        self.words[:n_words] = word_scale * images
        self.bias[:n_words] = torch.as_tensor(log_odds)
        for weight in self.first.parameters():
            weight.mul_(vector_scale)
        i, f, g, o = (slice(k * hidden, (k + 1) * hidden) for k in range(4))
        self.cell.weight_ih[g] += torch.eye(hidden)
        for gate in (i, f, o):
            self.cell.bias_ih[gate] += 1.0

    def start(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first LSTM input and state (u_1, h_0, c_0) for a batch of vectors."""
        n = len(vectors)
        centred = vectors if self.centre is None else vectors - self.centre
        return self.first(centred), self.h0.expand(n, -1), self.c0.expand(n, -1)

    def advance(self, u: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the LSTM by one step: return (h_t, c_t)."""
        new: tuple[Tensor, Tensor] = self.cell(u, (h, c))
        return new

    def fast_advance(self, fast: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], _State]:
        """Return a function like `advance` for training: fast matrix products, float32 sums."""
        if fast == torch.float32:
            return self.advance
        into, again = self.cell.weight_ih.to(fast).T, self.cell.weight_hh.to(fast).T
        bias = self.cell.bias_ih + self.cell.bias_hh

        def advance(u: Tensor, h: Tensor, c: Tensor) -> _State:
            """Advance the LSTM by one step: return (h_t, c_t)."""
            gates = (u.to(fast) @ into).float() + (h.to(fast) @ again).float() + bias
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

        return advance


def stored_network(arrays: dict[str, NDArray[Any]], dropout: float) -> MSPNetwork:
    """Rebuild a network from the float16 arrays that were stored."""
    tensors = {name: from_stored(array) for name, array in arrays.items()}
    network = MSPNetwork(
        tensors["first.weight"].shape[1],
        tensors["words"].numpy(),
        tensors["bias"].numpy(),
        dropout=dropout,
        first=stored_layer(tensors, "first."),
        centre=tensors.get("centre"),
    )
    network.load_state_dict(tensors)
    return network.eval()


def msp_loss(
    network: MSPNetwork,
    vectors: Tensor,
    targets: list[NDArray[np.int32]],
    candidates: Candidates,
    n_steps: int,
    word_weights: Tensor | None = None,
) -> Tensor:
    """Compute the multi-set loss of a batch (SR20 Eq. 9; Corò 2022, Eq. 4.4), averaged over texts.

    L = Σ_t −(1/|W_t|) Σ_{w∈W_t} log softmax(logits_t)_w, where W_t are the words still to
    predict; steps with none left add nothing. The word named at each step is the candidate with
    the highest logit that was not named before (Alg. 1).

    Differs from the papers: the softmax runs over `candidates`, each negative's logit corrected
    by its log inclusion probability, which makes the normaliser's sampled sum unbiased; with all
    candidates this is the papers' loss. All steps share one matrix product.

    Parameters
    ----------
    vectors : Tensor, shape (B, d)
    targets : list of B int arrays
    n_steps : int
        L.
    word_weights : Tensor, shape (|V|,), optional
        Weight of each word in the mean over W_t (C22 §6.1 proposes to weight rare words).
    """
    fast = fast_dtype(vectors.device)
    ids = candidates.ids.to(vectors.device)
    table = network.words[ids]
    bias = network.bias[ids]
    position, held = _positions(targets, ids)
    weight = held.float() if word_weights is None else held * word_weights[ids][position]

    advance = network.fast_advance(fast)
    u, h, c = network.start(vectors)
    fast_table = table.detach().to(fast).T
    named_mask = torch.zeros(len(vectors), len(ids), dtype=torch.bool, device=vectors.device)
    states, left = [], [weight]
    for _ in range(n_steps):
        # Dropout before each LSTM input, as C22 §4.3.3 has it.
        h, c = advance(F.dropout(u, network.dropout, network.training), h, c)
        states.append(h)
        with torch.no_grad():
            logits = (h.to(fast) @ fast_table).float().add_(bias)
            named = logits.masked_fill_(named_mask, _NEVER).argmax(1, keepdim=True)
            named_mask.scatter_(1, named, value=True)
            left.append(left[-1] * (position != named))
        u = table[named[:, 0]]
    return _set_loss(states, table, bias, position, left[:-1], candidates, fast)


def _positions(targets: list[NDArray[np.int32]], ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return (B, P) positions of each text's words among sorted ids, and which are no padding."""
    width = max(len(t) for t in targets)
    padded = np.zeros((len(targets), width), dtype=np.int64)
    held = np.zeros((len(targets), width), dtype=bool)
    for i, t in enumerate(targets):
        padded[i, : len(t)] = t
        held[i, : len(t)] = True
    words = torch.from_numpy(padded).to(ids.device)
    mask = torch.from_numpy(held).to(ids.device)
    return torch.searchsorted(ids, words).clamp_(max=len(ids) - 1), mask


def _set_loss(
    states: list[Tensor],
    table: Tensor,
    bias: Tensor,
    position: Tensor,
    left: list[Tensor],
    candidates: Candidates,
    fast: torch.dtype,
) -> Tensor:
    """Compute the multi-set loss from all LSTM states: mean of Σ_t (log Z_t − mean target logit).

    `left[t]` holds the weights of the words still to predict before step t names one, as Eq. 9
    and Eq. 4.4 define W_t. The algorithms printed beside those equations take the named word out
    first, which would never reward naming a word rightly.
    """
    batch, n_steps = len(position), len(states)
    h = torch.stack(states, 1).reshape(batch * n_steps, -1)
    logits = (h.to(fast) @ table.to(fast).T).float() + bias
    logits = logits.reshape(batch, n_steps, -1)
    correction = -candidates.log_inclusion.to(h.device).expand(batch, -1).clone()
    real = left[0] > 0
    # Padding shares position 0 with a word: adding cannot undo what that word sets.
    own = torch.zeros_like(correction).scatter_add_(1, position, real.to(correction.dtype)) > 0
    correction.masked_fill_(own, 0.0)
    log_z = torch.logsumexp(logits + correction[:, None], dim=2)
    own_logits = logits.gather(2, position[:, None].expand(-1, n_steps, -1))
    weights = torch.stack(left, 1)
    total = weights.sum(2)
    mean_logit = (own_logits * weights).sum(2) / total.clamp(min=1e-9)
    return ((log_z - mean_logit) * (total > 0)).sum() / batch


@torch.inference_mode()
def decode(
    network: MSPNetwork, vectors: Tensor, n_steps: int, *, shortlist: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Predict `n_steps` words of each vector greedily, none twice; also return probabilities.

    After the first step only the `shortlist` words with the highest first logits are scored: the
    answers are the same in practice and a step costs a hundredth.

    Returns
    -------
    named : ndarray of int64, shape (n, n_steps)
    probability : ndarray of float32, shape (n, n_steps)
        Softmax over the shortlist words not yet named.
    """
    network.eval()
    u, h, c = network.start(vectors)
    h, c = network.advance(u, h, c)
    logits = torch.addmm(network.bias, h, network.words.T)
    size = min(shortlist, logits.shape[1])
    logits, ids = logits.topk(size, dim=1)
    table, bias = network.words[ids], network.bias[ids]
    rows = torch.arange(len(vectors), device=vectors.device)
    named: list[Tensor] = []
    probability: list[Tensor] = []
    for step in range(min(n_steps, size)):
        if step:
            h, c = network.advance(u, h, c)
            logits = torch.baddbmm(bias[:, :, None], table, h[:, :, None])[:, :, 0]
            for earlier in named:
                logits[rows, earlier] = _NEVER
        best = logits.argmax(1)
        probability.append(torch.softmax(logits, 1)[rows, best])
        named.append(best)
        u = table[rows, best]
    order = torch.stack(named, 1)
    return ids.gather(1, order).cpu().numpy(), torch.stack(probability, 1).cpu().numpy()
