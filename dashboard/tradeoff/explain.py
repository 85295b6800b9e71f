"""On what the figure of trade-offs rests, and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.figures.tradeoff import attacker_said
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_summary import Tradeoff, attack_said, use_said
from core.studies.tradeoff_tables import notes, seeds_said
from core.studies.tradeoff_told import KEEPS
from dashboard.calm import plain
from dashboard.origin import show_origin

__all__ = ["caveats", "how_it_is_computed"]


def _stay_in(facts: Mapping[str, Any]) -> str:
    """Return what becomes of test texts that repeat training texts, where `use_said` does not."""
    if "task_near" in facts:
        return ""
    return " Test texts that nearly repeat a training text stay in, unlike those under attack."


def how_it_is_computed(found: Tradeoff) -> None:
    """Draw on what the figure rests."""
    facts = found.facts
    with st.expander("How this was measured", icon=":material/function:"):
        st.markdown(
            f"- **Useful**: the encoder stays as it is, under {seeds_said(found.points)}. "
            f"{use_said(facts)} Every defence is trained and tested on the same texts."
            f"{_stay_in(facts)}\n"
            f"- **Leaks**: what the strongest attacker reads, {_named(found)}; "
            f"{attack_said(facts)}\n"
            "- **Intervals**: 95 %, of the mean over seeds: the greater of the error within a seed "
            "and the spread between seeds.\n"
            f"- **The headline** counts a setting as useful where {KEEPS}; and leakage by the "
            "upper end of an interval corrected for the number of settings that "
            "keep enough (Bonferroni): the least of many upper ends would otherwise be too low, "
            "in 22 of 100 studies with 10 settings. The strongest attacker of a setting is the one "
            "with the highest upper end.\n"
            "- **The dashed line** is the least upper end of leakage at each usefulness, by each "
            "setting's own interval of usefulness, and corrected for all settings shown. It is of "
            "the attackers that were tried. **The band** "
            "reaches from there to the steps through the better ends. A setting is *not beaten* "
            "where no other, at the worse ends of its intervals, is as useful as it at the better "
            "ends and leaks no more. Usefulness is not corrected for the number of settings.\n"
            "- **Time**: training of the defence itself, and encoder and defence for a text; "
            "“not timed” where it was not.\n"
            "- Dotted: the most frequent class, and an attacker who never sees the vector."
            + "".join(f"\n- {plain(note)}" for note in notes(found.points, facts))
        )
        show_origin(found.provenances)
        for name in dict.fromkeys(point.defence for point in found.points):
            entry = entry_shown(name)
            source = f" ({entry.reference})" if entry.reference else ""
            st.markdown(f"**{entry.title}**{source}. {entry.summary} How it is used: {entry.cost}.")
            if entry.formula:
                st.latex(entry.formula)


def _named(found: Tradeoff) -> str:
    """Return the attackers in words."""
    names = [attacker_said(name) for name in found.attackers]
    return names[0] if len(names) == 1 else f"of {len(names)}: {', '.join(names)}"


def caveats() -> None:
    """Draw what the figure does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A point that leaks little *to this attacker* may leak more to a better one. What a "
            "mechanism promises is a ratio of odds, not a score.\n"
            "- Words are counted here. Who writes whole sentences is on the page of inversion, "
            "and comes to this study where it is named (`--attackers reconstruct`).\n"
            "- The encoder is frozen, and what sorts its vectors a small classifier. A network "
            "that is trained on what is released can win some usefulness back. Networks fine-tuned "
            "under noise are points where they were measured; those that were pretrained under "
            "noise are seen on the page of training alone, since they "
            "release the same.\n"
            "- One encoder, English, short texts."
        )
