"""An encoder as a defence lets the world see it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.defences.metric_dp.noise import secure_generator
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Restorable, Vectors, no_progress
from core.store import digest_of
from core.vectors import is_sparse

__all__ = ["ProtectedEncoder", "encode_dense", "generator_of", "name_of"]


@dataclass(frozen=True)
class ProtectedEncoder:
    """Encodes as `base` does, under a defence; every attack and every task runs on it.

    Attributes
    ----------
    name : str
        The base's name and the defence, with its settings.
    dimension : int
        Of the protected vectors.
    fingerprint : str
        Of base, defence, settings and what the defence learned. Two encoders protected without a
        seed have different fingerprints: their noise differs.
    """

    base: Encoder
    name: str
    dimension: int
    fingerprint: str
    transform: Callable[[Sequence[str], OnProgress], Vectors]

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) float32 protected embeddings of n texts, in their order.

        Noise is drawn anew at every call. Under a seed, the same calls in the same order repeat.
        """
        return self.transform(texts, on_progress)

    @classmethod
    def of(
        cls,
        base: Encoder,
        defence: Any,
        transform: Callable[[Sequence[str], OnProgress], Vectors],
        dimension: int | None = None,
    ) -> ProtectedEncoder:
        """Name and fingerprint an encoder under a defence, a dataclass of settings."""
        name = f"{base.name} + {name_of(defence)}"
        is_repeatable = getattr(defence, "seed", 0) is not None
        nonce = "" if is_repeatable else secrets.token_hex(16)
        settings = sorted(asdict(defence).items())
        learned = f"|{digest_of(*defence.state())}" if isinstance(defence, Restorable) else ""
        identity = f"{base.fingerprint}|{type(defence).__name__}|{settings}|{nonce}{learned}"
        fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        return cls(base, name, dimension or base.dimension, fingerprint, transform)


def encode_dense(encoder: Encoder, texts: Sequence[str], on_progress: OnProgress) -> Vectors:
    """Return (n, d) float32 vectors of texts; raise InvalidInputError if they are sparse."""
    vectors = encoder.encode(texts, on_progress)
    if is_sparse(vectors):
        raise InvalidInputError(
            f"{encoder.name} gives sparse vectors, and this defence changes dense ones. "
            "Use it on LSA of the same bag of words."
        )
    return vectors


def name_of(defence: Any) -> str:
    """Return a defence with its settings in words, the seed left out."""
    settings = {k: v for k, v in asdict(defence).items() if k != "seed"}
    said = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{type(defence).__name__}({said})"


def generator_of(seed: int | None) -> np.random.Generator:
    """Return the generator of a seed, or a cryptographic one where there is none."""
    return secure_generator() if seed is None else np.random.default_rng(seed)
