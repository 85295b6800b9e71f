"""A sentence inverted from the vectors of several encoders, side by side."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.reading import Reading, TokenScores, read_vector
from leakscope.core.encoders import ENCODERS
from leakscope.core.figures.representations import encoder_title
from leakscope.core.formatting import describe_leak
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.studies.inversion.prepared import QUICK, Prepared
from leakscope.core.studies.inversion.representation_summary import AttackScore
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import views as panels
from leakscope.dashboard.representations.job import SHIPPED_ATTACK
from leakscope.dashboard.ui import markup

_ENCODING = threading.Lock()
"""Held while encoding: sessions share the Doc2Vec model, which has random state."""


@dataclass(frozen=True)
class EncoderReading:
    """What an attack recovers of the sentence from one encoder's vector."""

    encoder: str
    reading: Reading
    guess: frozenset[str]
    n_texts: int | None
    """The number of sentences that encoder and attack were fitted on; None for shipped weights."""
    is_blank: bool
    """Whether the vector is zero because the encoder knows none of the words."""


def read_from_encoders(text: str, ready: dict[str, Prepared]) -> list[EncoderReading]:
    """Invert a text from each prepared encoder; nothing is cached."""
    found = []
    for name, prepared in ready.items():
        with _ENCODING:
            vector = prepared.encoder.encode([text])
        is_blank = not abs(vector).sum() > 0
        reading = read_vector(
            QUICK.name, prepared.attack, prepared.encoder, text, vector, prepared.guess
        )
        found.append(EncoderReading(name, reading, prepared.guess, prepared.n_texts, is_blank))
        on = EncoderSpec(name=name)
        if cache.shipped_settings(SHIPPED_ATTACK, on):
            attack = cache.attack(AttackSpec.of(SHIPPED_ATTACK), on)
            guess = cache.prior_answer(SHIPPED_ATTACK, on, False)
            reading = read_vector(SHIPPED_ATTACK, attack, prepared.encoder, text, vector, guess)
            found.append(EncoderReading(name, reading, guess, None, is_blank))
    return found


def scores_table(found: Sequence[EncoderReading], best: Mapping[str, AttackScore]) -> None:
    """Draw the table of all encoders' scores and of guessing, with a warning.

    Parameters
    ----------
    best : mapping of str to AttackScore
        The strongest attack's score on each encoder in the studies.
    """
    st.info(
        f"**Recovering nothing here does not mean that nothing leaks.** The "
        f"{INVERSION_ATTACKS[QUICK.name].title.lower()} below is quick, and weaker than the "
        "trained attacks in the figure above. The table also shows the strongest attack measured "
        "on each encoder.",
        icon=":material/bolt:",
    )
    rows = [_score_row(answer, best.get(answer.encoder)) for answer in found] + [
        _guess_row(found[0])
    ]
    columns = st.column_config
    scores = {
        name: columns.NumberColumn(name, format="%.0f") for name in ("F1", "precision", "recall")
    }
    st.dataframe(
        rows,
        key="try-scores",
        hide_index=True,
        placeholder="–",
        column_config={"encoder": columns.TextColumn("encoder", pinned=True), **scores},
    )


def _score_row(answer: EncoderReading, best: AttackScore | None) -> dict[str, object]:
    """Return what was recovered from an encoder as a table row."""
    reading = answer.reading
    return {
        "encoder": encoder_title(answer.encoder),
        "attack": _attack_title(answer),
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words recovered": f"{reading.n_recovered} of {len(reading.targets)}",
        **_scores(reading, reading.scores),
        "strongest attack measured, F1": best.f1.format(0) if best else None,
        # Streamlit's own download button of the table writes cells unescaped.
        "recovered": neutral_cell(
            ", ".join(w.word for w in reading.hits) or _no_words_label(reading)
        ),
    }


def _guess_row(answer: EncoderReading) -> dict[str, object]:
    """Return the prior-only baseline as a table row."""
    reading = answer.reading
    words = answer.guess & reading.targets
    return {
        "encoder": "none",
        "attack": "Guessing without any vector",
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words recovered": f"{len(words)} of {len(reading.targets)}",
        **_scores(reading, reading.prior),
        "strongest attack measured, F1": None,
        "recovered": neutral_cell(", ".join(sorted(words)) or _no_words_label(reading)),
    }


def _scores(reading: Reading, scores: TokenScores) -> dict[str, object]:
    """Return F1, precision and recall; None if no word can be scored."""
    values = {"F1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    return {name: value if reading.targets else None for name, value in values.items()}


def _no_words_label(reading: Reading) -> str:
    """Return the text for no recovered words: "none" or "cannot be scored"."""
    return "none" if reading.targets else "cannot be scored"


def _attack_title(answer: EncoderReading) -> str:
    """Return the attack's title, marked if its weights are shipped."""
    title = INVERSION_ATTACKS[answer.reading.attack].title
    return title if answer.n_texts is not None else f"{title}, shipped weights"


def cards(found: Sequence[EncoderReading], best: Mapping[str, AttackScore]) -> None:
    """Draw a card for each encoder: marked sentence, wrong guesses and scores."""
    st.html(markup.legend([answer.reading for answer in found]))
    for place, answer in zip(panels.card_columns(len(found)), found, strict=True):
        name = f"{answer.encoder}-{answer.reading.attack}"
        with place.container(border=True, key=f"card-{name}"):
            _card(answer, best.get(answer.encoder))
    guess = ", ".join(sorted(found[0].guess))
    st.caption(f"Guessing, without a vector, always answers the most frequent words: {guess}.")


def _card(answer: EncoderReading, best: AttackScore | None) -> None:
    """Draw an encoder's card."""
    about = ENCODERS[answer.encoder].summary if answer.encoder in ENCODERS else None
    st.subheader(encoder_title(answer.encoder), anchor=False, help=about)
    st.caption(f"{_attack_title(answer)}; {_describe_training(answer)}")
    if answer.is_blank:
        st.caption("The vector is zero: this encoder knows none of these words.")
    st.html(markup.marked_sentence(answer.reading))
    st.html(markup.wrong_words(answer.reading))
    if answer.reading.targets and answer.reading.unknown:
        st.markdown(
            f"Scored on **{len(answer.reading.targets)} of {answer.reading.n_words} words**: "
            "this attack cannot name the others, so they were not tested."
        )
    panels.score_row(answer.reading)
    if best:
        st.markdown(
            f"Measured above: the {INVERSION_ATTACKS[best.attack].title.lower()} recovers "
            f"{describe_leak(best.f1, best.recall, is_bold=True)} from this encoder, n = "
            f"{best.f1.n:,}."
        )


def _describe_training(answer: EncoderReading) -> str:
    """Describe how many sentences the attack has or was trained on."""
    if answer.n_texts is not None:
        return f"tries the words of {answer.n_texts:,} sentences"
    n_texts = answer.reading.training.get("n_texts")
    return f"trained on {n_texts:,} sentences" if n_texts else "trained weights"
