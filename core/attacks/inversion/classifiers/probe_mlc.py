"""Ours: the multi-label classifier, started from the encoder's encodings of the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leakscope.core.attacks.inversion import shared_settings as shared
from leakscope.core.attacks.inversion.classifiers.mlc import MLCAttack
from leakscope.core.attacks.inversion.classifiers.network import WordClassifier
from leakscope.core.attacks.inversion.pairs import TrainingPairs
from leakscope.core.attacks.inversion.probe import encode_words
from leakscope.core.protocols import Encoder, OnProgress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.specs import setting


@dataclass
class ProbeMLCAttack(MLCAttack):
    """An MLC attack whose word weights start as the centred encodings of the vocabulary words.

    Logits W(A(e − μ) + MLP(e − μ)) + b. W starts as Φ(word) − mean, each word encoded alone; A
    at 8·I, the MLP at 0 and b at the words' log-odds, so that before any training the attack is
    the zero-shot probe with a prior. Black box: it queries the encoder once per word and once
    per auxiliary text. The loss is Eq. 8 of Song & Raghunathan (2020).
    """

    batch_size: int = shared.BATCH_SIZE(256, paper="SR20")
    learning_rate: float = shared.LEARNING_RATE(
        2e-3,
        help="Learning rate of Adam; W uses half of it",
        search=Uniform(3e-4, 1e-2, is_log=True),
    )
    epochs: int = shared.EPOCHS(4)
    hidden: int = setting(
        1024, "Units of the residual network", low=1, search=Categorical((512, 1024, 2048))
    )
    blocks: int = setting(
        1,
        "Layers of the residual network after the first",
        low=0,
        high=8,
        search=Categorical((0, 1, 2)),
    )
    dropout: float = setting(
        0.1,
        "Dropout of the residual network",
        low=0.0,
        high=0.9,
        search=Categorical((0.0, 0.1, 0.2, 0.3)),
    )
    substitutions: int = shared.SUBSTITUTIONS(1)
    start_scale: float = setting(8.0, "Start of A", low=0.0, search=Uniform(2.0, 20.0, is_log=True))

    reads_sparse = False
    _word_rate = 0.5

    def _new_model(
        self, encoder: Encoder, pairs: TrainingPairs, on_progress: OnProgress
    ) -> WordClassifier:
        """Encode the vocabulary words; build the classifier with these as its word weights."""
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
        """Return the classifier's weights in Adam's parameter groups, W at half the rate."""
        rest = [p for name, p in self.model_.named_parameters() if name != "words"]
        return [
            {"params": [self.model_.words], "lr": self._word_rate * self.learning_rate},
            {"params": rest, "lr": self.learning_rate},
        ]
