"""The controls of the attributes page: the measured view, the texts and an upload."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import streamlit as st

from leakscope.core.attacks.attributes.examples import MOST_LABELS as MOST_DISTINGUISHED
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.sources import ATTRIBUTE_CORPORA
from leakscope.core.corpora.guess import FileFacts
from leakscope.core.corpora.labels import near_identical_note
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.findings.prose import plain
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.curves import (
    ALONG,
    SOURCES,
    View,
    labelled_sources,
    views_of,
)
from leakscope.core.studies.attributes.request import MOST_LABELS, AttributeRequest
from leakscope.dashboard.attributes import state
from leakscope.dashboard.attributes.state import COUNTS, UPLOAD, key_of
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.own_file import upload_facts
from leakscope.dashboard.ui.state import keep_choice

_FIVE = 5
_LABEL_NAMES = ("author", "label", "user", "class", "topic", "gender")
_GROUP_NAMES = ("book_id", "book", "doc_id", "document", "group", "article")


def view_pickers(rows: Sequence[Row], name: str) -> tuple[View, str]:
    """Draw selectors of the measured view; return the view and the accuracy curve's x-axis."""
    sources = labelled_sources(rows)
    keep_choice(key_of(f"{name}_source"), sources)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(sources) > 1:
            st.selectbox(
                "Labelled texts from",
                sources,
                key=key_of(f"{name}_source"),
                format_func=lambda source: SOURCES[source],
                persist_state="session",
                help="Where the attacker's labelled texts come from. If they come from other "
                "works, nothing specific to one work can help",
            )
        source = str(st.session_state[key_of(f"{name}_source")])
        labels, sizes = views_of(rows, source)
        k = _top_picker(name) if labels[-1] > _FIVE else 1
        along = _axis_picker(name, labels, sizes)
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
                help="This number is fixed; the other one grows from left to right",
                width=180,
            )
    chosen = int(st.session_state[key_of(key)])
    most = {"n_labels": labels[-1], "n_per_label": sizes[-1]} | {fixed: chosen}
    return View(source, most["n_labels"], most["n_per_label"], k), along


def _top_picker(name: str) -> int:
    """Draw the selector of top-1 or top-5 accuracy; return 1 or 5."""
    keep_choice(key_of(f"{name}_k"), (1, 5))
    st.segmented_control(
        "Counts as right",
        (1, 5),
        key=key_of(f"{name}_k"),
        required=True,
        persist_state="session",
        format_func={1: "top 1", 5: "top 5"}.__getitem__,
        help="Top 1: the true label is the likeliest. Top 5: it is among the five likeliest",
    )
    return int(st.session_state[key_of(f"{name}_k")])


def _axis_picker(name: str, labels: Sequence[int], sizes: Sequence[int]) -> str:
    """Draw the selector of the curve's x-axis if both were varied; return the axis."""
    options = [a for a, n in (("n_per_label", sizes), ("n_labels", labels)) if len(n) > 1]
    options = options or ["n_per_label"]
    keep_choice(key_of(f"{name}_along"), options)
    if len(options) > 1:
        st.segmented_control(
            "Horizontal axis",
            options,
            key=key_of(f"{name}_along"),
            required=True,
            persist_state="session",
            format_func=lambda along: ALONG[along],
            help="More labelled texts make the attack easier; more labels make it harder",
        )
    return str(st.session_state[key_of(f"{name}_along")])


def text_pickers(
    corpora: Sequence[str],
) -> tuple[AttributeRequest, Examples | None] | None:
    """Draw selectors of the texts; return the request and an upload's examples, or None."""
    st.session_state.setdefault(key_of("seed"), 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Texts and attribute",
            [*corpora, UPLOAD],
            key=key_of("corpus"),
            persist_state="session",
            format_func=_describe_corpus,
            help="The texts, and what the attacker infers about them. "
            + " ".join(
                f"*{ATTRIBUTE_CORPORA[name].title}*: {ATTRIBUTE_CORPORA[name].summary}."
                for name in corpora
            ),
            width=300,
        )
        _count_picker(
            "labels",
            "Labels",
            "The maximum number of labels, drawn at random; labels with too few texts are left "
            f"out. A file may have any number of labels, of which at most {MOST_LABELS} are drawn "
            "here. The command `leakscope attributes` distinguishes up to "
            f"{MOST_DISTINGUISHED:,}",
        )
        _count_picker(
            "each",
            "Texts per label",
            "The maximum number of labelled texts that the attacker has for each label",
        )
        with st.popover("More settings", icon=":material/tune:"):
            st.number_input(
                "Random seed",
                0,
                2**31 - 1,
                key=key_of("seed"),
                persist_state="session",
                help="Another seed draws other labels and texts; try several to see how much the "
                "result depends on them",
            )
    if st.session_state[key_of("corpus")] == UPLOAD:
        return _upload()
    return _build_request(str(st.session_state[key_of("corpus")])), None


def _describe_corpus(name: str) -> str:
    """Return the title of a named corpus, or a label for an uploaded file."""
    return "Your own file" if name == UPLOAD else ATTRIBUTE_CORPORA[name].title


def data_title(request: AttributeRequest) -> str:
    """Return the title of the texts that a request names."""
    return _describe_corpus(UPLOAD if request.is_upload else request.source)


def _count_picker(name: str, label: str, about: str) -> None:
    """Draw the selector of a maximum number: of labels, or of labelled texts for each label."""
    st.selectbox(
        label,
        COUNTS,
        key=key_of(name),
        persist_state="session",
        format_func=lambda n: f"up to {n}",
        help=about,
        width=140,
    )


def _build_request(source: str, **columns: str) -> AttributeRequest:
    """Build the request for a source from the controls' values and the given columns."""
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
    """Draw a file upload; read the file and return the request and its examples, or None."""
    sent = st.file_uploader(
        "A file with labelled texts",
        type=list(TABLE_TYPES),
        key=key_of("file"),
        help="CSV, TSV, JSON or Parquet with a column of texts and a column of labels, such as "
        f"the author. At most {MAX_UPLOAD_BYTES // 2**20} MB and {MAX_UPLOAD_ROWS:,} rows are "
        f"read. The file may have any number of labels, of which at most {MOST_LABELS} are drawn. "
        "The file stays in the memory of this computer, for your session. Neither the file nor "
        "its vectors are written to disk or sent anywhere.",
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
        request = _build_request(digest, **_column_pickers(upload_facts(file, digest), file))
        examples = state.upload_examples(file, request)
        if note := near_identical_note(examples.labels, what="labels"):
            st.info(plain(f"{note[:1].upper()}{note[1:]}."), icon=":material/info:")
        return request, examples
    except CoreError as error:
        show_error(error, title="These labels cannot be inferred")
        return None


def _column_pickers(facts: FileFacts, file: MemoryFile) -> dict[str, str]:
    """Draw selectors of the file's text, label and group columns; return the columns by role."""
    names = [name for name in facts.names if name not in facts.vectors]
    if len(names) < 2:
        raise InvalidInputError(
            f"{file} needs at least two columns, one of texts and one of labels. Choose a table."
        )
    text = facts.columns.text or names[0]
    label = next((n for n in _LABEL_NAMES if n in names and n != text), None)
    group = next((n for n in _GROUP_NAMES if n in names and n not in (text, label)), None)
    first = next(name for name in names if name != text)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        texts = st.selectbox(
            "Texts",
            names,
            index=names.index(text),
            width=200,
            help="The column of texts to encode",
        )
        labels = st.selectbox(
            "Labels",
            names,
            index=names.index(label or first),
            width=200,
            help="The column to infer: author, gender, topic or user",
        )
        groups = st.selectbox(
            "Groups",
            names,
            index=None if group is None else names.index(group),
            placeholder="none: split text by text",
            width=260,
            help="The column of each text's source, such as a book or a document. Labelled texts "
            "and targets then come from different sources. Without it, texts of one work are on "
            "both sides, and the accuracy is too high",
        )
    return {"text_column": texts, "label_column": labels, "group_column": groups or ""}


def text_input() -> None:
    """Draw the text area for the text to attack."""
    st.text_area(
        "A text",
        key=key_of("text"),
        height=110,
        persist_state="session",
        placeholder="Type or paste a text",
        help="It stays in the memory of this computer: it is not stored, logged or sent anywhere. "
        "The probe sees only the vector; the text is used to separate topic from the rest.",
    )
