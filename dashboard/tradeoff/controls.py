"""The controls of the page of trade-offs: task, what is read, share to keep, the two settings."""

from __future__ import annotations

import streamlit as st

from core.specs import DefenceSpec
from core.studies.tradeoff_choice import reads_of, untimed
from core.studies.tradeoff_files import tradeoff_of
from core.studies.tradeoff_setting import entry_shown, read_setting
from core.studies.tradeoff_summary import Tradeoff, strength
from core.studies.tradeoff_told import KEEPS, point_said
from core.tasks.names import USES, task_said
from dashboard.own_study import own_study
from dashboard.tradeoff import state

__all__ = [
    "READ_TITLES",
    "own_rows",
    "limit_picker",
    "reads_picker",
    "setting_picker",
    "setting_said",
    "share_picker",
    "spec_of",
    "task_picker",
    "use_picker",
]

READ_TITLES = {"words": "Words", "attribute": "An attribute", "membership": "Membership"}
"""What attackers are after, as one picks it."""

_ABOUT = {
    "words": "Words: which words stand in a text.",
    "attribute": "An attribute: a fact about the text or its author that it does not name, such "
    "as who wrote it.",
    "membership": "Membership: whether a text was among those that a model was trained on.",
}


def own_rows() -> Tradeoff | None:
    """Draw what takes the rows of a study of the visitor's own; return them, None for none."""
    with st.popover(
        "Your own study",
        icon=":material/upload_file:",
        help="Rows that you measured, with your encoder or your texts",
    ):
        return own_study(
            "own-tradeoff",
            "The JSON that `python -m core study tradeoff --out FILE` wrote.",
            lambda files: tradeoff_of(files[-1], "The file"),
        )


def use_picker(found: Tradeoff) -> str:
    """Draw the choice of what the vectors are for, and return it; the only one there is as is."""
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
            "texts into classes. Similarity: judging how alike two sentences are. The board's "
            "story on the page Story is about the same use",
        )
    )


def task_picker(found: Tradeoff, use: str) -> str:
    """Draw the choice of a task of this use and return it."""
    return str(
        st.pills(
            "Measured on",
            found.tasks_of(use),
            key=state.TASK_KEY,
            format_func=task_said,
            required=True,
            persist_state="session",
            help="The texts that usefulness was measured on",
        )
    )


def reads_picker(found: Tradeoff) -> str:
    """Draw the choice of what the attacker is after, where there is one, and return it."""
    kinds = reads_of(found)
    if len(kinds) == 1:
        return kinds[0]
    return str(
        st.segmented_control(
            "What the attacker is after",
            kinds,
            key=state.READS_KEY,
            format_func=READ_TITLES.__getitem__,
            required=True,
            persist_state="session",
            help="  \n".join(_ABOUT[what] for what in kinds),
        )
    )


def share_picker() -> float:
    """Draw the choice of how much usefulness is to be kept, and return it as a share."""
    return (
        int(
            st.slider(
                "Usefulness to keep",
                state.SHARES[0],
                state.SHARES[-1],
                key=state.SHARE_KEY,
                format="%d %%",
                persist_state="session",
                help="Of the way from guessing to no defence. A setting counts as keeping it where "
                f"{KEEPS}",
            )
        )
        / 100
    )


def limit_picker(found: Tradeoff) -> float | None:
    """Draw the choice of how long a text may take, and return it; None for no limit."""
    if len(untimed(found)) == len(found.points):
        return None  # of none it is known
    chosen = st.select_slider(
        "A text takes at most",
        state.LIMITS,
        key=state.LIMIT_KEY,
        format_func=lambda limit: "any time" if limit == state.NO_LIMIT else f"{limit} ms",
        persist_state="session",
        help="Encoder and defence together, on the machine that measured it. Slower settings are "
        "left out of headline, figure and tables; those that were not timed stay, and are marked",
    )
    return None if chosen == state.NO_LIMIT else float(chosen)


_LABELS = {"A": "A: this defence", "B": "B: against this one"}
_HELP = {
    "A": "The same as clicking a point in the figure; what the headline speaks of until you pick "
    "another",
    "B": "What A is held against; no defence until you pick one",
}


def setting_picker(found: Tradeoff, side: str) -> str:
    """Draw the choice of the setting of a side; return its name, or OWN."""
    key = state.SIDES[side]
    names = [state.name_of(point) for point in found.points]
    here = st.session_state.get(key)
    unmeasured = [] if here in (*names, state.OWN, None) else [str(here)]
    chosen = st.selectbox(
        _LABELS[side],
        [state.OWN, *names, *unmeasured],
        key=key,
        format_func=lambda name: _option_said(found, name),
        on_change=state.pick if side == "A" else None,
        help=_HELP[side],
    )
    if side == "A" and state.has_picked():
        st.button(
            "Show the headline's again",
            on_click=state.forget_pick,
            key="forget_pick",
            help="Lets A follow the headline",
        )
    return str(chosen)


def _option_said(found: Tradeoff, name: str) -> str:
    if name == state.OWN:
        return "One of your own, or a chain"
    place = state.place_of(found, name)
    return (
        f"{setting_said(name)}, not measured" if place is None else point_said(found.points[place])
    )


def setting_said(name: str) -> str:
    """Return a setting in words, by its name."""
    spec = read_setting(name)
    title, label = entry_shown(spec.name).title, strength(spec.name, dict(spec.settings))
    return f"{title}, {label}" if label else title


def spec_of(found: Tradeoff, name: str) -> DefenceSpec:
    """Return the defence of a name, be it measured or not."""
    place = state.place_of(found, name)
    if place is None:
        return read_setting(name)
    point = found.points[place]
    return DefenceSpec.of(point.defence, dict(point.settings))
