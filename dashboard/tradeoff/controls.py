"""The controls of the trade-off page: task, attack, utility, two settings, and an own defence."""

from __future__ import annotations

import typing

import streamlit as st

from leakscope.core.defences.registry import DEFENCES, all_defences, check_order, entry_of
from leakscope.core.defences.setting import (
    can_follow,
    entry_shown,
    read_setting,
    setting_name,
    strength,
)
from leakscope.core.defences.stored import shipped_names
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.prose import plain
from leakscope.core.findings.tradeoff import KEEPS, describe_point
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.tradeoff.choice import attacked_targets, untimed
from leakscope.core.studies.tradeoff.summary import Tradeoff, parse_tradeoff
from leakscope.core.tasks.names import USES, describe_task
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.own_study import upload_study
from leakscope.dashboard.tradeoff import state
from leakscope.dashboard.ui.errors import show_error

READ_TITLES = {"words": "Words", "attribute": "An attribute", "membership": "Membership"}
"""The attackers' targets, as the menu names them."""

_ABOUT = {
    "words": "Words: which words a text contains.",
    "attribute": "An attribute: a fact about the text or its author that the text does not state, "
    "such as who wrote it.",
    "membership": "Membership: whether a text was among those that a model was trained on.",
}


def upload_tradeoff() -> Tradeoff | None:
    """Draw the upload of the visitor's own study; return its results, or None without a file."""
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
    """Draw the selector of what the vectors are used for; return the selected use."""
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
    """Draw the selector of a task of the use; return the task's name."""
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
    """Draw the selector of what the attacker seeks: words, attribute or membership; return it."""
    kinds = attacked_targets(found)
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
    """Draw the slider of the utility to keep; return it as a share from 0 to 1."""
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
    """Draw the selector of the most milliseconds per text; return it, or None for no limit."""
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
    """Draw the selector of a side's defence setting; return its name, or OWN."""
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
    """Return the menu's text for a named setting: its title, strength, and if not measured."""
    if name == state.OWN:
        return "Your own defence or chain"
    place = state.point_index(found, name)
    return (
        f"{describe_setting(name)}, not measured"
        if place is None
        else describe_point(found.points[place])
    )


def describe_setting(name: str) -> str:
    """Return the defence's title and the strength of a named setting."""
    spec = read_setting(name)
    title, label = entry_shown(spec.name).title, strength(spec.name, dict(spec.settings))
    return f"{title}, {label}" if label else title


def spec_of(found: Tradeoff, name: str) -> DefenceSpec:
    """Return the defence spec of a named setting, measured or not."""
    place = state.point_index(found, name)
    if place is None:
        return read_setting(name)
    point = found.points[place]
    return DefenceSpec.of(point.defence, dict(point.settings))


_START = ("text_to_text", "int8")


def own_setting(side: str) -> str | None:
    """Draw inputs of a chain's stages and strengths; return the chain's name, None if invalid."""
    state.remember_own(side, None)
    stages = st.multiselect(
        "Stages, in order",
        [*shipped_names(ENCODER.name), *(n for n, e in DEFENCES.items() if not e.is_baseline)],
        default=[name for name in _START if name in DEFENCES],
        key=f"own_{side}_stages",
        format_func=_defence_title,
        help="Each stage acts on the output of the previous one: first stages for texts, then for "
        "token vectors, then for the vector of the whole text. A trained stage comes first, and "
        "ships at one strength",
    )
    if not stages:
        st.info("Choose a stage.", icon=":material/ads_click:")
        return None
    try:
        check_order(stages)
        entry_of("+".join(stages))
    except InvalidInputError as error:
        show_error(error, title="These stages cannot be combined in this order")
        if not {*stages} & TRAINED_DEFENCES.keys():
            _show_possible_stages(stages[:-1])
        return None
    typed = {name: value for stage in stages for name, value in _strength_inputs(side, stage)}
    _show_possible_stages(stages)
    try:
        return _chain_name(side, stages, typed)
    except InvalidInputError as error:
        show_error(error, title="This setting does not exist")
        return None


def _strength_inputs(side: str, stage: str) -> list[tuple[str, str]]:
    """Draw an input for each strength of a stage; return (setting's name, typed text) pairs."""
    found = []
    for name, setting in all_defences()[stage].strengths.items():
        typed = st.text_input(
            f"{_defence_title(stage)}: {setting.title}",
            value=f"{setting.start:g}",
            key=f"own_{side}_{stage}_{name}",
            help="A number; an error message shows the allowed range",
        )
        found.append((f"{stage}.{name}", typed))
    return found


def _chain_name(side: str, stages: list[str], typed: dict[str, str]) -> str:
    """Check a chain's typed strengths; store the chain's name for the side, and return it.

    Raises
    ------
    InvalidInputError
        A strength is not a number, or outside its range.
    """
    settings = {key: _parse_strength(key, text) for key, text in typed.items()}
    if len(stages) == 1:
        settings = {key.partition(".")[2]: value for key, value in settings.items()}
    name = setting_name("+".join(stages), settings)
    read_setting(name, "this defence")
    state.remember_own(side, name)
    return name


def _parse_strength(key: str, typed: str) -> float | int:
    """Convert a typed strength to the number type of the setting `stage.name`."""
    stage, _, name = key.partition(".")
    kind = typing.get_type_hints(all_defences()[stage].kind)[name]
    try:
        found: float | int = kind(typed.strip())
    except ValueError as error:
        whole = "a whole number" if kind is int else "a number"
        raise InvalidInputError(
            f"{name} of {_defence_title(stage)} must be {whole}, got {typed!r}."
        ) from error
    return found


def _defence_title(name: str) -> str:
    """Return the title of a named defence."""
    return all_defences()[name].title


def _show_possible_stages(stages: list[str]) -> None:
    """Draw which defences can follow the given stages of a chain."""
    titles = [_defence_title(name) for name in can_follow(stages)]
    after = f"After {', '.join(map(_defence_title, stages))}" if stages else "First"
    possible = f"you can add: {', '.join(titles)}" if titles else "nothing more can be added"
    st.caption(plain(f"{after}, {possible}."))
