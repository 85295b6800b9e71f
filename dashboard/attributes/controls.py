"""The controls of the page of attributes: what was measured, which texts, which file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import streamlit as st

from core.attacks.attributes.examples import Examples
from core.attacks.attributes.limits import MOST_LABELS as MOST_TOLD_APART
from core.attacks.attributes.sources import ATTRIBUTE_CORPORA
from core.corpora.guess import FileFacts
from core.corpora.labels import alike_note
from core.corpora.memory_file import MemoryFile
from core.corpora.tables import TABLE_TYPES
from core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from core.errors import CoreError, InvalidInputError
from core.studies.attribute_curves import ALONG, SOURCES, View, offered, views_of
from core.studies.attribute_request import MOST_LABELS
from core.studies.rows import Row
from dashboard.attributes import state
from dashboard.attributes.state import COUNTS, UPLOAD, AttributeRequest, key_of
from dashboard.calm import plain, show_error
from dashboard.inversion.answers import ENCODER
from dashboard.own_file import own_facts
from dashboard.state import keep_choice

__all__ = ["text_input", "text_pickers", "view_pickers"]

_FIVE = 5
_LABEL_NAMES = ("author", "label", "user", "class", "topic", "gender")
_GROUP_NAMES = ("book_id", "book", "doc_id", "document", "group", "article")


def view_pickers(rows: Sequence[Row], name: str) -> tuple[View, str]:
    """Draw what of the rows is looked at; return the view, and what accuracy is drawn along."""
    sources = offered(rows)
    keep_choice(key_of(f"{name}_source"), sources)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(sources) > 1:
            st.selectbox(
                "Labelled texts are",
                sources,
                key=key_of(f"{name}_source"),
                format_func=lambda source: SOURCES[source],
                persist_state="session",
                help="What the attacker's labelled texts share with those under attack. From "
                "other works, nothing that belongs to one work alone can help",
            )
        source = str(st.session_state[key_of(f"{name}_source")])
        labels, sizes = views_of(rows, source)
        k = _top_picker(name) if labels[-1] > _FIVE else 1
        along = _along_picker(name, labels, sizes)
        options = labels if along == "n_per_label" else sizes
        fixed = next(other for other in ALONG if other != along)
        key = f"{name}_{fixed}"
        keep_choice(key_of(key), options, -1)
        if len(options) > 1:
            st.selectbox(
                ALONG[fixed].capitalize(),
                options,
                key=key_of(key),
                format_func=lambda n: f"{n:,}",
                persist_state="session",
                help="How many, while the other number grows from left to right",
                width=180,
            )
    chosen = int(st.session_state[key_of(key)])
    most = {"n_labels": labels[-1], "n_per_label": sizes[-1]} | {fixed: chosen}
    return View(source, most["n_labels"], most["n_per_label"], k), along


def _top_picker(name: str) -> int:
    keep_choice(key_of(f"{name}_k"), (1, 5))
    st.segmented_control(
        "Right if it is",
        (1, 5),
        key=key_of(f"{name}_k"),
        required=True,
        persist_state="session",
        format_func={1: "the likeliest", 5: "among five"}.__getitem__,
        help="Top-1 and top-5 accuracy: the true label is the likeliest, or one of the five "
        "likeliest",
    )
    return int(st.session_state[key_of(f"{name}_k")])


def _along_picker(name: str, labels: Sequence[int], sizes: Sequence[int]) -> str:
    """Draw what grows from left to right, where both were measured at several numbers."""
    options = [a for a, n in (("n_per_label", sizes), ("n_labels", labels)) if len(n) > 1]
    options = options or ["n_per_label"]
    keep_choice(key_of(f"{name}_along"), options)
    if len(options) > 1:
        st.segmented_control(
            "Drawn against",
            options,
            key=key_of(f"{name}_along"),
            required=True,
            persist_state="session",
            format_func=lambda along: ALONG[along],
            help="More labelled texts make it easier, more labels make it harder",
        )
    return str(st.session_state[key_of(f"{name}_along")])


def text_pickers(
    corpora: Sequence[str],
) -> tuple[AttributeRequest, Examples | None] | None:
    """Draw the choice of the texts; return what is asked for, None while a file is wanted."""
    st.session_state.setdefault(key_of("seed"), 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Texts and attribute",
            [*corpora, UPLOAD],
            key=key_of("corpus"),
            persist_state="session",
            format_func=_corpus_said,
            help="What the attacker wants to know of whose texts. "
            + " ".join(f"*{ATTRIBUTE_CORPORA[name].title}*: {ATTRIBUTE_CORPORA[name].summary}."
                       for name in corpora),
            width=300,
        )  # fmt: skip
        _count("labels", "Labels", "So many labels at most are told apart, drawn by chance; those "
               "with too few texts are left out. A file may have any number of labels, of which "
               f"at most {MOST_LABELS} are drawn here; the command `core attributes` tells up to "
               f"{MOST_TOLD_APART:,} apart")  # fmt: skip
        _count("each", "Labelled of each", "How many texts of each label the attacker has, at most")
        with st.popover("More settings", icon=":material/tune:"):
            st.number_input(
                "Seed",
                0,
                2**31 - 1,
                key=key_of("seed"),
                persist_state="session",
                help="Another seed draws other labels and texts: see how much hangs on them",
            )
    if st.session_state[key_of("corpus")] == UPLOAD:
        return _upload()
    return _request(str(st.session_state[key_of("corpus")])), None


def _corpus_said(name: str) -> str:
    return "Your own file" if name == UPLOAD else ATTRIBUTE_CORPORA[name].title


def _count(name: str, label: str, told: str) -> None:
    st.selectbox(
        label,
        COUNTS,
        key=key_of(name),
        persist_state="session",
        format_func=lambda n: f"up to {n}",
        help=told,
        width=140,
    )


def _request(source: str, **columns: str) -> AttributeRequest:
    return AttributeRequest(
        source=source,
        on=ENCODER,
        n_labels=int(st.session_state[key_of("labels")]),
        n_per_label=int(st.session_state[key_of("each")]),
        seed=int(st.session_state[key_of("seed")]),
        is_upload=bool(columns),
        **columns,
    )


def _upload() -> tuple[AttributeRequest, Examples | None] | None:
    sent = st.file_uploader(
        "A file with labelled texts",
        type=list(TABLE_TYPES),
        key=key_of("file"),
        help="CSV, TSV, JSON or Parquet with a column of texts and one of what is to be inferred, "
        f"such as the author. At most {MAX_UPLOAD_BYTES // 2**20} MB, of which "
        f"{MAX_UPLOAD_ROWS:,} rows are read; it may have any number of labels, of which at most "
        f"{MOST_LABELS} are drawn. The file stays in the memory of this computer, for "
        "your session: nothing of it, nor of its vectors, is written to disk or sent anywhere.",
    )
    if sent is None:
        restored = state.restored_upload()
        if restored is not None:
            return restored, None
        st.info(
            "Choose a file. It stays in the memory of this computer.", icon=":material/upload_file:"
        )
        return None
    file = MemoryFile(sent.name, sent.getvalue())
    digest = hashlib.sha256(file.content).hexdigest()
    try:
        request = _request(digest, **_columns(own_facts(file, digest), file))
        examples = state.own_examples(file, request)
        if note := alike_note(examples.labels, what="labels"):
            st.info(plain(f"{note[:1].upper()}{note[1:]}."), icon=":material/info:")
        return request, examples
    except CoreError as error:
        show_error(error, title="These labels cannot be inferred")
        return None


def _columns(facts: FileFacts, file: MemoryFile) -> dict[str, str]:
    """Draw which column holds what."""
    names = [name for name in facts.names if name not in facts.vectors]
    if len(names) < 2:
        raise InvalidInputError(
            f"{file} has no two columns: one of texts and one of labels are needed. Give a table."
        )
    text = facts.columns.text or names[0]
    label = next((n for n in _LABEL_NAMES if n in names and n != text), None)
    group = next((n for n in _GROUP_NAMES if n in names and n not in (text, label)), None)
    first = next(name for name in names if name != text)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        texts = st.selectbox("Texts", names, index=names.index(text), width=200,
                             help="The column that the encoder reads")  # fmt: skip
        labels = st.selectbox("Labels", names, index=names.index(label or first), width=200,
                              help="The column of what is inferred: author, gender, topic, user"
                              )  # fmt: skip
        groups = st.selectbox(
            "Groups",
            names,
            index=None if group is None else names.index(group),
            placeholder="every text stands for itself",
            width=260,
            help="The column of what several texts come from, such as a book or a document. "
            "Labelled texts and targets are then of different ones. Without it, texts of one work "
            "stand on both sides, and flatter the attack",
        )
    return {"text_column": texts, "label_column": labels, "group_column": groups or ""}


def text_input() -> None:
    """Draw what one types or pastes the text into."""
    st.text_area(
        "A text",
        key=key_of("text"),
        height=110,
        persist_state="session",
        placeholder="Type or paste a text",
        help="It stays in the memory of this computer: it is not stored, logged or sent anywhere. "
        "The probe sees its vector alone; the text serves to tell topic from the rest.",
    )
