"""What keeps vectors from attackers without changing them: it stands beside the defences."""

from __future__ import annotations

import streamlit as st

from core.story.remedies import REMEDIES

__all__ = ["show_remedies"]


def show_remedies() -> None:
    """Draw them; they cost the search no usefulness, and no score says how much they help."""
    st.markdown(
        "The first three change no vector, so the search stays as good as it is. None of them is "
        "measured here: they decide *who* gets hold of the numbers, the defences above *what* the "
        "numbers tell."
    )
    for place, remedy in zip(st.columns(len(REMEDIES), gap="medium"), REMEDIES, strict=True):
        with place:
            st.subheader(remedy.title, anchor=False)
            st.markdown(
                f"{remedy.what}\n\n**Stops** {remedy.stops}.\n\n**Does not stop** {remedy.leaves}."
            )
