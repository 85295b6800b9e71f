"""The controls of the representations page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.corpora import CORPORA as SOURCES
from leakscope.core.figures.representations import encoder_title
from leakscope.core.findings.representations import VIEW_NAMES
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion.classification import VIEWS
from leakscope.core.studies.inversion.prepared import CORPORA, COUNTS
from leakscope.core.studies.inversion.representation_summary import Representations
from leakscope.dashboard.address import Address
from leakscope.dashboard.representations.state import control_value, encoder_options, key_of

_DOMAIN_NAMES = {"in": "In-domain", "cross": "Cross-domain"}


def encoder_picker(found: Representations | None) -> None:
    """Draw the selector of the encoders to compare in the figure and on the sentence."""
    st.multiselect(
        "Encoders",
        encoder_options(found),
        key=key_of("encoder"),
        persist_state="session",
        format_func=encoder_title,
        help="Ways of turning a text into a vector. The choice applies to the figure, the tables "
        "and the sentence below.",
    )


def measure_pickers(found: Representations) -> None:
    """Draw selectors of attacks, domain, classification task and the paper's points."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.pills(
            "Attacks",
            found.attacks,
            selection_mode="multi",
            key=key_of("attack"),
            persist_state="session",
            wrap=True,
            format_func=lambda name: INVERSION_ATTACKS[name].title,
            help="How the attacker recovers words from vectors. The headline uses the strongest "
            "attack on each encoder.",
        )
        st.segmented_control(
            "Fitted on",
            list(DOMAINS),
            key=key_of("domain"),
            required=True,
            persist_state="session",
            format_func=_DOMAIN_NAMES.__getitem__,
            help="The texts that encoders and attacks were fitted on.  \n"
            + "  \n".join(f"{about[:1].upper()}{about[1:]}." for about in DOMAINS.values()),
        )
        st.segmented_control(
            "Sorted by topic",
            list(VIEWS),
            key=key_of("view"),
            required=True,
            persist_state="session",
            format_func=VIEW_NAMES.__getitem__,
            help="The part of a news article that is turned into a vector: its title, its title "
            "and first three sentences, or all of it. Utility is how well a linear classifier "
            "predicts the topic from it.",
        )
        st.toggle(
            "Results of Corò (2022)",
            value=True,
            key=key_of("paper"),
            persist_state="session",
            help="Hollow diamonds: the thesis that this page repeats, on Italian news. Its texts "
            "and classes differ, so compare only the order of the encoders, not the values.",
        )


def describe_replacements(address: Address) -> str:
    """Describe the values that replace the invalid parameters of the URL."""
    return "; ".join(
        _describe_value(name) for name in dict.fromkeys(name for name, _ in address.refused)
    )


def _describe_value(name: str) -> str:
    """Describe the current value of a named control in words."""
    value = control_value(name)
    describe = {
        "encoder": lambda: ", ".join(map(encoder_title, value)) or "no encoder",
        "attack": lambda: ", ".join(INVERSION_ATTACKS[a].title for a in value) or "no attack",
        "domain": lambda: _DOMAIN_NAMES[value].lower(),
        "view": lambda: VIEW_NAMES[value],
        "corpus": lambda: SOURCES[value].title,
        "n": lambda: f"{value:,} sentences",
    }
    return describe[name]()


def try_pickers() -> None:
    """Draw selectors of the corpus and the number of sentences to fit encoders on."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Fit on",
            CORPORA,
            key=key_of("corpus"),
            persist_state="session",
            format_func=lambda name: SOURCES[name].title,
            help="A bundled collection. The words that the attack can name come from it, too.",
            width=220,
        )
        st.selectbox(
            "Sentences",
            COUNTS,
            key=key_of("n"),
            persist_state="session",
            format_func=lambda n: f"{n:,}",
            help="Drawn at random with seed 0. More sentences take longer to fit, and the "
            "attack can name more words.",
            width=130,
        )
