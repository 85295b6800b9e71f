"""A sentence inverted from the vectors of several encoders, which a job fits, side by side."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.reading import Reading, TokenScores, read_vector
from leakscope.core.encoders import ENCODERS
from leakscope.core.figures.representations import encoder_title
from leakscope.core.formatting import describe_leak
from leakscope.core.protocols import Encoder
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.studies.inversion.prepared import (
    QUICK,
    Preparation,
    Prepared,
    prepare,
    prepare_all,
)
from leakscope.core.studies.inversion.representation_summary import AttackScore
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import views as panels
from leakscope.dashboard.representations.state import TryRequest, restore_try
from leakscope.dashboard.ui import markup, work

SHIPPED_ATTACK = "probe_mlc"
"""The attack that is added for encoders with shipped weights."""

_MOST_SHARED = 24
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _shared_encoders() -> OrderedDict[Preparation, Prepared]:
    """Return the shared cache of fitted encoders, which callers fill; it holds no user texts."""
    return OrderedDict()


def adopt_try_job() -> None:
    """Restore the controls from an encoder-fitting job that the URL names, after a reload."""
    for request in work.adopt_jobs(TryRequest):
        restore_try(request)


def prepared_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the fitted encoders by name, or draw their job's controls and return None."""
    work.drop_others(TryRequest, lambda other: other == request)
    ready = _cached_encoders(request)
    if ready is not None:
        work.drop(request)  # another session was faster
        return ready
    n = len(request.encoders)
    offer = work.Offer(
        label=f"Invert from {n} encoder{'s' if n > 1 else ''}",
        key="try-encoders",
        is_primary=True,
        note="Each encoder is fitted once on these sentences and stored on this computer. Your own "
        "sentence is not stored.",
        on_click=_start,
        failed="The encoders could not be fitted",
        stopped_note="Finished encoders are kept.",
    )
    return _load_encoders(request) if work.draw_job(request, offer) else None


def _start(request: TryRequest) -> None:
    """Start the background job that fits the encoders of a request."""
    plans = _preparations(request)
    work.start(request, prepare_all, tuple(plans.values()), tuple(map(encoder_title, plans)))


def _preparations(request: TryRequest) -> dict[str, Preparation]:
    """Return how each of a request's encoders is to be fitted (its Preparation), by name."""
    shared = {"corpus": request.corpus, "n_texts": request.n_texts}
    return {name: Preparation(encoder=name, **shared) for name in request.encoders}  # type: ignore[arg-type]


def _cached_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the fitted encoders by name if all are in memory, else None."""
    with _LOCK:
        found = {
            name: _shared_encoders().get(plan) for name, plan in _preparations(request).items()
        }
    ready = {name: prepared for name, prepared in found.items() if prepared is not None}
    return ready if len(ready) == len(found) else None


def _load_encoders(request: TryRequest) -> dict[str, Prepared]:
    """Load the fitted encoders from disk and cache them for all sessions; return them by name."""
    with st.spinner("Loading the encoders"):
        ready = {
            name: prepare(plan, load=_load_bundled) for name, plan in _preparations(request).items()
        }
    with _LOCK:
        for name, plan in _preparations(request).items():
            _shared_encoders()[plan] = ready[name]
            _shared_encoders().move_to_end(plan)
        while len(_shared_encoders()) > _MOST_SHARED:
            _shared_encoders().popitem(last=False)
    return ready


def _load_bundled(name: str) -> Encoder:
    """Load a named bundled encoder through the server's cache."""
    return cache.encoder(EncoderSpec(name=name))


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
    """Encode a text with each prepared encoder and attack the vectors; return the readings."""
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
    """Return what was recovered from one encoder as a table row (dict), with the best known F1."""
    reading = answer.reading
    return {
        "encoder": encoder_title(answer.encoder),
        "attack": _attack_title(answer),
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words recovered": f"{reading.n_recovered} of {len(reading.targets)}",
        **_score_cells(reading, reading.scores),
        "strongest attack measured, F1": best.f1.format(0) if best else None,
        # Streamlit's own download button of the table writes cells unescaped.
        "recovered": neutral_cell(
            ", ".join(w.word for w in reading.hits) or _no_words_label(reading)
        ),
    }


def _guess_row(answer: EncoderReading) -> dict[str, object]:
    """Return the prior-only baseline (no vector) as a table row (dict)."""
    reading = answer.reading
    words = answer.guess & reading.targets
    return {
        "encoder": "none",
        "attack": "Guessing without any vector",
        "words scored": f"{len(reading.targets)} of {reading.n_words}",
        "words recovered": f"{len(words)} of {len(reading.targets)}",
        **_score_cells(reading, reading.prior),
        "strongest attack measured, F1": None,
        "recovered": neutral_cell(", ".join(sorted(words)) or _no_words_label(reading)),
    }


def _score_cells(reading: Reading, scores: TokenScores) -> dict[str, object]:
    """Return F1, precision and recall by name; their values are None if no word can be scored."""
    values = {"F1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    return {name: value if reading.targets else None for name, value in values.items()}


def _no_words_label(reading: Reading) -> str:
    """Return the label of a reading without recovered words: "none" or "cannot be scored"."""
    return "none" if reading.targets else "cannot be scored"


def _attack_title(answer: EncoderReading) -> str:
    """Return the title of a reading's attack, marked if its weights are shipped."""
    title = INVERSION_ATTACKS[answer.reading.attack].title
    return title if answer.n_texts is not None else f"{title}, shipped weights"


def cards(found: Sequence[EncoderReading], best: Mapping[str, AttackScore]) -> None:
    """Draw a card for each encoder's reading: marked sentence, wrong guesses and scores."""
    st.html(markup.legend([answer.reading for answer in found]))
    for place, answer in zip(panels.card_columns(len(found)), found, strict=True):
        name = f"{answer.encoder}-{answer.reading.attack}"
        with place.container(border=True, key=f"card-{name}"):
            _draw_card(answer, best.get(answer.encoder))
    guess = ", ".join(sorted(found[0].guess))
    st.caption(f"Guessing, without a vector, always answers the most frequent words: {guess}.")


def _draw_card(answer: EncoderReading, best: AttackScore | None) -> None:
    """Draw the card of what one attack recovered from one encoder's vector."""
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
    """Describe how many sentences the attack was trained on, just now or for shipped weights."""
    if answer.n_texts is not None:
        return f"tries the words of {answer.n_texts:,} sentences"
    n_texts = answer.reading.training.get("n_texts")
    return f"trained on {n_texts:,} sentences" if n_texts else "trained weights"
