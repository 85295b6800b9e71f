"""Protections that leave the vectors unchanged, such as access control and encryption."""

from __future__ import annotations

import streamlit as st

from leakscope.core.findings.remedies import REMEDIES


def show_remedies() -> None:
    """Draw the protections that leave vectors unchanged: what each stops and does not stop."""
    st.markdown(
        "The first three leave the vectors unchanged, so search works as before. They are not "
        "measured here: they control *who* gets the vectors. The defences above change *what* the "
        "vectors reveal."
    )
    for place, remedy in zip(st.columns(len(REMEDIES), gap="medium"), REMEDIES, strict=True):
        with place:
            st.header(remedy.title, anchor=False)
            st.markdown(
                f"{remedy.what}\n\n**Stops** {remedy.stops}.\n\n**Does not stop** {remedy.leaves}."
            )
