"""A small live adversarial training, attacked afterwards by a fresh attacker.

It repeats on bundled sentences what the adversarial training study does on thousands of book texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from leakscope.core.corpora import bundled_sentences
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress, part_progress
from leakscope.core.results import Score
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.tradeoff.trained_defences import MemoizedEncoder, ProtectedEncoder
from leakscope.core.studies.training.adversarial_tables import Setting
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.studies.training.adversarial_words import word_scores
from leakscope.core.studies.training.summary import Trial, TrialRequest

_ATTACKER = "tuned"


def try_adversary(request: TrialRequest, on_progress: OnProgress = no_progress) -> Trial:
    """Train adapters against an adversary on words and attack them, in about a minute.

    Raises
    ------
    InvalidInputError
        λ is negative or not a number, or the training diverged.
    """
    if not (math.isfinite(request.weight) and request.weight >= 0):
        raise InvalidInputError(f"weight must be 0 or greater, got {request.weight!r}.")
    on_progress(0.0, "Loading the encoder")
    bare = shared_encoder(EncoderSpec(name="minilm"))
    base = ProtectedEncoder(MemoizedEncoder(bare), bare)
    sides = _split_sentences(bundled_sentences(), request)
    texts = [*sides.defence, *sides.known, *sides.targets]
    base.encoder.encode(texts, part_progress(on_progress, 0.05, 0.6))
    read, family = _attack(base, base, sides, request.seed)
    settings = [_make_setting(0.0, (), read)]
    weights = sorted({0.0, request.weight})
    for i, weight in enumerate(weights):
        low, high = (0.6 + 0.4 * place / len(weights) for place in (i, i + 0.7))
        adapter: Any = AdversarialAdapter(
            against="words", weight=weight, epochs=request.epochs, seed=request.seed
        )
        adapter.fit(base.encoder, sides.defence, on_progress=part_progress(on_progress, low, high))
        on_progress(high, "Training a fresh attacker on the defended vectors")
        own = ProtectedEncoder(
            MemoizedEncoder(adapter.protect(base.encoder)), adapter.protect(bare)
        )
        read, _ = _attack(base, own, sides, request.seed)
        settings.append(_make_setting(weight, tuple(adapter.during_), read))
    return Trial(tuple(settings), family)


def _split_sentences(texts: Sequence[str], request: TrialRequest) -> Sides:
    """Draw sentences for defence and attacker, and targets that nearly repeat none of them."""
    own = list(dict.fromkeys(texts))
    n_learnt = request.n_defence + request.n_known
    order = np.random.default_rng([request.seed, 41]).permutation(len(own))
    drawn = tuple(own[i] for i in order[: n_learnt + request.n_targets])
    repeated = near_duplicates(drawn[n_learnt:], drawn[:n_learnt])
    targets = tuple(text for i, text in enumerate(drawn[n_learnt:]) if i not in repeated)
    defence, known = drawn[: request.n_defence], drawn[request.n_defence : n_learnt]
    blank = [("",) * len(part) for part in (defence, known, targets)]
    return Sides(
        defence,
        blank[0],
        (),
        (),
        known,
        blank[1],
        targets,
        blank[2],
        tuple(map(str, range(len(targets)))),
        len(repeated),
    )


def _attack(
    base: ProtectedEncoder, own: ProtectedEncoder, sides: Sides, seed: int
) -> tuple[Score, str]:
    """Train a fresh attacker; return its F1 on the targets, and its family as text."""
    cell = {"attackers": [_ATTACKER], "start": "ships", "seed": seed, "settings": {}}
    score, told = word_scores(cell, base, own, sides)[_ATTACKER]
    return score, str(told["family"])


def _make_setting(weight: float, during: tuple[Score, ...], read: Score) -> Setting:
    """Build the `Setting` of an adapter, or of no defence, with one attacker's score."""
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
