"""The provenance of a page's figures: date, version and machine."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from leakscope.core.findings.prose import plain
from leakscope.core.results.provenance import NOT_RECORDED, Provenance, describe_measured


def show_provenance(found: Sequence[Provenance | None]) -> None:
    """Draw the merged date, version and machine of the given measurements."""
    st.caption(f"These figures were {plain(describe_measured(found, otherwise=NOT_RECORDED))}.")
