"""Measuring all tokens of an encoder: work for a process of its own."""

from __future__ import annotations

from core.defences.deniability.measured import measure_statistics
from core.encoders.at_hand import encoder_at_hand
from core.encoders.white_box import require_white_box
from core.protocols import OnProgress, no_progress
from core.specs import EncoderSpec

__all__ = ["measure_encoder"]


def measure_encoder(on: EncoderSpec, on_progress: OnProgress = no_progress) -> None:
    """Measure the vocabulary and the geometry of an encoder and keep them on disk.

    Raises
    ------
    InvalidInputError
        The encoder is closed: its tokens cannot be measured.
    """
    on_progress(0.0, "Loading the encoder")
    encoder = require_white_box(encoder_at_hand(on), "deniability")
    measure_statistics(encoder, on_progress=on_progress)
