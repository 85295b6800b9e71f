"""Settings of a network that is fine-tuned under noise, as a defence."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.core.defences.trained.under_noise.registry import READERS
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting

SENDS = ("text_to_text", "token_representation", "sequence_representation")
"""Mechanisms that may protect the input, by the names of the defences."""

_ETA = Strength("Noise", 75.0, (60.0, 75.0, 90.0, 120.0), "η {:g}")


@dataclass
class NetworkUnderNoise:
    """The mechanism that protects the input, its η, and the network that reads it."""

    sends: str = setting("text_to_text", "Mechanism that protects the input", choices=SENDS)
    eta: float = setting(
        75.0, "Privacy parameter, in 1/distance", low=1e-6, high=1e6, strength=_ETA
    )
    network: str = setting("transformer", "Network that reads it", choices=tuple(READERS))
