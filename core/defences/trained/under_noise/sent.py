"""A network that is fine-tuned and used on what leaves under noise, told as a defence."""

from __future__ import annotations

from dataclasses import dataclass

from core.defences.trained.under_noise.registry import READERS
from core.ranges import Strength
from core.specs import setting

__all__ = ["SENDS", "NetworkUnderNoise"]

SENDS = ("text_to_text", "token_representation", "sequence_representation")
"""What users may send, by the names that the defences have."""

_ETA = Strength("Noise", 75.0, (60.0, 75.0, 90.0, 120.0), "η {:g}")


@dataclass
class NetworkUnderNoise:
    """What users send, at which η, and which network reads it."""

    sends: str = setting("text_to_text", "What users send", choices=SENDS)
    eta: float = setting(
        75.0, "Privacy parameter, in 1/distance", low=1e-6, high=1e6, strength=_ETA
    )
    network: str = setting("transformer", "What reads it", choices=tuple(READERS))
