"""When, by which version and on what machine the figures of a page were measured."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.studies.provenance import Provenance, measured_said
from dashboard.calm import plain

__all__ = ["show_origin"]


def show_origin(found: Sequence[Provenance | None]) -> None:
    """Say it in a line, or that it was not recorded."""
    told = "measured before it was recorded when, by which version and on what machine"
    st.caption(f"These figures were {plain(measured_said(found, otherwise=told))}.")
