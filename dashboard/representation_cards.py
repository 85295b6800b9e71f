"""A sentence read back from the vectors of many encoders, side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.attacks import ATTACKS
from core.encoders import ENCODERS
from core.export import neutral_cell
from core.prepared import QUICK, Prepared
from core.protocols import Encoder, InversionAttack, Vectors
from core.reading import Reading, read_vector
from core.representation_plots import encoder_title
from core.specs import AttackSpec, EncoderSpec
from dashboard import cache, markup, panels
from dashboard.representation_jobs import SHIPPED_ATTACK

__all__ = ["Answer", "answers_of", "cards", "overview"]

_ENCODING = threading.Lock()
"""Held while encoding: Doc2Vec keeps its draws in the model, which sessions share."""


@dataclass(frozen=True)
class Answer:
    """What was read from one encoder's vector of the sentence."""

    encoder: str
    reading: Reading
    guess: frozenset[str]
    n_texts: int | None
    """Sentences that encoder and attack were fitted on; None for weights that ship."""
    is_blank: bool
    """The vector is zero: the encoder knows none of the words."""


def answers_of(text: str, ready: dict[str, Prepared]) -> list[Answer]:
    """Return what is read of a text from each encoder; nothing of it is kept."""
    found = []
    for name, prepared in ready.items():
        with _ENCODING:
            vector = prepared.encoder.encode([text])
        is_blank = not abs(vector).sum() > 0
        reading = _read(QUICK.name, prepared.attack, prepared.encoder, text, vector, prepared.guess)
        found.append(Answer(name, reading, prepared.guess, prepared.n_texts, is_blank))
        on = EncoderSpec(name=name)
        if cache.shipped_settings(SHIPPED_ATTACK, on):
            attack = cache.attack(AttackSpec.of(SHIPPED_ATTACK), on)
            guess = cache.guess(SHIPPED_ATTACK, on, False)
            reading = _read(SHIPPED_ATTACK, attack, prepared.encoder, text, vector, guess)
            found.append(Answer(name, reading, guess, None, is_blank))
    return found


def _read(
    name: str,
    attack: InversionAttack,
    encoder: Encoder,
    text: str,
    vector: Vectors,
    guess: frozenset[str],
) -> Reading:
    return read_vector(name, attack, encoder, text, vector, guess)


def overview(found: Sequence[Answer]) -> None:
    """Draw the scores of all encoders, and of guessing, as one table."""
    rows = [_row(answer) for answer in found] + [_guess_row(found[0])]
    columns = st.column_config
    scores = {name: columns.NumberColumn(name, format="%.0f") for name in ("F1", "precision",
                                                                         "recall")}  # fmt: skip
    st.dataframe(
        rows,
        key="try-scores",
        hide_index=True,
        column_config={"encoder": columns.TextColumn("encoder", pinned=True), **scores},
    )


def _row(answer: Answer) -> dict[str, object]:
    reading, scores = answer.reading, answer.reading.scores
    return {
        "encoder": encoder_title(answer.encoder),
        "attack": _how(answer),
        "words read": f"{reading.n_recovered} of {len(reading.targets)}",
        "F1": scores.f1,
        "precision": scores.precision,
        "recall": scores.recall,
        # The table has a download button of Streamlit's own, which writes cells as they are.
        "recovered": neutral_cell(", ".join(w.word for w in reading.hits) or "none"),
    }


def _guess_row(answer: Answer) -> dict[str, object]:
    prior, targets = answer.reading.prior, answer.reading.targets
    words = answer.guess & targets
    return {
        "encoder": "none",
        "attack": "Guessing without any vector",
        "words read": f"{len(words)} of {len(targets)}",
        "F1": prior.f1,
        "precision": prior.precision,
        "recall": prior.recall,
        "recovered": neutral_cell(", ".join(sorted(words)) or "none"),
    }


def _how(answer: Answer) -> str:
    title = ATTACKS[answer.reading.attack].title
    return title if answer.n_texts is not None else f"{title}, as it ships"


def cards(found: Sequence[Answer]) -> None:
    """Draw what was read from each encoder: the marked sentence, wrong guesses and scores."""
    st.html(markup.legend([answer.reading for answer in found]))
    for place, answer in zip(panels.side_by_side(len(found)), found, strict=True):
        name = f"{answer.encoder}-{answer.reading.attack}"
        with place.container(border=True, key=f"card-{name}"):
            _card(answer)
    guess = ", ".join(sorted(found[0].guess))
    st.caption(
        f"Whoever sees no vector always answers the same most frequent words, here: {guess}."
    )


def _card(answer: Answer) -> None:
    about = ENCODERS[answer.encoder].summary if answer.encoder in ENCODERS else None
    st.subheader(encoder_title(answer.encoder), anchor=False, help=about)
    st.caption(f"{_how(answer)}; {_knows(answer)}")
    if answer.is_blank:
        st.caption("The vector is zero: this encoder knows none of these words.")
    st.html(markup.marked_sentence(answer.reading))
    st.html(markup.wrong_words(answer.reading))
    panels.score_row(answer.reading)


def _knows(answer: Answer) -> str:
    if answer.n_texts is not None:
        return f"knows the words of {answer.n_texts:,} sentences"
    n_texts = answer.reading.training.get("n_texts")
    return f"trained on {n_texts:,} sentences" if n_texts else "trained weights"
