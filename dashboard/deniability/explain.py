"""The formulas, the mechanism audit and the caveats of the deniability page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.metric_dp.audit.choices import CHOICES
from leakscope.core.defences.metric_dp.audit.mechanism import ALPHA, Audit, audit, defence_factory
from leakscope.core.defences.metric_dp.audit.untested import list_untested
from leakscope.core.defences.metric_dp.encoder_guarantee import has_d_chi_guarantee
from leakscope.core.defences.metric_dp.guarantee import Guarantees
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_percent


def how_it_is_computed(guarantees: Guarantees, eta: float) -> None:
    """Draw the guarantee and its odds, the mechanism and its audit, and the statistics."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            r"**The guarantee** ($d_\chi$-privacy): near tokens produce any output with almost the "
            "same probability. The nearer two tokens are, the harder they are to distinguish."
        )
        st.latex(r"P[M(x) = y] \le e^{\eta\, d(x, x')}\, P[M(x') = y]")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in guarantees.sentences))
        st.markdown(
            "**The mechanism** adds noise $N$ to the token's vector $x$ and releases the nearest "
            "token. The length of the noise is Gamma-distributed, its direction uniform."
        )
        st.latex(
            r"M'(x) = \arg\min_{w} \lVert \varphi(w) - (\varphi(x) + N) \rVert_2, \qquad "
            r"p(N) \propto e^{-\eta \lVert N \rVert}, \qquad \mathbb E \lVert N \rVert = n / \eta"
        )
        _audit_button(eta)
        st.markdown(
            "**$N_w$** is how many of 1,000 draws return the token itself; **$S_w$** is how many "
            "different tokens the draws return. Both are exact at every η. Each draw scales with "
            "1/η, so the returned token is the lowest of several lines in 1/η. All crossings of "
            "these lines are computed once."
        )
        st.caption("Qu et al. (2021), Eq. 2–4 and §5.3. All tokens share the same draws.")


_AUDITED = tuple(name for name in DEFENCES if has_d_chi_guarantee(name) and name not in CHOICES)
"""The d_χ-private mechanisms of this page."""


@st.cache_data(show_spinner="Auditing the mechanisms …", max_entries=64)
def _audit_mechanisms(eta: float) -> dict[str, Audit]:
    """Audit each mechanism at η, cached; return the audits by name."""
    return {
        name: audit(defence_factory(name, eta), DEFENCES[name].acts_on, eta) for name in _AUDITED
    }


def _audit_button(eta: float) -> None:
    """Draw the button that audits the mechanisms at η, and the result of the audit."""
    is_asked = st.button(
        "Audit the mechanisms",
        key="audit",
        icon=":material/fact_check:",
        help="Draws noise at the η of the slider, on this computer, and tests whether it follows "
        "the formula. This takes a few seconds",
    )
    if is_asked:
        st.session_state["_audited"] = eta
    if st.session_state.get("_audited") == eta:
        st.markdown(_describe_audits(eta))
    st.caption(
        "`leakscope audit-mechanism` tests other random seeds and noise from other processes, too. "
        "`results/audit.md` lists which broken mechanisms the audit catches, and how often."
    )


def _describe_audits(eta: float) -> str:
    """Describe the audits of all mechanisms at η in Markdown."""
    lines = [
        f"- **{DEFENCES[name].title}**: {_verdict(found)}"
        for name, found in _audit_mechanisms(eta).items()
    ]
    return "\n".join(
        [
            f"**Audit of the mechanisms**, run here at η = {eta:g}:\n",
            *lines,
            "\n"
            f"An audit refutes a correct mechanism in {format_percent(ALPHA)} of runs. For "
            "released numbers, it tests the noise's length, direction and independence and the "
            "outputs' grid. For released tokens, it tests their frequencies. It also bounds the "
            "odds for two near inputs.",
            f"\n**Not tested**: {_untested_properties()}",
        ]
    )


def _untested_properties() -> str:
    """Return what the mechanisms' audits do not test, as one paragraph."""
    kinds = dict.fromkeys(DEFENCES[name].acts_on for name in _AUDITED)
    return " ".join(dict.fromkeys(each for kind in kinds for each in list_untested(kind)))


def _verdict(found: Audit) -> str:
    """Describe whether an audit refuted its mechanism."""
    if found.is_refuted:
        return f"refuted by {', '.join(found.refuted_by)}: release nothing until it passes"
    return f"not refuted by {len(found.p_values)} tests of {found.n_draws:,} draws"


def caveats() -> None:
    """Draw the limitations of the deniability page's numbers."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The higher the odds at this η, the less an author's denial of a changed token is "
            "worth. The odds are limits for every attacker, not what a tested attacker reached. "
            "An attacker may also guess the token from the rest of the sentence. The share "
            "of unchanged tokens is what the simplest attacker recovers; others may recover "
            "more.\n"
            "- The guarantee holds per token. It weakens with the length of a text, because "
            "distances add up.\n"
            "- It covers one release. After k releases of the same text, by *Draw again*, in two "
            "columns or in two files, the odds are raised to the power k.\n"
            "- Never release outputs of the same draw at two values of η. They share their noise, "
            "and an attacker may solve for it: no guarantee covers both together.\n"
            "- The number of tokens is visible. White space and line breaks are lost.\n"
            "- The statistics use fixed draws that all tokens share. A release needs new noise "
            "from a cryptographic source, as `leakscope privatize` draws it.\n"
            "- The scale of η depends on the encoder's distances. Do not use a value of one "
            "encoder for another."
        )
