"""A file of the visitor's own, whose tokens are counted for an η: for their session alone."""

from __future__ import annotations

import hashlib
from functools import partial

import streamlit as st

from core.corpora.memory_file import MemoryFile
from core.corpora.tables import TABLE_TYPES
from core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from core.errors import CoreError, InvalidInputError
from core.specs import EncoderSpec
from dashboard import cache
from dashboard.apart import parsed
from dashboard.calm import plain, show_error
from dashboard.kept import Kept
from dashboard.own_file import own_facts

__all__ = ["OWN", "own_counts"]

OWN = "Your own file"
_COUNTS: Kept[tuple[str, str, EncoderSpec], dict[int, int]] = Kept("_own_counts", 4)


def own_counts(on: EncoderSpec) -> dict[int, int]:
    """Draw what takes the file; return how often it holds each token, nothing without a file."""
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key="own-text",
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or one text a line. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB, of which {MAX_UPLOAD_ROWS:,} rows are read. It stays in "
        "the memory of this computer, for your session; only its tokens are counted.",
    )
    if sent is None:
        st.info("Choose a file with texts of the kind that you release.", icon=":material/upload:")
        return {}
    file = MemoryFile(sent.name, sent.getvalue())
    digest = hashlib.sha256(file.content).hexdigest()
    try:
        facts = own_facts(file, digest)
        column = facts.columns.text if facts.names else None
        counts = _COUNTS.once((digest, column or "", on), partial(_counted, file, column, on))
    except CoreError as error:
        show_error(error, title="This file cannot be counted")
        return {}
    if column:
        st.caption(f"Read: the column {plain(column)}, whose texts are the longest.")
    return counts


def _counted(file: MemoryFile, column: str | None, on: EncoderSpec) -> dict[int, int]:
    """Count the tokens of an upload.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or holds no token.
    """
    from core.corpora.uploads import read_upload
    from core.defences.deniability.eta_choice import corpus_counts
    from core.encoders.white_box import require_white_box

    rows, _, _ = parsed(read_upload, file, text=column)
    texts = [row.text for row in rows]
    counts = corpus_counts(require_white_box(cache.encoder(on), "counting"), texts)
    if not counts:
        raise InvalidInputError("Its texts hold no token that this encoder knows. Choose another.")
    return counts
