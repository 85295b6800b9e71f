"""What keeps vectors from attackers without changing them: it stands beside the defences."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

__all__ = ["REMEDIES", "show_remedies"]


@dataclass(frozen=True)
class Remedy:
    """A remedy that is no mathematics: whom it stops, and whom not."""

    title: str
    what: str
    stops: str
    leaves: str


REMEDIES = (
    Remedy(
        "Access",
        "Only the search itself reads the vectors; replies, logs and exports hold none.",
        "the curious colleague, the leaked key of an application that only asks",
        "whoever administers the store, or breaks into it",
    ),
    Remedy(
        "Encryption",
        "Of disks, backups and lines; the key lies elsewhere than the vectors.",
        "who carries off a disk or a backup, who listens on the line",
        "whoever is let in: a running search has to decrypt what it compares",
    ),
    Remedy(
        "Retention",
        "A vector goes when its text goes, from copies and caches too.",
        "every attacker who comes later: what is not kept is not read",
        "copies that were made before",
    ),
    Remedy(
        "Less in the text",
        "Names and numbers that the search does not need go before the text is encoded.",
        "every attacker, of those words: they are not in the vector",
        "what the rest of the sentence tells",
    ),
)


def show_remedies() -> None:
    """Draw them; they cost the search no usefulness, and no score says how much they help."""
    st.markdown(
        "These change no vector, so the search stays as good as it is. None of them is measured "
        "here: they decide *who* gets hold of the numbers, the defences above *what* the numbers "
        "tell."
    )
    for place, remedy in zip(st.columns(len(REMEDIES), gap="medium"), REMEDIES, strict=True):
        with place:
            st.subheader(remedy.title, anchor=False)
            st.markdown(
                f"{remedy.what}\n\n**Stops** {remedy.stops}.\n\n**Does not stop** {remedy.leaves}."
            )
