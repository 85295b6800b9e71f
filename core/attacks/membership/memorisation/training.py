"""Resumable training of a language model on private texts, with measurements after each epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.attacks.membership.memorisation.network import Network, make_network
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.tokens import Tokens
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train

_GROUP = 16
"""Batches whose texts are sorted by length together: less padding, nearly random order."""

_IGNORED = -100


@dataclass
class EpochRecord:
    """The measurements after each epoch, stored in the checkpoint."""

    epochs: list[dict[str, Any]] = field(default_factory=list)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the measurements so far as arrays and JSON-able metadata, for a checkpoint."""
        return {}, {"epochs": self.epochs}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the measurements from what `state` returned."""
        self.epochs = list(meta["epochs"])
        return self


def train_network(
    texts: Sequence[str],
    held_out: Sequence[str],
    tokens: Tokens,
    settings: MemorisationSettings,
    seed: int,
    *,
    measure: Callable[[Network], dict[str, Any]] = lambda network: {},
    measured: str = "",
    describe: Callable[[Sequence[dict[str, Any]]], str] | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Network, list[dict[str, Any]]]:
    """Train a language model on texts; return it and the measurements after each epoch.

    Parameters
    ----------
    measure : callable
        Returns JSON-able measurements of the model after an epoch.
    measured : str
        A digest of what the measurements depend on, to tell runs apart.
    describe : callable, optional
        Describes the measurements so far in words.

    Returns
    -------
    Network, list of dict
        For each epoch, `bits_a_token` on held-out texts and the measurements of `measure`.
    """
    device = pick_device()
    sizes = (tokens.size, settings.hidden, settings.max_length)
    network = make_network(settings.model, *sizes, seed=seed).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rows = [encode_with_ends(tokens, text, settings.max_length) for text in texts]
    record = EpochRecord()

    def loss_of(chosen: NDArray[np.int64]) -> Tensor:
        """Return the mean loss of a batch of texts, given by row number."""
        network.train()
        return loss_of_texts(network, pad_rows([rows[i] for i in chosen], device))

    def validate() -> float:
        """Measure the model and record the epoch; return −bits per token, higher is better."""
        bits = bits_a_token(network, tokens, held_out, settings.max_length)
        record.epochs.append({"bits_a_token": bits, **measure(network)})
        return -bits

    def format_score(score: float) -> str:
        """Format a progress message: the latest epoch as described, or else bits per token."""
        return (describe and describe(record.epochs)) or f"{-score:.2f} bits a token held out"

    apart = {"seed": seed, "texts": digest_texts(texts), "size": tokens.size}
    if measured:
        apart["measured"] = measured
    loop = LengthBatchedLoop(
        pool=_GROUP,
        n=len(rows),
        lengths=np.array([len(row) for row in rows]),
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seed=seed,
        patience=settings.epochs,
        extra_state=record,
        identity={**settings.to_dict(), **apart},
        clip_norm=1.0,
        keep_best=False,
        is_half=False,
        say_score=format_score,
        unit="texts",
        checkpoint_dir=checkpoint_dir,
    )
    train(network, optimizer, loss_of, validate, loop, on_progress)
    return network.eval(), record.epochs


def encode_with_ends(tokens: Tokens, text: str, max_length: int) -> list[int]:
    """Tokenise a text, truncated to a length; return its ids between start and end tokens."""
    return [tokens.start, *tokens.encode(text)[:max_length], tokens.end]


def pad_rows(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Stack lists of token ids into a tensor (texts, length), padded with −1."""
    longest = max(map(len, rows), default=2)
    ids = torch.full((len(rows), longest), -1, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids.to(device)


def loss_of_texts(network: Any, ids: Tensor, reduction: str = "mean") -> Tensor:
    """Return a batch's mean next-token cross-entropy in nats; with `none`, each text's mean."""
    known, targets = ids[:, :-1].clamp(min=0), ids[:, 1:]
    logits = network(known).float()
    flat = targets.reshape(-1).masked_fill(targets.reshape(-1) < 0, _IGNORED)
    if reduction == "mean":
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, ignore_index=_IGNORED)
    each = F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), flat, ignore_index=_IGNORED, reduction="none"
    ).view(targets.shape)
    return each.sum(1) / (targets >= 0).sum(1).clamp(min=1)


@torch.no_grad()
def bits_a_token(network: Network, tokens: Tokens, texts: Sequence[str], max_length: int) -> float:
    """Return a model's mean log-perplexity per token over all texts, in bits."""
    network.eval()
    device = network.output.weight.device
    rows = sorted((encode_with_ends(tokens, text, max_length) for text in texts), key=len)
    total = n = 0.0
    for start in range(0, len(rows), 64):
        part = rows[start : start + 64]
        count = sum(len(row) - 1 for row in part)
        total += float(loss_of_texts(network, pad_rows(part, device))) * count
        n += count
    return total / n / float(np.log(2)) if n else float("nan")


def digest_texts(texts: Sequence[str]) -> str:
    """Return a hash of texts, for the identity of a checkpoint."""
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()[:24]
