"""The methods and the caveats behind the trade-off figure."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.setting import entry_shown
from leakscope.core.figures.tradeoff import format_attacker
from leakscope.core.findings.prose import plain
from leakscope.core.findings.tradeoff import KEEPS
from leakscope.core.formatting import capitalise
from leakscope.core.studies.tradeoff.summary import Tradeoff
from leakscope.core.studies.tradeoff.tables import (
    describe_attack,
    describe_seeds,
    describe_use,
    notes,
)
from leakscope.dashboard.ui.provenance import show_provenance


def how_it_is_computed(found: Tradeoff) -> None:
    """Draw explanations of how utility and leakage were measured, and of each defence."""
    facts = found.facts
    near = " Test texts may nearly repeat a training text; attacked texts do not."
    near *= "task_near" not in facts
    names = [format_attacker(name) for name in found.attackers]
    attackers = names[0] if len(names) == 1 else f"one of {len(names)}: {', '.join(names)}"
    with st.expander("How this was measured", icon=":material/function:"):
        st.markdown(
            f"- **Utility**: the encoder is frozen; {describe_seeds(found.points)}. "
            f"{describe_use(facts)} Every defence is trained and tested on the same "
            f"texts.{near}\n"
            f"- **Leakage**: what the strongest attacker recovers, {attackers}; "
            f"{describe_attack(facts)}\n"
            "- **Intervals**: 95 % CI of the mean over random seeds, from the greater of the "
            "error within a seed and the spread between seeds.\n"
            f"- **The headline** compares the useful settings. {KEEPS} The headline compares "
            "leakage by the upper end of an interval that is corrected for the number of these "
            "settings (Bonferroni). "
            "Without the correction, the lowest of many upper ends would be too low in 22 of 100 "
            "studies with 10 settings. The strongest attacker of a setting is the one with the "
            "highest upper end.\n"
            "- **The dashed line** is the lowest upper end of leakage at each utility. It uses "
            "each setting's own interval of utility, is corrected for all settings shown, and "
            "covers the tested attackers only. **The band** reaches from this line to the same "
            "line through the better ends. A setting is *not beaten* if no other setting is as "
            "useful and leaks no more, taking the better ends of its own intervals and the worse "
            "ends of the other's. Utility is not corrected for the number of settings.\n"
            "- **Time**: training of the defence itself, and encoder and defence per text; “not "
            "timed” without a measurement.\n"
            "- Dotted lines: the most frequent class, and an attacker who never sees the vector."
            + "".join(f"\n- {plain(note)}" for note in notes(found.points, facts))
        )
        show_provenance(found.provenances)
        for name in dict.fromkeys(point.defence for point in found.points):
            entry = entry_shown(name)
            source = f" ({entry.reference})" if entry.reference else ""
            st.markdown(f"**{entry.title}**{source}. {entry.summary} {capitalise(entry.cost)}.")
            if entry.formula:
                st.latex(entry.formula)


def caveats() -> None:
    """Draw the limitations of the trade-off figure."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A setting that leaks little *to this attacker* may leak more to a better one. A "
            "mechanism guarantees a ratio of odds, not a score.\n"
            "- This study counts words. The Inversion page reconstructs whole sentences; "
            "`--attackers reconstruct` adds that attack to this study.\n"
            "- The encoder is frozen, and a small classifier sorts its vectors. A network trained "
            "on the released texts can regain some utility. The figure includes networks "
            "fine-tuned under noise if they were measured. Networks pretrained under noise "
            "release the same, so only the Training page shows them.\n"
            "- One encoder, English, short texts."
        )
