"""The controls of the page of memorisation: what is planted, where, how often, in which model."""

from __future__ import annotations

import hashlib

import streamlit as st

from core.attacks.membership.memorisation.canaries import MOST_CHARACTERS, Canary, make_canary
from core.attacks.membership.memorisation.memorise import MemoriseRequest
from core.attacks.membership.memorisation.settings import MODEL_NAMES
from core.attacks.membership.memorisation.texts import FEWEST
from core.corpora.memory_file import MemoryFile
from core.corpora.tables import TABLE_TYPES
from core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from core.figures.memorisation import MODELS
from core.text import check_text
from dashboard.address import Address
from dashboard.calm import plain
from dashboard.memorisation import state
from dashboard.memorisation.state import (
    CORPORA,
    COUNTS,
    DRAWN,
    EPOCHS,
    INSERTIONS,
    UPLOAD,
    key_of,
    plant_text,
)
from dashboard.own_file import own_facts
from dashboard.state import is_presenting

__all__ = ["asked", "foreseen", "is_typed", "show_link"]

_EXAMPLES = {
    "A card number": "My card number is {digits:4}",
    "A password": "The password of the safe is {letters:5}",
    "Two words": "We meet where it says {words:2}",
    "A sentence": "Ada Quell lives at 4817 Mill Lane",
}


def asked() -> tuple[MemoriseRequest | None, list[str] | None]:
    """Draw the controls; return what they ask for, None while a file is wanted, and its sentences.

    Presented, nothing is drawn, and what was asked for stands.

    Raises
    ------
    InvalidInputError
        The file cannot be used.
    """
    if is_presenting():
        corpus, found = state.presented_corpus(), None
    else:
        _pickers()
        corpus, found = _texts()
        state.stand_at(corpus)
    return (state.chosen_request(corpus) if corpus else None), found


def _pickers() -> None:
    """Draw what is planted, how often, and in which model."""
    st.text_input(
        "Your canary",
        key=key_of("canary"),
        persist_state="session",
        autocomplete="off",
        help="A format, whose random part is drawn: {digits:4}, {letters:5} or {words:2}. Or a "
        "text of your own: its digits, or else its rarest words, count as its secret. It stays in "
        "the memory of this computer: it is not stored, logged or sent anywhere.",
    )
    with st.container(horizontal=True, gap="xsmall"):
        for title, example in _EXAMPLES.items():
            st.button(
                title,
                key=f"memorise-{title}",
                help="An invented example",
                on_click=plant_text,
                args=(example,),
            )
    left, right = st.columns(2)
    left.select_slider(
        "Times planted",
        INSERTIONS,
        key=key_of("insertions"),
        persist_state="session",
        help="How often the canary stands among the texts; 0 is a control: it should stay where "
        "texts stay that were planted nowhere",
    )
    right.slider(
        "Epochs",
        EPOCHS[0],
        EPOCHS[-1],
        key=key_of("epochs"),
        persist_state="session",
        help="How often the model reads all of its texts. Each takes about as long as the first.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Model",
            MODEL_NAMES,
            key=key_of("model"),
            required=True,
            persist_state="session",
            format_func=MODELS.__getitem__,
            help="A small language model of two layers, trained here from nothing",
        )
        with st.popover("More settings", icon=":material/tune:"):
            _more()


def show_link(address: Address) -> None:
    """Draw the address of the view, which leaves out a file of one's own."""
    if state.chosen("corpus") == UPLOAD:
        st.caption("The link leaves your file out: it stays in your session.")
    address.show_link()


def _more() -> None:
    st.segmented_control(
        "It reads",
        ("bytes", "words"),
        key=key_of("tokens"),
        required=True,
        persist_state="session",
        help="Letter by letter, which spells any script, or word by word with digits spelt",
    )
    st.segmented_control(
        "Texts drawn by each sampler",
        DRAWN,
        key=key_of("draw"),
        required=True,
        persist_state="session",
        help="After the training, to see whether the canary comes out; 0 draws none",
    )
    st.segmented_control(
        "Models",
        (1, 2, 3, 4, 5),
        key=key_of("models"),
        required=True,
        persist_state="session",
        help="Trained one after another by seeds of their own. Several give an interval, and take "
        "as many times as long.",
    )


def _texts() -> tuple[str | None, list[str] | None]:
    """Draw the choice of the texts; return what recognises them, and the sentences of an upload."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        corpus = st.selectbox(
            "Among these texts",
            list(CORPORA),
            key=key_of("corpus"),
            persist_state="session",
            format_func=CORPORA.__getitem__,
            width=260,
            help="What the model is trained on. Collections that come with Leakscope, or a file of "
            "your own",
        )
        n = st.selectbox(
            "How many",
            COUNTS,
            key=key_of("n"),
            persist_state="session",
            format_func=lambda n: f"up to {n:,} sentences",
            width=220,
            help="Drawn at random, always the same ones. Few are read quickly, and each counts "
            "for more.",
        )
    return (corpus, None) if corpus != UPLOAD else _upload(n)


def _upload(n: int) -> tuple[str | None, list[str] | None]:
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key=key_of("file"),
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or plain text. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB, of which {MAX_UPLOAD_ROWS:,} rows are read; of them at "
        f"least {FEWEST} different sentences are needed. The file stays in the memory of this "
        "computer, for your session: nothing of it is written to disk or sent anywhere.",
    )
    file = MemoryFile(sent.name, sent.getvalue()) if sent is not None else None
    digest = hashlib.sha256(file.content).hexdigest() if file is not None else None
    column = _column(file, digest) if file is not None and digest is not None else None
    corpus = state.upload_corpus(digest, column)
    if file is None or corpus is None:
        st.info(
            "Choose a file. It stays in the memory of this computer.", icon=":material/upload_file:"
        )
        return corpus, None
    found = state.upload_sentences(file, corpus, column, n)
    st.caption(f"{len(found):,} different sentences of {plain(file.name)}.")
    return corpus, found


def _column(file: MemoryFile, digest: str) -> str | None:
    facts = own_facts(file, digest)
    if not facts.names:
        return None
    return str(
        st.selectbox(
            "Column of the texts",
            facts.names,
            index=facts.names.index(facts.columns.text or facts.names[0]),
            width=260,
            help="The column that the model reads, at first the one with the longest texts",
        )
    )


def is_typed(canary: str) -> bool:
    """Return whether a canary is none of the invented examples."""
    return canary not in _EXAMPLES.values()


def foreseen(told: str) -> Canary | None:
    """Return a canary whose random part does not depend on the texts; None where it does.

    Raises
    ------
    InvalidInputError
        Nothing was typed, it is too long, or a format is wrong.
    """
    told = check_text(told, name="canary").strip()
    needs_texts = "{words" in told or not any(sign.isdecimal() for sign in told)
    if needs_texts and len(told) <= MOST_CHARACTERS:
        return None
    return make_canary(told, ())
