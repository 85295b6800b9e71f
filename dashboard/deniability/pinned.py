"""What of the page of deniability goes into a story."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.defences.deniability.sentence import DeniableSentence
from core.defences.deniability.vocabulary import VocabularyDeniability
from core.figures import deniability as figures
from core.specs import EncoderSpec
from dashboard import cache, encoder_choice
from dashboard.deniability import state
from dashboard.inversion.pinned import is_typed
from dashboard.leakage import deniability_command
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(
    sentence: DeniableSentence,
    eta: float,
    steps: Sequence[float],
    on: EncoderSpec,
    statistics: VocabularyDeniability | None,
    *,
    text: str,
    with_typed: bool,
) -> Seen:
    """Return how often tokens come back; the sentence and its tokens where they may be told."""
    with_text = with_typed or not is_typed(text)
    is_hidden = encoder_choice.is_typed(on) and not with_typed
    etas = np.asarray(steps)
    shares = sentence.curves(etas) / sentence.n_draws * 100
    tokens = list(sentence.tokens) if with_text else ["a token"] * len(sentence.tokens)
    mean = (
        None
        if statistics is None
        else (statistics.etas, statistics.mean_n_w.mean(0) / statistics.n_draws * 100)
    )
    return Seen(
        figure=figures.token_curves(etas, shares, tokens, mean, eta),
        alt=f"Share of tokens that come back over η, from {etas[0]:g} to {etas[-1]:g}, with "
        f"η = {eta:g} marked",
        sentence=_released(sentence, eta, on) if with_text else (),
        facts=(
            ("Data", "one sentence, an example"),
            ("n", f"{sentence.n_draws:,} draws of noise for {len(sentence.ids)} tokens"),
            ("Interval", "95 %"),
            ("Attacker", "a reader who takes the released tokens at their word"),
            ("Access", "the released text"),
            ("Cost", "none: nothing is learnt, what was released is read as it stands"),
        ),
        commands=(
            deniability_command(
                text if with_text else "YOUR SENTENCE",
                eta,
                "YOUR ENCODER" if is_hidden else on.name,
            ),
            *(() if encoder_choice.is_typed(on) else ("deniability",)),
        ),
        withheld=("encoder",) * is_hidden,
    )


def _released(
    sentence: DeniableSentence, eta: float, on: EncoderSpec
) -> tuple[tuple[str, str], ...]:
    """Return one draw, token by token, pieces of a word joined."""
    changed = sentence.privatised(cache.deniability_engine(on), eta, state.noise_seed())
    pieces: list[tuple[str, str]] = []
    for old, new in zip(sentence.tokens, changed, strict=True):
        if pieces and not new.startswith("##"):
            pieces.append((" ", "between words"))
        mark = "came back unchanged" if old == new else "changed"
        pieces.append((new.removeprefix("##"), mark))
    return tuple(pieces)
