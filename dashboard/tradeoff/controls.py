"""The controls of the trade-off page: use, task, attack, utility to keep, and two settings."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.setting import entry_shown, read_setting, strength
from leakscope.core.findings.tradeoff import KEEPS, describe_point
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.tradeoff.choice import reads_of, untimed
from leakscope.core.studies.tradeoff.summary import Tradeoff, parse_tradeoff
from leakscope.core.tasks.names import USES, describe_task
from leakscope.dashboard.own_study import upload_study
from leakscope.dashboard.tradeoff import state

READ_TITLES = {"words": "Words", "attribute": "An attribute", "membership": "Membership"}
"""The attackers' targets, as the menu names them."""

_ABOUT = {
    "words": "Words: which words a text contains.",
    "attribute": "An attribute: a fact about the text or its author that the text does not state, "
    "such as who wrote it.",
    "membership": "Membership: whether a text was among those that a model was trained on.",
}


def upload_tradeoff() -> Tradeoff | None:
    """Draw the upload of the visitor's own study; return its results, None without a file."""
    with st.popover(
        "Your own study",
        icon=":material/upload_file:",
        help="Results that you measured, with your encoder or your texts",
    ):
        return upload_study(
            "own-tradeoff",
            "The JSON file written by `leakscope study tradeoff --out FILE`.",
            lambda files: parse_tradeoff(files[-1], "The file"),
        )


def use_picker(found: Tradeoff) -> str:
    """Draw the choice of what the vectors are used for, and return it."""
    if len(found.uses) == 1:
        return found.uses[0]
    return str(
        st.segmented_control(
            "What are the vectors for?",
            found.uses,
            key=state.USE_KEY,
            format_func=USES.__getitem__,
            required=True,
            persist_state="session",
            help="Search: finding the stored text that answers a query. Classification: sorting "
            "texts into classes. Similarity: judging how similar two sentences are. The board's "
            "story on the Story page covers the same use",
        )
    )


def task_picker(found: Tradeoff, use: str) -> str:
    """Draw the choice of the use's task, and return it."""
    return str(
        st.pills(
            "Measured on",
            found.tasks_of(use),
            key=state.TASK_KEY,
            format_func=describe_task,
            required=True,
            persist_state="session",
            help="The texts on which utility was measured",
        )
    )


def reads_picker(found: Tradeoff) -> str:
    """Draw the choice of the attacker's target (words, attribute, membership), and return it."""
    kinds = reads_of(found)
    if len(kinds) == 1:
        return kinds[0]
    return str(
        st.segmented_control(
            "What does the attacker want?",
            kinds,
            key=state.READS_KEY,
            format_func=READ_TITLES.__getitem__,
            required=True,
            persist_state="session",
            help="  \n".join(_ABOUT[what] for what in kinds),
        )
    )


def share_picker() -> float:
    """Draw the slider of the utility to keep, and return it as a share."""
    return (
        int(
            st.slider(
                "Utility to keep",
                state.SHARES[0],
                state.SHARES[-1],
                key=state.SHARE_KEY,
                format="%d %%",
                persist_state="session",
                help=f"Share of the advantage over guessing. {KEEPS}",
            )
        )
        / 100
    )


def limit_picker(found: Tradeoff) -> float | None:
    """Draw the choice of the most milliseconds per text, and return it; None for no limit."""
    if len(untimed(found)) == len(found.points):
        return None  # no point was timed
    chosen = st.select_slider(
        "Most time per text",
        state.LIMITS,
        key=state.LIMIT_KEY,
        format_func=lambda limit: "no limit" if limit == state.NO_LIMIT else f"{limit} ms",
        persist_state="session",
        help="Encoder and defence together, on the machine of the measurement. Slower settings "
        "are left out of headline, figure and tables. Settings that were not timed stay, and are "
        "marked",
    )
    return None if chosen == state.NO_LIMIT else float(chosen)


_LABELS = {"A": "A: this defence", "B": "B: compared with"}
_HELP = {
    "A": "Choose a setting here or click a point in the figure. It follows the headline until you "
    "choose another",
    "B": "The setting that A is compared with; no defence until you choose one",
}


def setting_picker(found: Tradeoff, side: str) -> str:
    """Draw the choice of a side's setting; return its name, or OWN."""
    key = state.SIDES[side]
    names = [state.setting_name_of(point) for point in found.points]
    here = st.session_state.get(key)
    unmeasured = [] if here in (*names, state.OWN, None) else [str(here)]
    chosen = st.selectbox(
        _LABELS[side],
        [state.OWN, *names, *unmeasured],
        key=key,
        format_func=lambda name: _describe_option(found, name),
        on_change=state.mark_picked if side == "A" else None,
        help=_HELP[side],
    )
    if side == "A" and state.has_picked():
        st.button(
            "Follow the headline",
            on_click=state.forget_pick,
            key="forget_pick",
            help="Sets A to the headline's setting",
        )
    return str(chosen)


def _describe_option(found: Tradeoff, name: str) -> str:
    """Describe a setting as an option of the menu."""
    if name == state.OWN:
        return "Your own defence or chain"
    place = state.point_index(found, name)
    return (
        f"{describe_setting(name)}, not measured"
        if place is None
        else describe_point(found.points[place])
    )


def describe_setting(name: str) -> str:
    """Describe a setting by its defence's title and its strength."""
    spec = read_setting(name)
    title, label = entry_shown(spec.name).title, strength(spec.name, dict(spec.settings))
    return f"{title}, {label}" if label else title


def spec_of(found: Tradeoff, name: str) -> DefenceSpec:
    """Return the defence spec of a setting's name, measured or not."""
    place = state.point_index(found, name)
    if place is None:
        return read_setting(name)
    point = found.points[place]
    return DefenceSpec.of(point.defence, dict(point.settings))
