"""The controls of the page of representations."""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.corpora import CORPORA as SOURCES
from core.figures.representations import encoder_title
from core.studies.classification import VIEWS
from core.studies.domains import DOMAINS
from core.studies.prepared import CORPORA, COUNTS
from core.studies.representation_summary import Representations
from dashboard.address import Address
from dashboard.representations.state import chosen, encoder_options, key_of

__all__ = [
    "VIEW_NAMES",
    "encoder_picker",
    "measure_pickers",
    "standing",
    "try_pickers",
]

VIEW_NAMES = dict(zip(VIEWS, ("titles", "first sentences", "whole texts"), strict=True))
_DOMAIN_NAMES = {"in": "In-domain", "cross": "Cross-domain"}


def encoder_picker(found: Representations | None) -> None:
    """Draw the choice of the encoders, for the figure and for the sentence below."""
    st.multiselect(
        "Encoders",
        encoder_options(found),
        key=key_of("encoder"),
        persist_state="session",
        format_func=encoder_title,
        help="Ways of turning a text into a vector. The choice is for the figure, the tables and "
        "the sentence at the end of the page.",
    )


def measure_pickers(found: Representations) -> None:
    """Draw what the figure is about: attacks, whose texts the attacker has, and the use."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.pills(
            "Attacks",
            found.attacks,
            selection_mode="multi",
            key=key_of("attack"),
            persist_state="session",
            wrap=True,
            format_func=lambda name: INVERSION_ATTACKS[name].title,
            help="How the attacker turns vectors back into words. The sentence at the top goes by "
            "the one that reads most from each encoder.",
        )
        st.segmented_control(
            "Fitted on",
            list(DOMAINS),
            key=key_of("domain"),
            required=True,
            persist_state="session",
            format_func=_DOMAIN_NAMES.__getitem__,
            help="What encoders and attacks were fitted on.  \n"
            + "  \n".join(f"{about[:1].upper()}{about[1:]}." for about in DOMAINS.values()),
        )
        st.segmented_control(
            "Useful for sorting",
            list(VIEWS),
            key=key_of("view"),
            required=True,
            persist_state="session",
            format_func=VIEW_NAMES.__getitem__,
            help="What of a news article is turned into a vector, from which a linear classifier "
            "tells the topic: its title, title and first three sentences, or all of it",
        )
        st.toggle(
            "Figures of Corò (2022)",
            value=True,
            key=key_of("paper"),
            persist_state="session",
            help="Hollow diamonds: what the thesis that this page repeats measured on Italian "
            "news. Other texts, other classes: compare the order, not the places.",
        )


def standing(address: Address) -> str:
    """Return what the controls stand at for which the address asked for something else."""
    return "; ".join(_stands(name) for name in dict.fromkeys(name for name, _ in address.refused))


def _stands(name: str) -> str:
    value = chosen(name)
    told = {
        "encoder": lambda: ", ".join(map(encoder_title, value)) or "no encoder",
        "attack": lambda: ", ".join(INVERSION_ATTACKS[a].title for a in value) or "no attack",
        "domain": lambda: _DOMAIN_NAMES[value].lower(),
        "view": lambda: VIEW_NAMES[value],
        "corpus": lambda: SOURCES[value].title,
        "n": lambda: f"{value:,} sentences",
    }
    return told[name]()


def try_pickers() -> None:
    """Draw the choice of what the encoders are fitted on."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Fit on",
            CORPORA,
            key=key_of("corpus"),
            persist_state="session",
            format_func=lambda name: SOURCES[name].title,
            help="A collection that comes with Leakscope; the attack takes its words from it, too",
            width=220,
        )
        st.selectbox(
            "Sentences",
            COUNTS,
            key=key_of("n"),
            persist_state="session",
            format_func=lambda n: f"{n:,}",
            help="Drawn at random, seed 0. More take longer to fit on, and give more words that "
            "can be found.",
            width=130,
        )
