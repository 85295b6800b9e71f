"""An uploaded file whose tokens are counted to choose η, in the session only."""

from __future__ import annotations

import hashlib
from functools import partial

import streamlit as st

from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.findings.prose import plain
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard import cache
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.own_file import upload_facts
from leakscope.dashboard.ui.session_results import SessionCache

OWN = "Your own file"
_COUNTS: SessionCache[tuple[str, str, EncoderSpec], dict[int, int]] = SessionCache("_own_counts", 4)


def upload_token_counts(on: EncoderSpec) -> dict[int, int]:
    """Draw the upload of a file; return its token counts, empty without a file."""
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key="own-text",
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or one text per line. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB; the first {MAX_UPLOAD_ROWS:,} rows are used. It stays in "
        "the memory of this computer during your session; only its tokens are counted.",
    )
    if sent is None:
        st.info(
            "Choose a file with texts like those that you will release.", icon=":material/upload:"
        )
        return {}
    file = MemoryFile(sent.name, sent.getvalue())
    digest = hashlib.sha256(file.content).hexdigest()
    try:
        facts = upload_facts(file, digest)
        column = facts.columns.text if facts.names else None
        counts = _COUNTS.once((digest, column or "", on), partial(_count_tokens, file, column, on))
    except CoreError as error:
        show_error(error, title="The tokens of this file cannot be counted")
        return {}
    if column:
        st.caption(f"Counted the column {plain(column)}, which has the longest texts.")
    return counts


def _count_tokens(file: MemoryFile, column: str | None, on: EncoderSpec) -> dict[int, int]:
    """Count the tokens of an upload.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or has no token.
    """
    from leakscope.core.corpora.uploads import read_upload
    from leakscope.core.defences.deniability.eta_choice import corpus_counts
    from leakscope.core.encoders.white_box import require_white_box

    rows, _, _ = run_reader(read_upload, file, text=column)
    texts = [row.text for row in rows]
    counts = corpus_counts(require_white_box(cache.encoder(on), "Counting tokens"), texts)
    if not counts:
        raise InvalidInputError(
            "The file contains no token that this encoder knows. Choose another file."
        )
    return counts
