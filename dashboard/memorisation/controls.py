"""The controls of the memorisation page: canary, insertions, model and texts."""

from __future__ import annotations

import hashlib

import streamlit as st

from leakscope.core.attacks.membership.memorisation.canaries import (
    MOST_CHARACTERS,
    Canary,
    make_canary,
)
from leakscope.core.attacks.membership.memorisation.memorise import MemoriseRequest
from leakscope.core.attacks.membership.memorisation.settings import MODEL_NAMES
from leakscope.core.attacks.membership.memorisation.texts import FEWEST
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from leakscope.core.figures.memorisation import MODELS
from leakscope.core.findings.prose import plain
from leakscope.core.text import check_text
from leakscope.dashboard.address import Address
from leakscope.dashboard.memorisation import state
from leakscope.dashboard.memorisation.state import (
    CORPORA,
    COUNTS,
    DRAWN,
    EPOCHS,
    INSERTIONS,
    UPLOAD,
    key_of,
    plant_text,
)
from leakscope.dashboard.ui.own_file import upload_facts
from leakscope.dashboard.ui.state import is_presenting

_EXAMPLES = {
    "A card number": "My card number is {digits:4}",
    "A password": "The password of the safe is {letters:5}",
    "Two words": "We meet where it says {words:2}",
    "A sentence": "Ada Quell lives at 4817 Mill Lane",
}


def request_controls() -> tuple[MemoriseRequest | None, list[str] | None]:
    """Draw all controls; return the request (None without a file) and an upload's sentences.

    In presentation mode nothing is drawn, and the last request is returned.

    Raises
    ------
    InvalidInputError
        The file cannot be used.
    """
    if is_presenting():
        corpus, found = state.presented_corpus(), None
    else:
        _pickers()
        corpus, found = _text_pickers()
        state.remember_corpus(corpus)
    return (state.chosen_request(corpus) if corpus else None), found


def _pickers() -> None:
    """Draw the controls of the canary, its insertions, the epochs and the model."""
    st.text_input(
        "Your canary",
        key=key_of("canary"),
        persist_state="session",
        autocomplete="off",
        help="A format with a random part: {digits:4}, {letters:5} or {words:2}. Or your own text: "
        "its digits are the secret, or its rarest words if it has no digits. The text stays in "
        "this computer's memory: it is not stored, logged or sent anywhere.",
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
        help="How often the canary occurs in the training texts. 0 is a control: the exposure "
        "should stay at chance.",
    )
    right.slider(
        "Epochs",
        EPOCHS[0],
        EPOCHS[-1],
        key=key_of("epochs"),
        persist_state="session",
        help="How often the model is trained on all texts. Each epoch takes about the same time.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Model",
            MODEL_NAMES,
            key=key_of("model"),
            required=True,
            persist_state="session",
            format_func=MODELS.__getitem__,
            help="A small language model with two layers, trained here from scratch",
        )
        with st.popover("More settings", icon=":material/tune:"):
            _more_settings()


def show_link(address: Address) -> None:
    """Draw the address of the current view, without an uploaded file."""
    if state.choice("corpus") == UPLOAD:
        st.caption("The link does not include your file, which stays in your session.")
    address.show_link()


def _more_settings() -> None:
    """Draw selectors of tokens, number of sampled texts and number of models."""
    for label, options, name, about in (
        (
            "Tokens",
            ("bytes", "words"),
            "tokens",
            "Bytes can spell any script. With words, each word or digit is a token.",
        ),
        (
            "Texts per sampler",
            DRAWN,
            "draw",
            "Sampled after training, to see whether the model writes the canary; 0 samples none",
        ),
        (
            "Models",
            (1, 2, 3, 4, 5),
            "models",
            "Each model has its own random seed. Several models give an interval and take several "
            "times as long.",
        ),
    ):
        st.segmented_control(
            label, options, key=key_of(name), required=True, persist_state="session", help=about
        )


def _text_pickers() -> tuple[str | None, list[str] | None]:
    """Draw selectors of the texts; return the corpus's identifier and an upload's sentences."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        corpus = st.selectbox(
            "Training texts",
            list(CORPORA),
            key=key_of("corpus"),
            persist_state="session",
            format_func=CORPORA.__getitem__,
            width=260,
            help="The texts in which the canary is planted: a collection that ships with "
            "Leakscope, or your own file",
        )
        n = st.selectbox(
            "How many",
            COUNTS,
            key=key_of("n"),
            persist_state="session",
            format_func=lambda n: f"up to {n:,} sentences",
            width=220,
            help="Drawn at random, always the same ones. With few sentences, training is faster "
            "and each sentence counts for more.",
        )
    return (corpus, None) if corpus != UPLOAD else _upload(n)


def _upload(n: int) -> tuple[str | None, list[str] | None]:
    """Draw a file upload; return the file's identifier and its sentences, each None if missing."""
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key=key_of("file"),
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or plain text. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB; {MAX_UPLOAD_ROWS:,} rows of it are read, and at least "
        f"{FEWEST} different sentences are needed. The file stays in this computer's memory for "
        "your session. It is never written to disk or sent anywhere.",
    )
    file = MemoryFile(sent.name, sent.getvalue()) if sent is not None else None
    digest = hashlib.sha256(file.content).hexdigest() if file is not None else None
    column = _column_picker(file, digest) if file is not None and digest is not None else None
    corpus = state.upload_corpus(digest, column)
    if file is None or corpus is None:
        st.info("Choose a file. It stays in this computer's memory.", icon=":material/upload_file:")
        return corpus, None
    found = state.upload_sentences(file, corpus, column, n)
    st.caption(f"{len(found):,} different sentences from {plain(file.name)}.")
    return corpus, found


def _column_picker(file: MemoryFile, digest: str) -> str | None:
    """Draw the selector of the text column; return its name, None for a file without columns."""
    facts = upload_facts(file, digest)
    if not facts.names:
        return None
    return str(
        st.selectbox(
            "Column of the texts",
            facts.names,
            index=facts.names.index(facts.columns.text or facts.names[0]),
            width=260,
            help="The column to train on; by default the one with the longest texts",
        )
    )


def is_typed(canary: str) -> bool:
    """Return whether a canary was typed, that is, it is not one of the examples."""
    return canary not in _EXAMPLES.values()


def known_canary(typed: str) -> Canary | None:
    """Parse a typed canary; return None if its possible secrets depend on the texts.

    Raises
    ------
    InvalidInputError
        The canary is empty or too long, or its format is wrong.
    """
    text = check_text(typed, name="canary").strip()
    needs_texts = "{words" in text or not any(sign.isdecimal() for sign in text)
    if needs_texts and len(text) <= MOST_CHARACTERS:
        return None
    return make_canary(text, ())
