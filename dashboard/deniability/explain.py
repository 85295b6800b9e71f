"""The formulas behind the deniability page, and what its numbers do not say."""

from __future__ import annotations

import streamlit as st

from core.defences.metric_dp.audit.choices import CHOICES
from core.defences.metric_dp.audit.mechanism import ALPHA, Audit, audit, shipped
from core.defences.metric_dp.audit.untested import untested_of
from core.defences.metric_dp.promise import Promises
from core.defences.metric_dp.promised import is_promising
from core.defences.registry import DEFENCES
from core.said import percent_said
from dashboard.calm import plain

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(promises: Promises, eta: float) -> None:
    """Draw the guarantee with its number, the mechanism with its audit, and the statistics."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            r"**The promise** ($d_\chi$-privacy): whatever is released, two tokens that are near "
            "each other explain it almost equally well. The nearer, the better they hide."
        )
        st.latex(r"P[M(x) = y] \le e^{\eta\, d(x, x')}\, P[M(x') = y]")
        st.markdown("\n".join(f"- {plain(told)}" for told in promises.sentences))
        st.markdown(
            "**The mechanism**: the token's vector $x$ is moved by noise $N$ whose length is "
            "Gamma-distributed and whose direction is uniform; the token nearest to where it lands "
            "is released."
        )
        st.latex(
            r"M'(x) = \arg\min_{w} \lVert \varphi(w) - (\varphi(x) + N) \rVert_2, \qquad "
            r"p(N) \propto e^{-\eta \lVert N \rVert}, \qquad \mathbb E \lVert N \rVert = n / \eta"
        )
        _audit_button(eta)
        st.markdown(
            "**$N_w$** counts, of 1,000 draws, those that return the token itself, **$S_w$** the "
            "different tokens returned. Both are exact at every η: each draw scales with 1/η, "
            "so the token that it returns is the lowest of lines in 1/η, and all crossings of "
            "these lines are found once."
        )
        st.caption("Qu et al. (2021), Eq. 2–4 and §5.3. The draws are shared by all tokens.")


_AUDITED = tuple(name for name in DEFENCES if is_promising(name) and name not in CHOICES)
"""The mechanisms of d_χ-privacy that this page is about."""


@st.cache_data(show_spinner="Auditing the mechanisms …", max_entries=64)
def _audits_at(eta: float) -> dict[str, Audit]:
    return {name: audit(shipped(name, eta), DEFENCES[name].acts_on, eta) for name in _AUDITED}


def _audit_button(eta: float) -> None:
    """Draw the button that audits the mechanisms at η, and what that found."""
    is_asked = st.button(
        "Audit the mechanisms",
        key="audit",
        icon=":material/fact_check:",
        help="Draws noise and tests whether it is what the formula says, on this computer, at "
        "the η of the slider; a few seconds",
    )
    if is_asked:
        st.session_state["_audited"] = eta
    if st.session_state.get("_audited") == eta:
        st.markdown(_audited(eta))
    st.caption(
        "`python -m core audit-mechanism` takes other seeds, and the noise of other processes too; "
        "`docs/results/audit.md` says which broken mechanisms the audit catches, and "
        "how often."
    )


def _audited(eta: float) -> str:
    """Return what an audit of each mechanism, as it runs on this page's computer, found."""
    lines = [
        f"- **{DEFENCES[name].title}**: {_verdict(found)}"
        for name, found in _audits_at(eta).items()
    ]
    return "\n".join([
        f"**Their audit**, run here at η = {eta:g}:\n",
        *lines,
        f"\nA true mechanism is refuted in {percent_said(ALPHA)} of audits. Where numbers are "
        "released, the noise's length, direction and independence are compared with the law, and "
        "the outputs' grid is tested; where tokens come out, their frequencies are. The promise is "
        "bounded for two near inputs.",
        f"\n**Not tested**: {_not_tested()}",
    ])  # fmt: skip


def _not_tested() -> str:
    """Return what the audits of all mechanisms of this page leave out, as one paragraph."""
    kinds = dict.fromkeys(DEFENCES[name].acts_on for name in _AUDITED)
    return " ".join(dict.fromkeys(each for kind in kinds for each in untested_of(kind)))


def _verdict(found: Audit) -> str:
    if found.is_refuted:
        return f"refuted by {', '.join(found.refuted_by)}: release nothing until it passes"
    return f"not refuted by {len(found.p_values)} tests of {found.n_draws:,} draws"


def caveats() -> None:
    """Draw what the numbers of the page do not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A token that changed is not gone: it can be denied only against the odds that η "
            "promises, and an attacker who reads the sentence "
            "around it may guess it back. The share of unchanged tokens is what the simplest "
            "attacker gets, not the most that any attacker could.\n"
            "- The promise is per token and weakens with the length of a text: distances add up.\n"
            "- It covers one release. After k releases of the same text, by *Draw again*, in two "
            "columns or in two files, the odds are to the power k.\n"
            "- Outputs of one draw at two η must not both be released. They share their noise, "
            "which may be solved for: no guarantee covers the two together.\n"
            "- The number of tokens shows. So do white space and line breaks, which are lost.\n"
            "- Statistics use fixed draws that all tokens share; what is released must be drawn "
            "anew from a cryptographic source, as `python -m core privatize` does.\n"
            "- η has no scale of its own: it depends on the encoder's distances. Do not carry a "
            "value from one encoder to another."
        )
