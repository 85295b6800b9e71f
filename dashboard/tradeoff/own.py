"""The visitor's own defence: a chain of stages, each with its strength."""

from __future__ import annotations

import typing

import streamlit as st

from leakscope.core.defences.registry import DEFENCES, all_defences, check_order, entry_of
from leakscope.core.defences.setting import can_follow, read_setting, setting_name
from leakscope.core.defences.stored import shipped_names
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.prose import plain
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.tradeoff import state
from leakscope.dashboard.ui.errors import show_error

_START = ("text_to_text", "int8")


def own_setting(side: str) -> str | None:
    """Draw the choice of stages and strengths; return the chain's name, None if invalid."""
    state.remember_own(side, None)
    stages = st.multiselect(
        "Stages, in order",
        [*shipped_names(ENCODER.name), *(n for n, e in DEFENCES.items() if not e.is_baseline)],
        default=[name for name in _START if name in DEFENCES],
        key=f"own_{side}_stages",
        format_func=_title,
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
    """Draw an input for each strength of a stage; return the settings' names and typed values."""
    found = []
    for name, strength in all_defences()[stage].strengths.items():
        typed = st.text_input(
            f"{_title(stage)}: {strength.title}",
            value=f"{strength.start:g}",
            key=f"own_{side}_{stage}_{name}",
            help="A number; an error message shows the allowed range",
        )
        found.append((f"{stage}.{name}", typed))
    return found


def _chain_name(side: str, stages: list[str], typed: dict[str, str]) -> str:
    """Check a chain's settings, store the chain's name in the session and return it.

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
    """Parse a typed strength as the setting's type."""
    stage, _, name = key.partition(".")
    kind = typing.get_type_hints(all_defences()[stage].kind)[name]
    try:
        found: float | int = kind(typed.strip())
    except ValueError as error:
        whole = "a whole number" if kind is int else "a number"
        raise InvalidInputError(
            f"{name} of {_title(stage)} must be {whole}, got {typed!r}."
        ) from error
    return found


def _title(name: str) -> str:
    """Return the title of a defence."""
    return all_defences()[name].title


def _show_possible_stages(stages: list[str]) -> None:
    """Draw which defences can follow the given stages."""
    titles = [_title(name) for name in can_follow(stages)]
    after = f"After {', '.join(map(_title, stages))}" if stages else "First"
    possible = f"you can add: {', '.join(titles)}" if titles else "nothing more can be added"
    st.caption(plain(f"{after}, {possible}."))
