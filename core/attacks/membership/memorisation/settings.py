"""What decides an experiment of memorisation: the model, its training, and how it is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.attacks.membership.memorisation.tokens import TOKENS
from core.specs import setting

__all__ = ["MODEL_NAMES", "MemorisationSettings"]

MODEL_NAMES = ("lstm", "transformer")


@dataclass(frozen=True, kw_only=True)
class MemorisationSettings:
    """A language model trained on private texts in which canaries are planted."""

    model: str = setting("lstm", "the language model, of two layers", choices=MODEL_NAMES)
    tokens: str = setting("bytes", "what it reads: bytes spell any script", choices=TOKENS)
    insertions: int = setting(16, "times that a canary is planted", low=0, high=10_000)
    epochs: int = setting(20, "passes over the texts", low=1, high=1000)
    n_texts: int = setting(3000, "private sentences, drawn where there are more",
                           low=20, high=200_000)  # fmt: skip
    hidden: int = setting(128, "width of its layers, a multiple of 4", low=8, high=2048)
    batch_size: int = setting(16, "texts in a step", low=1, high=4096)
    learning_rate: float = setting(3e-3, "of Adam", low=1e-6, high=1.0)
    max_length: int = setting(160, "tokens read of a text", low=8, high=1024)
    vocabulary_size: int = setting(5000, "most words known, of the tokens that are words",
                                   low=10, high=200_000)  # fmt: skip
    exact_up_to: int = setting(
        100_000, "most fillings of a format that are all ranked; of more, some are sampled",
        low=1, high=2_000_000,
    )  # fmt: skip
    n_sampled: int = setting(10_000, "fillings sampled where there are more", low=100,
                             high=1_000_000)  # fmt: skip
    n_generated: int = setting(400, "texts drawn by each sampler; 0 for none", low=0,
                               high=100_000)  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name."""
        return asdict(self)
