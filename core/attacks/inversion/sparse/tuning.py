"""Choose λ and τ of sparse coding on auxiliary texts, as SR20 §6.2 does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.attacks.inversion.sparse.solvers import Floats
from core.attacks.inversion.sparse.words import words_of_codes
from core.attacks.inversion.token_words import regular_token_ids
from core.encoders.white_box import require_white_box
from core.metrics import score_words
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.text import STOP_WORDS, word_set

__all__ = ["Coder", "tune"]

PENALTIES = (0.01, 0.02, 0.04, 0.08, 0.16)
"""λ over the mean ‖v‖² of the token vectors: where these are twice as long, Eq. 7 has the same
answer at four times the λ."""

THRESHOLDS = (0.002, 0.004, 0.005, 0.006, 0.007, 0.0075, 0.008, 0.009, 0.01, 0.012, 0.015, 0.02)


class Coder(Protocol):
    """What is tuned: something that solves Eq. 7 at any λ."""

    keep_stop_words: bool

    def codes(
        self, encoder: WhiteBoxEncoder, vectors: Vectors, penalty: float | None = None
    ) -> Floats:
        """Return z of Eq. 7 at λ, a row a vector."""
        ...

    def answerable_words(self, encoder: WhiteBoxEncoder) -> list[str | None]:
        """Return the word that each column of the codes may answer, or None."""
        ...


def tune(
    attack: Coder,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors | None = None,
    *,
    penalties: Sequence[float] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    on_progress: OnProgress = no_progress,
) -> dict[str, float]:
    """Return the `penalty` and `threshold` of the highest token-set F1 on auxiliary texts.

    Parameters
    ----------
    attack : Coder
        Fitted, on other texts than these; it is not changed.
    texts : sequence of str
        Never the texts that will be scored. A few hundred are enough.
    penalties : sequence of float, optional
        λ to try; by default PENALTIES times the mean squared length of the token vectors.

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
    tried = _penalties(open_encoder) if penalties is None else penalties
    best = {"penalty": 0.0, "threshold": 0.0, "token_set_f1": -1.0}
    for done, penalty in enumerate(tried, 1):
        codes = attack.codes(open_encoder, vectors, penalty)
        for threshold in thresholds:
            answers = [a.word_set for a in words_of_codes(codes, names, threshold)]
            f1 = score_words(answers, targets).token_set_f1
            if f1 > best["token_set_f1"]:
                best = {"penalty": penalty, "threshold": threshold, "token_set_f1": f1}
        on_progress(done / len(tried), f"λ = {penalty:g} tried, best F1 {best['token_set_f1']:.1f}")
    return best


def _penalties(encoder: WhiteBoxEncoder) -> list[float]:
    tokens = encoder.token_vectors[regular_token_ids(encoder)].detach().float()
    length = float(tokens.square().sum(1).mean())
    return [share * length for share in PENALTIES]
