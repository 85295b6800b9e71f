"""Train a decoder on pairs of sentences and their vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.reconstruct.decoder import Decoder, DecoderNetwork
from leakscope.core.attacks.inversion.reconstruct.evidence import TokenEvidence
from leakscope.core.attacks.inversion.reconstruct.tokens import END, UNKNOWN
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.training.devices import autocast, fast_dtype, pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train

_IGNORED = -100
_SORTED_TOGETHER = 50
"""Batches whose sentences are sorted by length together, to reduce padding."""


@dataclass(frozen=True, kw_only=True)
class DecoderPlan:
    """Training settings of a decoder.

    Attributes
    ----------
    size : int
        Its vocabulary: the first tokens of the lexicon.
    blur : float
        Length of the Gaussian noise on a vector, which regularises.
    told_blur : float
        The same for the classifier's input. The classifier was trained on these texts and recovers
        as much from them under noise of a third of their length as from others without noise.
    n_validation : int
        Validation pairs, by which the epoch is chosen; a tenth at most.
    """

    size: int
    epochs: int
    width: int = 256
    n_layers: int = 4
    longest: int = 64
    dropout: float = 0.1
    blur: float = 0.1
    told_blur: float = 0.33
    batch_size: int = 128
    learning_rate: float = 1e-3
    warm_up: int = 500
    n_validation: int = 2000
    seed: int = 0
    device: str = "auto"


def train_decoder(
    sentences: Sequence[NDArray[np.int32]],
    vectors: Vectors,
    plan: DecoderPlan,
    *,
    evidence_of: Callable[[Vectors], TokenEvidence] | None = None,
    identity: dict[str, Any] | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> Decoder:
    """Train a decoder to predict each sentence from its vector, token by token.

    Minimises −Σ log P(x_t | e, x_1 … x_{t−1}) over tokens, the end included. Sentences that are too
    long are left out; unknown tokens are inputs but never outputs.

    Parameters
    ----------
    sentences : sequence of int32 array
        Tokens of each text.
    vectors : float32 array of shape (n, d)
    evidence_of : callable, optional
        The word classifier's evidence on vectors, such as `ClassifierEvidence.of`.
    identity : dict, optional
        The identity of the run: a checkpoint of another run is refused.

    Raises
    ------
    InvalidInputError
        Fewer than ten sentences of a suitable length.
    """
    fits = [i for i, ids in enumerate(sentences) if 0 < len(ids) < plan.longest]
    if len(fits) < 10:
        raise InvalidInputError(
            f"The decoder needs at least ten sentences of 1 to {plan.longest - 1} tokens, got "
            f"{len(fits)}. Give other texts, or set decoder_epochs=0."
        )
    order = np.random.default_rng([plan.seed, 7]).permutation(fits)
    n_held = min(plan.n_validation, len(fits) // 10)
    held, known = order[:n_held], order[n_held:]
    torch.manual_seed(plan.seed)
    device = pick_device(plan.device)
    network = DecoderNetwork(
        plan.size,
        vectors.shape[1],
        width=plan.width,
        n_layers=plan.n_layers,
        longest=plan.longest,
        dropout=plan.dropout,
    ).to(device)
    loss = _DecoderLoss(network, sentences, vectors, plan, evidence_of)
    lengths = np.array([len(sentences[i]) for i in known])
    loop = _schedule(plan, lengths, identity or {}, checkpoint_dir)
    rates = _optimizer(network, plan.learning_rate)
    train(
        network,
        rates,
        lambda rows: loss.batch_loss(known[rows], is_training=True),
        lambda: -loss.mean_loss(held),
        loop,
        on_progress,
    )
    return Decoder(network.cpu()).rounded()


def _schedule(
    plan: DecoderPlan,
    lengths: NDArray[np.int64],
    identity: dict[str, Any],
    checkpoint_dir: Path | None,
) -> LengthBatchedLoop:
    """Return the training loop: batches of similar lengths, warm-up, then a falling rate."""
    loop = LengthBatchedLoop(
        n=len(lengths),
        epochs=plan.epochs,
        batch_size=plan.batch_size,
        seed=plan.seed,
        identity={**vars(plan), **identity},
        clip_norm=1.0,
        is_half=False,
        say_score=lambda score: f"perplexity {math.exp(-score):.1f}",
        checkpoint_dir=checkpoint_dir,
        lengths=lengths,
        pool=_SORTED_TOGETHER,
    )
    n_steps = plan.epochs * loop.n_batches
    loop.rate_share = lambda step: min((step + 1) / plan.warm_up, max(0.02, 1 - step / n_steps))
    return loop


def _optimizer(network: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """Return AdamW over a network's parameters, fused where possible."""
    is_fused = next(network.parameters()).device.type in ("cpu", "cuda")
    return torch.optim.AdamW(
        network.parameters(), lr=learning_rate, weight_decay=0.01, betas=(0.9, 0.98), fused=is_fused
    )


class _DecoderLoss:
    """The cross-entropy loss of a decoder on batches of training pairs."""

    def __init__(
        self,
        network: DecoderNetwork,
        sentences: Sequence[NDArray[np.int32]],
        vectors: Vectors,
        plan: DecoderPlan,
        evidence_of: Callable[[Vectors], TokenEvidence] | None,
    ) -> None:
        self._network, self._sentences, self._vectors = network, sentences, vectors
        self._plan = plan
        self._evidence_of = evidence_of or (lambda rows: TokenEvidence.empty(len(rows)))
        self._device = network.tokens.weight.device
        self._precision = str(fast_dtype(self._device)).removeprefix("torch.")

    def batch_loss(self, rows: NDArray[np.int64], *, is_training: bool) -> Tensor:
        """Return the mean loss per token of a batch of pairs."""
        self._network.train(is_training)
        ids = self._padded(rows)
        clean = nn.functional.normalize(torch.from_numpy(self._vectors[rows]).float(), dim=1)
        vectors = _blurred(clean, self._plan.blur) if is_training else clean
        evidence = self._evidence_of(_blurred(clean, self._plan.told_blur).numpy())
        targets = torch.cat([ids, torch.full((len(ids), 1), _IGNORED)], 1)
        ends = torch.tensor([len(self._sentences[i]) for i in rows])
        targets[torch.arange(len(ids)), ends] = END
        counts = (targets != _IGNORED).to(self._device)
        inputs = ids.clamp(min=0).to(self._device)
        with autocast(self._device, self._precision):
            known = self._network(vectors.to(self._device), inputs)[counts]
            scores = self._network.scores(known, *self._for_targets(evidence, counts))
        return nn.functional.cross_entropy(scores.float(), targets.to(self._device)[counts])

    def _for_targets(self, evidence: TokenEvidence, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Repeat the evidence of each row for each of its target tokens, on the device."""
        rows = counts.nonzero()[:, 0].cpu()
        tokens = torch.from_numpy(evidence.tokens)[rows]
        nats = torch.from_numpy(evidence.nats)[rows]
        return tokens.to(self._device), nats.to(self._device)

    def _padded(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the tokens of rows, (b, t), unknown ones replaced and padded by `_IGNORED`."""
        own = [self._sentences[i] for i in rows]
        ids = np.full((len(own), max(map(len, own))), _IGNORED, np.int64)
        for row, tokens in zip(ids, own, strict=True):
            row[: len(tokens)] = np.where(tokens < self._plan.size, tokens, UNKNOWN)
        return torch.from_numpy(ids)

    @torch.inference_mode()
    def mean_loss(self, rows: NDArray[np.int64]) -> float:
        """Return the mean loss per token over validation rows, without noise on the vectors."""
        ordered = rows[np.argsort([len(self._sentences[i]) for i in rows], kind="stable")]
        size = self._plan.batch_size
        total = n_tokens = 0.0
        for start in range(0, len(ordered), size):
            part = ordered[start : start + size]
            n = sum(len(self._sentences[i]) + 1 for i in part)
            total += float(self.batch_loss(part, is_training=False)) * n
            n_tokens += n
        return total / n_tokens


def _blurred(vectors: Tensor, length: float) -> Tensor:
    """Add Gaussian noise of about the given length to vectors."""
    return vectors + torch.randn_like(vectors) * length * vectors.shape[1] ** -0.5
