"""Choose λ and τ of sparse coding on auxiliary texts, as SR20 §6.2 does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from core.attacks.inversion.sparse_coding import SparseCodingAttack, words_of_codes
from core.attacks.inversion.token_words import require_white_box
from core.metrics import score_words
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.text import STOP_WORDS, word_set

__all__ = ["tune"]

PENALTIES = (0.01, 0.02, 0.03, 0.05, 0.1)
THRESHOLDS = (0.002, 0.004, 0.005, 0.006, 0.007, 0.0075, 0.008, 0.009, 0.01, 0.012, 0.015, 0.02)


def tune(
    attack: SparseCodingAttack,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors | None = None,
    *,
    penalties: Sequence[float] = PENALTIES,
    thresholds: Sequence[float] = THRESHOLDS,
    on_progress: OnProgress = no_progress,
) -> dict[str, float]:
    """Return the `penalty` and `threshold` of the highest token-set F1 on auxiliary texts.

    Parameters
    ----------
    attack : SparseCodingAttack
        Fitted, on other texts than these; it is not changed.
    texts : sequence of str
        Never the texts that will be scored. A few hundred are enough.

    Returns
    -------
    dict
        penalty, threshold, and token_set_f1 in [0, 100] as reached on `texts`.
    """
    open_encoder = require_white_box(encoder, "tune")
    vectors = encoder.encode(texts) if vectors is None else vectors
    left_out = frozenset() if attack.keep_stop_words else STOP_WORDS
    targets = [word_set(text) - left_out for text in texts]
    names = attack.answerable_words(open_encoder)
    best = {"penalty": 0.0, "threshold": 0.0, "token_set_f1": -1.0}
    for done, penalty in enumerate(penalties, 1):
        trial = dataclasses.replace(attack, penalty=penalty).load_state(*attack.state())
        codes = trial.codes(open_encoder, vectors)
        for threshold in thresholds:
            answers = [a.word_set for a in words_of_codes(codes, names, threshold)]
            f1 = score_words(answers, targets).token_set_f1
            if f1 > best["token_set_f1"]:
                best = {"penalty": penalty, "threshold": threshold, "token_set_f1": f1}
        on_progress(
            done / len(penalties), f"λ = {penalty:g} tried, best F1 {best['token_set_f1']:.1f}"
        )
    return best
