"""Encoders that a process keeps open, for work that comes again and again."""

from __future__ import annotations

from functools import lru_cache

from core.encoders import load_encoder
from core.protocols import Encoder
from core.specs import EncoderSpec

__all__ = ["encoder_at_hand"]


@lru_cache(maxsize=2)
def encoder_at_hand(spec: EncoderSpec) -> Encoder:
    """Return an encoder, opened once; the last two are kept."""
    return load_encoder(spec)
