"""The controls of the audit page: vectors, texts and attack settings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import streamlit as st

from leakscope.core.audit.sources import SOURCES, endings
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES
from leakscope.dashboard.audit import state
from leakscope.dashboard.audit.state import COUNTS, FILE, STORE, WHAT_IF, AuditRequest
from leakscope.dashboard.server import policy


@dataclass(frozen=True)
class AuditInput:
    """The request of an audit, with the uploaded files."""

    request: AuditRequest
    vectors: MemoryFile | None = None
    texts: MemoryFile | None = None


def source_controls() -> AuditInput | None:
    """Draw the inputs of vectors, texts and settings; return the audit's input, or None."""
    st.session_state.setdefault(state.SEED_KEY, 0)
    may_open = policy.current_policy().may_open_places
    where = FILE
    if may_open:
        where = (
            st.segmented_control(
                "Where the vectors are",
                (FILE, STORE),
                key=state.WHERE_KEY,
                default=FILE,
                required=True,
                persist_state="session",
            )
            or FILE
        )
    chosen = _place_input() if where == STORE else _upload()
    st.session_state.setdefault(state.PERSONAL_KEY, True)
    st.checkbox(
        "Look for personal data",
        key=state.PERSONAL_KEY,
        persist_state="session",
        help="Names, e-mail addresses, telephone numbers, IBANs, card numbers, postal addresses, "
        "national identifiers and dates of birth in the texts: which can an attacker recover, or "
        "confirm among 1,000 candidates? Tests at most 20, in about two seconds each.",
    )
    with st.popover("More settings", icon=":material/tune:"):
        st.selectbox(
            "Vectors to attack",
            COUNTS,
            key=state.COUNT_KEY,
            persist_state="session",
            format_func=lambda n: f"{n:,}, at random",
            help="All vectors are read and checked. Attacking more of them narrows the interval "
            "but takes longer: about a minute for 200.",
        )
        st.text_input(
            "Encoder",
            key=state.ENCODER_KEY,
            persist_state="session",
            autocomplete="off",
            placeholder="identified from the vectors",
            help="The encoder of the vectors, such as `minilm` or `st:ID`, if you know it.",
        )
        st.text_input(
            "Defence",
            key=state.DEFENCE_KEY,
            persist_state="session",
            autocomplete="off",
            placeholder="none",
            help="The defence applied to the vectors, such as `int8` or `gaussian:sigma=0.05`. The "
            "attacker then knows it. Needs the texts.",
        )
        st.text_input(
            "Array or column",
            key=state.COLLECTION_KEY,
            persist_state="session",
            autocomplete="off",
            placeholder="the only one",
            help="The array, tensor or column with the vectors, if the file has several.",
        )
        st.pills(
            "What if",
            tuple(WHAT_IF),
            key=state.WHAT_IF_KEY,
            persist_state="session",
            selection_mode="multi",
            format_func=WHAT_IF.__getitem__,
            help="Measures each alternative on the same vectors, with an attacker who knows it. "
            "Needs the texts and takes minutes each.",
        )
        st.number_input(
            "Seed",
            0,
            2**31 - 1,
            key=state.SEED_KEY,
            persist_state="session",
            help="Another seed samples other vectors.",
        )
    if chosen is None:
        return None
    source, vectors, texts = chosen
    request = state.request_for(
        source, name=vectors.name if vectors else "", texts=_digest(texts) if texts else ""
    )
    return AuditInput(request, vectors, texts)


def _upload() -> tuple[str, MemoryFile | None, MemoryFile | None] | None:
    """Draw the uploads; return (SHA-256 of the vectors, vectors file, texts file), or None."""
    left, right = st.columns(2)
    sent = left.file_uploader(
        "Vectors",
        type=[ending.removeprefix(".") for ending in endings()],
        key="audit-vectors",
        help="NumPy, safetensors, FAISS, Parquet, CSV or JSON, at most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB. In a table, the column with the longest texts is taken "
        "as the texts.",
    )
    texts = right.file_uploader(
        "Texts, one per vector (not needed if the table contains them)",
        type=["txt", *TABLE_TYPES],
        key="audit-texts",
        help="The texts of the vectors, in the same order. With texts the result is a "
        "measurement, without them an estimate.",
    )
    st.caption(
        "Your files stay in the memory of this computer (the one that runs Leakscope), for your "
        "session. They are not stored and not sent anywhere."
    )
    if sent is None:
        return None
    vectors = MemoryFile(sent.name, sent.getvalue())
    return _digest(vectors), vectors, MemoryFile(texts.name, texts.getvalue()) if texts else None


def _place_input() -> tuple[str, MemoryFile | None, MemoryFile | None] | None:
    """Draw the input of a path or store; return (place, None, None), or None if empty."""
    place = st.text_input(
        "Path or store",
        key=state.PLACE_KEY,
        persist_state="session",
        autocomplete="off",
        placeholder="chroma:./db#letters",
        help="A local store is copied first, and only the copy is read. Servers get read-only "
        "calls. Set passwords in the environment, never here.",
    ).strip()
    with st.popover("Examples of sources", icon=":material/help:"):
        st.markdown("\n".join(f"- {entry.title}: `{entry.example}`" for entry in SOURCES.values()))
    return (place, None, None) if place else None


def _digest(file: MemoryFile) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(file.content).hexdigest()
