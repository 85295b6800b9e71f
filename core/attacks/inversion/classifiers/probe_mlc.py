"""Ours: the multi-label classifier, started from the encoder's own encodings of the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.attacks.inversion.classifiers.mlc import MLCAttack
from core.attacks.inversion.classifiers.network import WordClassifier
from core.attacks.inversion.pairs import TrainingPairs
from core.attacks.inversion.word_start import encode_words
from core.protocols import Encoder, OnProgress
from core.ranges import Between, OneOf
from core.specs import setting

__all__ = ["ProbeMLCAttack"]


@dataclass
class ProbeMLCAttack(MLCAttack):
    """MLC whose weights start as the centred encodings of the vocabulary words.

    Logits W(A(e − μ) + MLP(e − μ)) + b. W starts as Φ(word) − mean, each word encoded alone; A
    at 8·I, the MLP at 0 and b at the words' log-odds, so that before any training the attack is
    the zero-shot probe with a prior. Black box: it queries the encoder once per word and once
    per auxiliary text. The loss is Eq. 8 of Song & Raghunathan (2020).
    """

    batch_size: int = setting(256, "Texts a step", low=1, paper="SR20")
    learning_rate: float = setting(
        2e-3,
        "Of Adam; half of it for W",
        low=1e-6,
        high=1.0,
        search=Between(3e-4, 1e-2, is_log=True),
    )
    epochs: int = setting(4, "At most", low=1)
    hidden: int = setting(
        1024, "Units of the residual network", low=1, search=OneOf((512, 1024, 2048))
    )
    blocks: int = setting(
        1, "Its layers of that width after the first", low=0, high=8, search=OneOf((0, 1, 2))
    )
    dropout: float = setting(
        0.1, "In the residual network", low=0.0, high=0.9, search=OneOf((0.0, 0.1, 0.2, 0.3))
    )
    substitutions: int = setting(
        1, "Copies of each training text with words exchanged", low=0, high=10
    )
    start_scale: float = setting(8.0, "Start of A", low=0.0, search=Between(2.0, 20.0, is_log=True))

    reads_sparse = False
    _word_rate = 0.5

    def _new_model(
        self, encoder: Encoder, pairs: TrainingPairs, on_progress: OnProgress
    ) -> WordClassifier:
        return WordClassifier(
            encode_words(encoder, pairs.vocabulary, on_progress),
            pairs.vocabulary.log_odds,
            pairs.vectors.mean(0),
            scale=self.start_scale,
            hidden=self.hidden,
            blocks=self.blocks,
            dropout=self.dropout,
        )

    def _parameters(self) -> list[dict[str, Any]]:
        """Let W move half as fast: it starts in a good place."""
        rest = [p for name, p in self.model_.named_parameters() if name != "words"]
        return [
            {"params": [self.model_.words], "lr": self._word_rate * self.learning_rate},
            {"params": rest, "lr": self.learning_rate},
        ]
