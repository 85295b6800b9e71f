"""A sentence read back from the vectors of many encoders, side by side."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import Reading, TokenScores, read_vector
from core.encoders import ENCODERS
from core.figures.representations import encoder_title
from core.protocols import Encoder, InversionAttack, Vectors
from core.said import leak_said
from core.specs import AttackSpec, EncoderSpec
from core.spreadsheets import neutral_cell
from core.studies.prepared import QUICK, Prepared
from core.studies.representation_summary import AttackScore
from dashboard import cache, markup
from dashboard.inversion import views as panels
from dashboard.representations.finding import attack_name
from dashboard.representations.job import SHIPPED_ATTACK

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


def overview(found: Sequence[Answer], best: Mapping[str, AttackScore]) -> None:
    """Draw the scores of all encoders, and of guessing, as one table, and what it is not.

    Parameters
    ----------
    best : mapping of str to AttackScore
        The most that was read from each encoder in the studies.
    """
    st.info(
        f"**Nothing read here does not mean that nothing leaks.** The "
        f"{INVERSION_ATTACKS[QUICK.name].title.lower()} below is quick and weaker than the trained "
        "attacks of the figure above. What the strongest measured attack reads from an encoder "
        "stands beside it.",
        icon=":material/bolt:",
    )
    rows = [_row(answer, best.get(answer.encoder)) for answer in found] + [_guess_row(found[0])]
    columns = st.column_config
    scores = {name: columns.NumberColumn(name, format="%.0f") for name in ("F1", "precision",
                                                                         "recall")}  # fmt: skip
    st.dataframe(
        rows,
        key="try-scores",
        hide_index=True,
        placeholder="–",
        column_config={"encoder": columns.TextColumn("encoder", pinned=True), **scores},
    )


def _row(answer: Answer, best: AttackScore | None) -> dict[str, object]:
    reading = answer.reading
    return {
        "encoder": encoder_title(answer.encoder),
        "attack": _how(answer),
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words read": f"{reading.n_recovered} of {len(reading.targets)}",
        **_scores(reading, reading.scores),
        "most read, measured above": best.f1.said(0) if best else None,
        # The table has a download button of Streamlit's own, which writes cells as they are.
        "recovered": neutral_cell(", ".join(w.word for w in reading.hits) or _nothing(reading)),
    }


def _guess_row(answer: Answer) -> dict[str, object]:
    reading = answer.reading
    words = answer.guess & reading.targets
    return {
        "encoder": "none",
        "attack": "Guessing without any vector",
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words read": f"{len(words)} of {len(reading.targets)}",
        **_scores(reading, reading.prior),
        "most read, measured above": None,
        "recovered": neutral_cell(", ".join(sorted(words)) or _nothing(reading)),
    }


def _scores(reading: Reading, scores: TokenScores) -> dict[str, object]:
    """Return the scores; none where no word can be scored, which is no zero."""
    values = {"F1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    return {name: value if reading.targets else None for name, value in values.items()}


def _nothing(reading: Reading) -> str:
    return "none" if reading.targets else "cannot be scored"


def _how(answer: Answer) -> str:
    title = INVERSION_ATTACKS[answer.reading.attack].title
    return title if answer.n_texts is not None else f"{title}, as it ships"


def cards(found: Sequence[Answer], best: Mapping[str, AttackScore]) -> None:
    """Draw what was read from each encoder: the marked sentence, wrong guesses and scores."""
    st.html(markup.legend([answer.reading for answer in found]))
    for place, answer in zip(panels.side_by_side(len(found)), found, strict=True):
        name = f"{answer.encoder}-{answer.reading.attack}"
        with place.container(border=True, key=f"card-{name}"):
            _card(answer, best.get(answer.encoder))
    guess = ", ".join(sorted(found[0].guess))
    st.caption(
        f"Whoever sees no vector always answers the same most frequent words, here: {guess}."
    )


def _card(answer: Answer, best: AttackScore | None) -> None:
    about = ENCODERS[answer.encoder].summary if answer.encoder in ENCODERS else None
    st.subheader(encoder_title(answer.encoder), anchor=False, help=about)
    st.caption(f"{_how(answer)}; {_knows(answer)}")
    if answer.is_blank:
        st.caption("The vector is zero: this encoder knows none of these words.")
    st.html(markup.marked_sentence(answer.reading))
    st.html(markup.wrong_words(answer.reading))
    if answer.reading.targets and answer.reading.unknown:
        st.markdown(
            f"Scored on **{len(answer.reading.targets)} of {answer.reading.n_words} words**: "
            "this attack's list does not hold the others, so it cannot read them."
        )
    panels.score_row(answer.reading)
    if best:
        st.markdown(
            f"Measured above: {attack_name(best).lower()} reads "
            f"{leak_said(best.f1, best.recall, is_bold=True)} from this encoder, n = {best.f1.n:,}."
        )


def _knows(answer: Answer) -> str:
    if answer.n_texts is not None:
        return f"knows the words of {answer.n_texts:,} sentences"
    n_texts = answer.reading.training.get("n_texts")
    return f"trained on {n_texts:,} sentences" if n_texts else "trained weights"
