"""The encoder that a defence protects, and helpers that all defences share."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leakscope.core.defences.metric_dp.noise import secure_generator
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Restorable, Vectors, no_progress
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.vectors import is_sparse


@dataclass(frozen=True)
class ProtectedEncoder:
    """An encoder whose vectors are changed by a defence; attacks and tasks use it like any other.

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
        """Encode n texts behind the defence; return (n, dimension) float32 vectors in text order.

        New noise is drawn at every call. With a seed, the same calls in the same order give the
        same vectors.
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
        """Build the protected encoder of a base and a defence; `transform` encodes its texts."""
        name = f"{base.name} + {describe_settings(defence)}"
        is_repeatable = getattr(defence, "seed", 0) is not None
        nonce = "" if is_repeatable else secrets.token_hex(16)
        settings = sorted(asdict(defence).items())
        learned = f"|{digest_of(*defence.state())}" if isinstance(defence, Restorable) else ""
        identity = f"{base.fingerprint}|{type(defence).__name__}|{settings}|{nonce}{learned}"
        fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        return cls(base, name, dimension or base.dimension, fingerprint, transform)


def encode_dense(encoder: Encoder, texts: Sequence[str], on_progress: OnProgress) -> Vectors:
    """Encode texts to (n, d) float32 vectors; raise InvalidInputError if they are sparse."""
    vectors = encoder.encode(texts, on_progress)
    if is_sparse(vectors):
        raise InvalidInputError(
            f"{encoder.name} gives sparse vectors, but this defence needs dense ones. "
            "Use LSA of the same bag of words."
        )
    return vectors


def describe_settings(defence: Any) -> str:
    """Return a built defence's class name and settings as text, without the seed."""
    settings = {k: v for k, v in asdict(defence).items() if k != "seed"}
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{type(defence).__name__}({text})"


def generator_of(seed: int | None) -> np.random.Generator:
    """Return a NumPy generator with the given seed; a cryptographic generator if it is None."""
    return secure_generator() if seed is None else np.random.default_rng(seed)
