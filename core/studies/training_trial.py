"""The trap in small, sprung now: an adversary in training, and a fresh attacker who comes after it.

As the study of adversarial training does it on thousands of texts of books, on bundled sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.corpora import bundled_sentences
from core.corpora.near_duplicates import near_duplicates
from core.defences.trained.adversarial import AdversarialAdapter
from core.encoders.at_hand import encoder_at_hand
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.results import Score
from core.specs import EncoderSpec
from core.studies.adversarial_tables import Setting
from core.studies.adversarial_texts import Sides
from core.studies.adversarial_words import word_scores
from core.studies.trained_defences import Remembered, Trained
from core.studies.training_points import Trial, TrialRequest

__all__ = ["try_adversary"]

_ATTACKER = "tuned"


def try_adversary(request: TrialRequest, on_progress: OnProgress = no_progress) -> Trial:
    """Train adapters against an adversary on words, and attack them: about a minute's work.

    Raises
    ------
    InvalidInputError
        λ is negative, no number, or so great that the training ran away.
    """
    if not (math.isfinite(request.weight) and request.weight >= 0):
        raise InvalidInputError(f"weight must be 0 or greater, got {request.weight!r}.")
    on_progress(0.0, "Loading the encoder")
    bare = encoder_at_hand(EncoderSpec(name="minilm"))
    base = Trained(Remembered(bare), bare)
    sides = _parted(bundled_sentences(), request)
    texts = [*sides.defence, *sides.known, *sides.targets]
    base.encoder.encode(texts, _between(on_progress, 0.05, 0.6))
    read, family = _read(base, base, sides, request.seed)
    settings = [_setting(0.0, (), read)]
    weights = sorted({0.0, request.weight})
    for i, weight in enumerate(weights):
        low, high = (0.6 + 0.4 * place / len(weights) for place in (i, i + 0.7))
        adapter: Any = AdversarialAdapter(
            against="words", weight=weight, epochs=request.epochs, seed=request.seed
        )
        adapter.fit(base.encoder, sides.defence, on_progress=_between(on_progress, low, high))
        on_progress(high, "A fresh attacker learns to read what comes out")
        own = Trained(Remembered(adapter.protect(base.encoder)), adapter.protect(bare))
        read, _ = _read(base, own, sides, request.seed)
        settings.append(_setting(weight, tuple(adapter.during_), read))
    return Trial(tuple(settings), family)


def _parted(texts: Sequence[str], request: TrialRequest) -> Sides:
    """Return drawn sentences, parted; targets that nearly repeat one of the others are dropped."""
    own = list(dict.fromkeys(texts))
    n_learnt = request.n_defence + request.n_known
    order = np.random.default_rng([request.seed, 41]).permutation(len(own))
    drawn = tuple(own[i] for i in order[: n_learnt + request.n_targets])
    repeated = near_duplicates(drawn[n_learnt:], drawn[:n_learnt])
    targets = tuple(text for i, text in enumerate(drawn[n_learnt:]) if i not in repeated)
    defence, known = drawn[: request.n_defence], drawn[request.n_defence : n_learnt]
    blank = [("",) * len(part) for part in (defence, known, targets)]
    return Sides(
        defence, blank[0], (), (), known, blank[1], targets, blank[2],
        tuple(map(str, range(len(targets)))), len(repeated),
    )  # fmt: skip


def _read(base: Trained, own: Trained, sides: Sides, seed: int) -> tuple[Score, str]:
    """Return the F1 of a fresh attacker on the targets, and its family."""
    cell = {"attackers": [_ATTACKER], "start": "ships", "seed": seed, "settings": {}}
    score, told = word_scores(cell, base, own, sides)[_ATTACKER]
    return score, str(told["family"])


def _setting(weight: float, during: tuple[Score, ...], read: Score) -> Setting:
    return Setting(
        encoder="minilm",
        hides="words",
        kind="adversarial" if during else "none",
        weight=weight if during else 0.0,
        during=during,
        after={_ATTACKER: read},
        changes={},
        minutes=math.nan,
    )


def _between(on_progress: OnProgress, low: float, high: float) -> OnProgress:
    """Return what reports a part of the work as a part of the whole."""

    def report(fraction: float, message: str) -> None:
        on_progress(low + (high - low) * fraction, message)

    return report
