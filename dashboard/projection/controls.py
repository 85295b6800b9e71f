"""The controls of the page of maps: which texts, which map, which colours, which file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import streamlit as st

from core.corpora.encodings import encoding_note
from core.corpora.guess import FileFacts
from core.corpora.memory_file import MemoryFile
from core.corpora.tables import TABLE_TYPES
from core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS, read_upload
from core.corpora.vector_columns import vector_columns
from core.errors import CoreError
from core.projection.layout import MIN_POINTS, check_count
from core.projection.looks import telling_column
from core.projection.points import Column, Points
from core.projection.shipped import N_POINTS
from core.projection.spec import METHODS, ProjectionSpec
from core.specs import EncoderSpec
from dashboard import encoder_choice
from dashboard.address import Address
from dashboard.apart import parsed
from dashboard.calm import plain, show_error
from dashboard.own_file import own_facts
from dashboard.projection import state
from dashboard.projection.state import CORPORA, COUNTS, UPLOAD, MapRequest, key_of

__all__ = [
    "colour_pickers",
    "method_pickers",
    "more_settings",
    "search_input",
    "show_link",
    "text_pickers",
]

_MOST_COLUMNS = 20
_MOST_TRIED = 5


def text_pickers() -> tuple[MapRequest, Points | None] | None:
    """Draw the choice of the texts; return what is asked for, None while a file is wanted."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        corpus = st.selectbox(
            "Texts",
            list(CORPORA),
            key=key_of("corpus"),
            persist_state="session",
            format_func=lambda name: CORPORA[name],
            help="Collections that come with Leakscope, or a file of your own. *News (Lee)*: 300 "
            "short news items of 2000 and 2001, collected by Lee, Pincombe & Welsh (2005). "
            "*Wikipedia extract*: encyclopaedia articles. The vectors of "
            f"{N_POINTS:,} sentences of both together come with Leakscope; other texts are encoded "
            "first, once on this computer.",
            width=260,
        )
        n = st.selectbox(
            "How many",
            COUNTS,
            key=key_of("n"),
            persist_state="session",
            format_func=lambda n: f"up to {n:,}",
            help="At most so many texts are drawn, at random, always the same ones. The line "
            "under the map says how many of how many are shown.",
            width=160,
        )
    on, spec = encoder_choice.chosen_encoder(), state.chosen_spec()
    if corpus != UPLOAD:
        return MapRequest(source=corpus, n=n, on=on, spec=spec), None
    return _upload(n, on, spec)


def _upload(
    n: int, on: EncoderSpec, spec: ProjectionSpec
) -> tuple[MapRequest, Points | None] | None:
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key=state.file_key(),
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or one text a line. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB, of which {MAX_UPLOAD_ROWS:,} rows are read. Rows "
        "without a text are skipped and counted. The file stays in the memory of this computer, "
        "for your session: nothing of it, nor of its vectors, is written to disk or sent "
        "anywhere.",
    )
    if sent is None:
        if refused := state.refused_file():
            show_error(refused, title="This file cannot be drawn")
        restored = state.upload_request()
        if restored is not None:
            return restored, None
        st.info(
            "Choose a file. It stays in the memory of this computer.", icon=":material/upload_file:"
        )
        return None
    file = MemoryFile(sent.name, sent.getvalue())
    digest = hashlib.sha256(file.content).hexdigest()
    state.forget_refused()
    try:
        facts = own_facts(file, digest)
    except CoreError as error:
        state.refuse_file(_why_refused(file, error))  # and clear it, so that another can come
        st.rerun()
    column = _text_column(facts) if facts.names else None
    try:
        others = tuple(n for n in facts.names if n != column and n not in facts.vectors)
        if facts.vectors:
            st.caption(_vectors_said(facts.vectors))
        if len(others) > _MOST_COLUMNS:
            st.caption(f"The first {_MOST_COLUMNS} of {len(others)} further columns are read.")
        if note := encoding_note(file, facts.encoding):
            st.caption(plain(note))
        points = state.own_points(file, digest, n, column, others[:_MOST_COLUMNS])
        check_count(len(points))
    except CoreError as error:
        if not _has_other_texts(file, facts, column):
            state.refuse_file(str(error))
            st.rerun()
        show_error(error, title="This column cannot be drawn")
        return None
    request = MapRequest(
        source=digest,
        n=n,
        on=on,
        spec=spec,
        text_column=column or "",
        is_upload=True,
        is_private=True,
    )
    return request, points


def _has_other_texts(file: MemoryFile, facts: FileFacts, refused: str | None) -> bool:
    """Return whether another column could be drawn: then the file stays, to choose that one."""
    for name in [name for name in facts.names if name != refused][:_MOST_TRIED]:
        try:
            if len(parsed(read_upload, file, text=name)[0]) >= MIN_POINTS:
                return True
        except CoreError:
            continue
    return False


_WHY_NO_VECTORS = (
    "A vector says something to an attack alone that was trained for the encoder which made it, "
    "and a file does not tell which that was."
)


def _why_refused(file: MemoryFile, error: CoreError) -> str:
    """Return why a file cannot be drawn; of one of vectors alone, why these are not understood."""
    try:
        vectors = vector_columns(file)
    except CoreError:
        vectors = ()
    if not vectors:
        return str(error)
    return (
        f"{file.name}: {', '.join(vectors)} hold{'s' if len(vectors) == 1 else ''} vectors, and no "
        f"column holds texts. {_WHY_NO_VECTORS} Add a column of the texts that they are of."
    )


def _vectors_said(vectors: Sequence[str]) -> str:
    """Say that vectors of a file stay unread, and why."""
    named = plain(", ".join(vectors))
    return (
        f"Not read: {named}, which hold{'s' if len(vectors) == 1 else ''} vectors. "
        f"{_WHY_NO_VECTORS} The texts are encoded anew by the encoder of this page."
    )


def _text_column(facts: FileFacts) -> str:
    return str(
        st.selectbox(
            "Column of the texts",
            facts.names,
            index=facts.names.index(facts.columns.text or facts.names[0]),
            help="The column that the encoder reads, at first the one with the longest texts; the "
            "others can colour the map",
            width=260,
        )
    )


def method_pickers() -> None:
    """Draw the choice of the method and of the dimensions."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Method",
            list(METHODS),
            key=key_of("method"),
            required=True,
            persist_state="session",
            format_func=lambda name: METHODS[name].title,
            help="  \n".join(f"**{m.title}** keeps: {m.keeps}" for m in METHODS.values()),
        )
        st.segmented_control(
            "Dimensions",
            (2, 3),
            key=key_of("dims"),
            required=True,
            persist_state="session",
            format_func=lambda n: f"{n}-D",
            help="Three dimensions can be turned, but no points can be selected in them",
        )
        with st.popover("More settings", icon=":material/tune:"):
            more_settings()
        with st.popover("Encoder", icon=":material/memory:", help="Whose vectors are drawn"):
            encoder_choice.encoder_picker()


def more_settings() -> None:
    """Draw the settings of the method, and the seed."""
    method = str(state.chosen("method"))
    if method == "umap":
        st.slider(
            "Neighbours",
            2,
            100,
            key=key_of("n_neighbors"),
            persist_state="session",
            help="How many neighbours each point is drawn beside: few show detail, many the whole",
        )
        st.slider(
            "Least distance",
            0.0,
            0.99,
            step=0.01,
            key=key_of("min_dist"),
            persist_state="session",
            help="How closely points may lie together",
        )
    if method == "tsne":
        st.slider(
            "Perplexity",
            2.0,
            100.0,
            step=1.0,
            key=key_of("perplexity"),
            persist_state="session",
            help="About how many neighbours each point is drawn beside",
        )
    st.segmented_control(
        "Near means",
        ("cosine", "euclidean"),
        key=key_of("metric"),
        required=True,
        persist_state="session",
        format_func={"cosine": "small angle", "euclidean": "small distance"}.__getitem__,
        help="By angle, the length of a vector does not count",
    )
    st.number_input(
        "Seed",
        0,
        2**32 - 1,
        key=key_of("seed"),
        persist_state="session",
        help="The same seed gives the same map",
    )


def colour_pickers(columns: Mapping[str, Column], address: Address) -> tuple[str, str | None, bool]:
    """Draw the choice of the columns; return colour, shape, and whether one was refused."""
    names = list(columns)
    wanted = {name: state.chosen(name) for name in ("colour", "shape")}
    is_refused = any(v not in names and address.asks(n, v) for n, v in wanted.items())
    if wanted["colour"] not in names:
        state.choose("colour", telling_column(columns))
    if wanted["shape"] not in names:
        state.choose("shape", None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colour = st.selectbox(
            "Colour",
            names,
            key=key_of("colour"),
            persist_state="session",
            help="The column whose values are the colours. Where no column is "
            "chosen for the shapes, they tell the same.",
            width=200,
        )
        shape = st.selectbox(
            "Shape",
            names,
            key=key_of("shape"),
            persist_state="session",
            placeholder="as the colour",
            index=None,
            help="A second column; empty, the shapes tell the same as the colours",
            width=200,
        )
        search_input()
    return str(colour), shape, is_refused


def search_input() -> None:
    """Draw the line that finds points by their text."""
    st.text_input(
        "Find in the texts",
        key=key_of("search"),
        persist_state="session",
        live="300ms",
        autocomplete="off",
        placeholder="A word or a piece of text",
        help="Rings the points whose text holds it; capitals do not count",
        width=300,
    )


def show_link(address: Address) -> None:
    """Draw the address of the view; there is none for a file of one's own."""
    if state.chosen("corpus") == UPLOAD:
        st.markdown("A map of your own file has no address: the file stays in your session.")
    else:
        address.show_link(encoder_choice.address().query())
