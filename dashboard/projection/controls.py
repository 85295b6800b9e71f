"""The controls of the map page: texts, upload, method, colours and search."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import streamlit as st

from leakscope.core.corpora.guess import FileFacts
from leakscope.core.corpora.readers.encodings import encoding_note
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.readers.vector_columns import vector_columns
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, read_upload
from leakscope.core.errors import CoreError
from leakscope.core.findings.prose import plain
from leakscope.core.projection.grouping import most_informative_column
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.layout import MIN_POINTS, check_count
from leakscope.core.projection.points import Column, Points
from leakscope.core.projection.shipped import N_POINTS
from leakscope.core.projection.spec import METHODS, ProjectionSpec
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard.address import Address
from leakscope.dashboard.projection import state
from leakscope.dashboard.projection.state import CORPORA, UPLOAD, control
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui import encoder_choice
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.own_file import upload_facts

_MOST_COLUMNS = 20
_MOST_TRIED = 5


def text_pickers() -> tuple[MapRequest, Points | None] | None:
    """Draw the selector of the texts; return the map's request and an upload's points, or None."""
    corpus = st.selectbox(
        "Texts",
        list(CORPORA),
        **control("corpus"),
        format_func=lambda name: CORPORA[name],
        help="Collections that come with Leakscope, or your own file. *News (Lee)*: 300 "
        "short news items from 2000 and 2001, collected by Lee, Pincombe & Welsh (2005). "
        "*Wikipedia extract*: encyclopaedia articles. Leakscope includes the vectors of "
        f"{N_POINTS:,} sentences of both; it encodes other texts first, once on this "
        "computer.",
    )
    n = int(state.choice("n"))
    on, spec = encoder_choice.chosen_encoder(), state.chosen_spec()
    if corpus != UPLOAD:
        return MapRequest(source=corpus, n=n, on=on, spec=spec), None
    return _upload(n, on, spec)


def _upload(
    n: int, on: EncoderSpec, spec: ProjectionSpec
) -> tuple[MapRequest, Points | None] | None:
    """Draw a file upload; read it and return the map's request and points, or None."""
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key=state.file_key(),
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or one text per line. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB and {state.counts()[-1]:,} rows. Rows without a text are "
        "skipped and counted. The file stays in the memory of this computer, for your session: "
        "neither it nor its vectors are written to disk or sent anywhere.",
    )
    if sent is None:
        if refused := state.refused_file():
            show_error(refused, title="This file cannot be drawn")
        restored = state.restored_request()
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
        facts = upload_facts(file, digest)
    except CoreError as error:
        state.refuse_file(_why_refused(file, error))  # clears the upload for another file
        st.rerun()
    column = _text_column(facts) if facts.names else None
    try:
        others = tuple(n for n in facts.names if n != column and n not in facts.vectors)
        if facts.vectors:
            st.caption(_describe_vectors(facts.vectors))
        if len(others) > _MOST_COLUMNS:
            st.caption(f"Only the first {_MOST_COLUMNS} of {len(others)} further columns are used.")
        if note := encoding_note(file, facts.encoding):
            st.caption(plain(note))
        points = state.own_points(file, digest, n, column, others[:_MOST_COLUMNS])
        check_count(len(points))
    except CoreError as error:
        if not _has_other_text_column(file, facts, column):
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


def _has_other_text_column(file: MemoryFile, facts: FileFacts, refused: str | None) -> bool:
    """Try the file's other columns; return whether one has enough texts to draw."""
    for name in [name for name in facts.names if name != refused][:_MOST_TRIED]:
        try:
            if len(run_reader(read_upload, file, text=name)[0]) >= MIN_POINTS:
                return True
        except CoreError:
            continue
    return False


_WHY_NO_VECTORS = (
    "An attack can use a vector only if it was trained for the encoder that made the vector, and a "
    "file does not state the encoder."
)


def _why_refused(file: MemoryFile, error: CoreError) -> str:
    """Describe why a file cannot be drawn; for a file of vectors only, why vectors do not help."""
    try:
        vectors = vector_columns(file)
    except CoreError:
        vectors = ()
    if not vectors:
        return str(error)
    return (
        f"{file.name}: {', '.join(vectors)} contain{'s' if len(vectors) == 1 else ''} vectors, and "
        f"no column contains texts. {_WHY_NO_VECTORS} Add a column with the texts of the vectors."
    )


def _describe_vectors(vectors: Sequence[str]) -> str:
    """Describe that the named vector columns are ignored, and why."""
    named = plain(", ".join(vectors))
    return (
        f"Not used: {named}, which contain{'s' if len(vectors) == 1 else ''} vectors. "
        f"{_WHY_NO_VECTORS} The encoder of this page encodes the texts again."
    )


def _text_column(facts: FileFacts) -> str:
    """Draw the selector of the text column and return the column's name."""
    return str(
        st.selectbox(
            "Text column",
            facts.names,
            index=facts.names.index(facts.columns.text or facts.names[0]),
            help="The column to encode; by default, the one with the longest texts. Other columns "
            "can colour the map",
            width=260,
        )
    )


def method_pickers() -> None:
    """Draw selectors of the number of texts, the method, its settings and the encoder."""
    with st.popover("Size, method and encoder", icon=":material/tune:", key="map-method"):
        st.selectbox(
            "How many",
            state.counts(),
            **control("n"),
            format_func=lambda n: f"up to {n:,}",
            help="The most texts to show. They are a random sample, always the same one. The line "
            "below the map states how many texts it shows.",
        )
        st.segmented_control(
            "Method",
            list(METHODS),
            **control("method"),
            required=True,
            format_func=lambda name: METHODS[name].title,
            help="  \n".join(f"**{m.title}** preserves: {m.keeps}" for m in METHODS.values()),
        )
        st.segmented_control(
            "Dimensions",
            (2, 3),
            **control("dims"),
            required=True,
            format_func=lambda n: f"{n}-D",
            help="You can rotate a 3-D map, but select points only in 2-D",
        )
        more_settings()
        encoder_choice.encoder_picker()


def more_settings() -> None:
    """Draw the controls of the method's settings, the metric and the seed."""
    method = str(state.choice("method"))
    if method == "umap":
        st.slider(
            "Neighbours",
            2,
            100,
            **control("n_neighbors"),
            help="Neighbours that each point is placed beside: few show detail, many show the "
            "overall structure",
        )
        st.slider(
            "Minimum distance",
            0.0,
            0.99,
            step=0.01,
            **control("min_dist"),
            help="How close points may be on the map",
        )
    if method == "tsne":
        st.slider(
            "Perplexity",
            2.0,
            100.0,
            step=1.0,
            **control("perplexity"),
            help="Roughly, how many neighbours each point is placed beside",
        )
    st.segmented_control(
        "Distance",
        ("cosine", "euclidean"),
        **control("metric"),
        required=True,
        format_func={"cosine": "angle", "euclidean": "Euclidean"}.__getitem__,
        help="The distance between vectors. The angle ignores their length",
    )
    st.number_input(
        "Seed",
        0,
        2**32 - 1,
        **control("seed"),
        help="The same seed gives the same map",
    )


def colour_pickers(columns: Mapping[str, Column], address: Address) -> tuple[str, str | None, bool]:
    """Draw column selectors; return colour, shape, and whether the URL named unknown columns."""
    names = list(columns)
    wanted = {name: state.choice(name) for name in ("colour", "shape")}
    is_refused = any(v not in names and address.requests(n, v) for n, v in wanted.items())
    if wanted["colour"] not in names:
        state.choose("colour", most_informative_column(columns))
    if wanted["shape"] not in names:
        state.choose("shape", None)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        colour = st.selectbox(
            "Colour",
            names,
            **control("colour"),
            help="The column that sets the colours. Without a second column, shapes repeat them.",
            width=150,
        )
        shape = st.selectbox(
            "Shape",
            names,
            **control("shape"),
            placeholder="as the colour",
            index=None,
            help="A second column for the shapes. If empty, shapes repeat the colours",
            width=150,
        )
    search_input()
    return str(colour), shape, is_refused


def search_input() -> None:
    """Draw the search input, whose matching points get rings on the map."""
    st.text_input(
        "Find in the texts",
        **control("search"),
        live="300ms",
        autocomplete="off",
        placeholder="A word or a piece of text",
        help="Marks points whose text contains it with a ring; capitals do not count",
    )


def show_link(address: Address) -> None:
    """Draw the link to the current map, or why an uploaded file has none."""
    if state.choice("corpus") == UPLOAD:
        st.markdown("A map of your own file has no link: the file stays in your session.")
    else:
        address.show_link(encoder_choice.address().query())
