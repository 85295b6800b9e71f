"""A defence or a chain of the visitor's own: stages in their order, each with its strength."""

from __future__ import annotations

import typing

import streamlit as st

from core.defences.order import check_order
from core.defences.registry import DEFENCES, all_defences, entry_of
from core.defences.shipped import shipped_names
from core.defences.trained.registry import TRAINED_DEFENCES
from core.errors import InvalidInputError
from core.studies.tradeoff_setting import can_follow, read_setting, setting_name
from dashboard.calm import plain, show_error
from dashboard.inversion.answers import ENCODER
from dashboard.tradeoff import state

__all__ = ["own_setting"]

_START = ("text_to_text", "int8")


def own_setting(side: str) -> str | None:
    """Draw the choice of stages and strengths; return the name of the chain, None for none."""
    state.remember_own(side, None)
    stages = st.multiselect(
        "Stages, in the order in which they act",
        [*shipped_names(ENCODER.name), *(n for n, e in DEFENCES.items() if not e.is_baseline)],
        default=[name for name in _START if name in DEFENCES],
        key=f"own_{side}_stages",
        format_func=_title,
        help="Each acts on what the one before leaves: first what changes texts, then what changes "
        "the vectors of tokens, then what changes the vector of the whole text. What is trained "
        "stands first, and ships at one strength",
    )
    if not stages:
        st.info("Pick a stage.", icon=":material/ads_click:")
        return None
    try:
        check_order(stages)
        entry_of("+".join(stages))
    except InvalidInputError as error:
        show_error(error, title="These cannot stand in this order")
        if not {*stages} & TRAINED_DEFENCES.keys():
            _say_what_can(stages[:-1])
        return None
    typed = {name: value for stage in stages for name, value in _strengths(side, stage)}
    _say_what_can(stages)
    try:
        return _composed(side, stages, typed)
    except InvalidInputError as error:
        show_error(error, title="There is no such setting")
        return None


def _strengths(side: str, stage: str) -> list[tuple[str, str]]:
    """Draw a line for the strength of a stage; return its setting and what was typed."""
    found = []
    for name, strength in all_defences()[stage].strengths.items():
        typed = st.text_input(
            f"{_title(stage)}: {strength.title}",
            value=f"{strength.start:g}",
            key=f"own_{side}_{stage}_{name}",
            help="A number; what is allowed is said where it is not",
        )
        found.append((f"{stage}.{name}", typed))
    return found


def _composed(side: str, stages: list[str], typed: dict[str, str]) -> str:
    """Return the name of a chain, checked.

    Raises
    ------
    InvalidInputError
        A strength is no number, or outside its range.
    """
    settings = {key: _number(key, told) for key, told in typed.items()}
    if len(stages) == 1:
        settings = {key.partition(".")[2]: value for key, value in settings.items()}
    name = setting_name("+".join(stages), settings)
    read_setting(name, "this defence")
    state.remember_own(side, name)
    return name


def _number(key: str, told: str) -> float | int:
    stage, _, name = key.partition(".")
    kind = typing.get_type_hints(all_defences()[stage].kind)[name]
    try:
        found: float | int = kind(told.strip())
    except ValueError as error:
        whole = "a whole number" if kind is int else "a number"
        raise InvalidInputError(
            f"{name} of {_title(stage)} must be {whole}, got {told!r}."
        ) from error
    return found


def _title(name: str) -> str:
    return all_defences()[name].title


def _say_what_can(stages: list[str]) -> None:
    """Say which defences can stand after these."""
    titles = [_title(name) for name in can_follow(stages)]
    after = f"After {', '.join(map(_title, stages))}" if stages else "First"
    told = f"can stand {', '.join(titles)}" if titles else "nothing more can stand"
    st.caption(plain(f"{after} {told}."))
