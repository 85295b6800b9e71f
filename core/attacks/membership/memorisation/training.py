"""Training of a language model on private texts: resumable, with what is measured each epoch."""

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

from core.attacks.membership.memorisation.network import Network, make_network
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.tokens import Tokens
from core.protocols import OnProgress, no_progress
from core.training.by_length import ByLength
from core.training.devices import pick_device
from core.training.loop import train

__all__ = ["EpochRecord", "bits_a_token", "digest_texts", "encoded", "loss_of_texts",
           "padded", "train_network"]  # fmt: skip

_GROUP = 16
"""Batches of texts that are sorted by length together: less padding, nearly a random order."""

_IGNORED = -100


@dataclass
class EpochRecord:
    """What was measured after each epoch: part of the checkpoint, so that no epoch is lost."""

    epochs: list[dict[str, Any]] = field(default_factory=list)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what was measured, JSON-able."""
        return {}, {"epochs": self.epochs}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
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
    said: Callable[[Sequence[dict[str, Any]]], str] | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Network, list[dict[str, Any]]]:
    """Return a model trained on texts, and what was measured of it after each epoch.

    Parameters
    ----------
    measure : callable
        What is measured of the model after an epoch, JSON-able.
    measured : str
        A digest of what that depends on: another run's epochs are not taken for this one's.
    said : callable, optional
        Tells in words what was measured so far.

    Returns
    -------
    Network, list of dict
        Each of these with `bits_a_token` on the held-out texts, beside what `measure` returned.
    """
    device = pick_device()
    sizes = (tokens.size, settings.hidden, settings.max_length)
    network = make_network(settings.model, *sizes, seed=seed).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rows = [encoded(tokens, text, settings.max_length) for text in texts]
    record = EpochRecord()

    def loss_of(chosen: NDArray[np.int64]) -> Tensor:
        network.train()
        return loss_of_texts(network, padded([rows[i] for i in chosen], device))

    def validate() -> float:
        bits = bits_a_token(network, tokens, held_out, settings.max_length)
        record.epochs.append({"bits_a_token": bits, **measure(network)})
        return -bits

    def told(score: float) -> str:
        return (said and said(record.epochs)) or f"{-score:.2f} bits a token held out"

    apart = {"seed": seed, "texts": digest_texts(texts), "size": tokens.size}
    if measured:
        apart["measured"] = measured
    loop = ByLength(
        pool=_GROUP,
        n=len(rows), lengths=np.array([len(row) for row in rows]), epochs=settings.epochs,
        batch_size=settings.batch_size, seed=seed, patience=settings.epochs, extra_state=record,
        identity={**settings.to_dict(), **apart}, clip_norm=1.0, keep_best=False,
        is_half=False, say_score=told, unit="texts", checkpoint_dir=checkpoint_dir,
    )  # fmt: skip
    train(network, optimizer, loss_of, validate, loop, on_progress)
    return network.eval(), record.epochs


def encoded(tokens: Tokens, text: str, max_length: int) -> list[int]:
    """Return a text's tokens, cut to a length, between start and end."""
    return [tokens.start, *tokens.encode(text)[:max_length], tokens.end]


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return (texts, length) tokens; −1 stands after the end of shorter ones."""
    longest = max(map(len, rows), default=2)
    ids = torch.full((len(rows), longest), -1, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids.to(device)


def loss_of_texts(network: Any, ids: Tensor, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of the next token, in nats; with `none`, of each text its mean."""
    known, targets = ids[:, :-1].clamp(min=0), ids[:, 1:]
    logits = network(known).float()
    flat = targets.reshape(-1).masked_fill(targets.reshape(-1) < 0, _IGNORED)
    if reduction == "mean":
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, ignore_index=_IGNORED)
    each = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, ignore_index=_IGNORED,
                           reduction="none").view(targets.shape)  # fmt: skip
    return each.sum(1) / (targets >= 0).sum(1).clamp(min=1)


@torch.no_grad()
def bits_a_token(network: Network, tokens: Tokens, texts: Sequence[str], max_length: int) -> float:
    """Return the mean log-perplexity of a token of some texts, in bits."""
    network.eval()
    device = network.output.weight.device
    rows = sorted((encoded(tokens, text, max_length) for text in texts), key=len)
    total = n = 0.0
    for start in range(0, len(rows), 64):
        part = rows[start : start + 64]
        count = sum(len(row) - 1 for row in part)
        total += float(loss_of_texts(network, padded(part, device))) * count
        n += count
    return total / n / float(np.log(2)) if n else float("nan")


def digest_texts(texts: Sequence[str]) -> str:
    """Return what tells texts from others: part of the identity of a checkpoint."""
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()[:24]
