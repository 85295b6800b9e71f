"""Encoders that stay loaded in a process for repeated use."""

from __future__ import annotations

from functools import lru_cache

from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec


@lru_cache(maxsize=2)
def shared_encoder(spec: EncoderSpec) -> Encoder:
    """Load the encoder of a spec, or return it if it is one of the last two loaded."""
    return load_encoder(spec)
