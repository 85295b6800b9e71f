"""Settings of a memorisation experiment: model, training, exposure and extraction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from leakscope.core.attacks.membership.memorisation.tokens import TOKENS
from leakscope.core.specs import setting

MODEL_NAMES = ("lstm", "transformer")


@dataclass(frozen=True, kw_only=True)
class MemorisationSettings:
    """Settings of a language model trained on private texts with inserted canaries."""

    model: str = setting("lstm", "the language model, with two layers", choices=MODEL_NAMES)
    tokens: str = setting(
        "bytes", "tokens of the model: bytes can spell any script", choices=TOKENS
    )
    insertions: int = setting(16, "times that a canary is planted", low=0, high=10_000)
    epochs: int = setting(20, "passes over the texts", low=1, high=1000)
    n_texts: int = setting(
        3000, "private sentences; drawn at random if there are more", low=20, high=200_000
    )
    hidden: int = setting(128, "width of its layers, a multiple of 4", low=8, high=2048)
    batch_size: int = setting(16, "texts per step", low=1, high=4096)
    learning_rate: float = setting(3e-3, "of Adam", low=1e-6, high=1.0)
    max_length: int = setting(160, "tokens read per text", low=8, high=1024)
    vocabulary_size: int = setting(
        5000, "size of the vocabulary if the tokens are words", low=10, high=200_000
    )
    exact_up_to: int = setting(
        100_000,
        "the most possible secrets that are all ranked; of more, a sample is",
        low=1,
        high=2_000_000,
    )
    n_sampled: int = setting(10_000, "secrets in that sample", low=100, high=1_000_000)
    n_generated: int = setting(
        400, "texts sampled by each sampler; 0 for none", low=0, high=100_000
    )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dictionary by name."""
        return asdict(self)
