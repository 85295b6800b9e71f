"""Strategies for defence chains: valid, invalid and damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from leakscope.core.defences.registry import DEFENCES, all_defences
from leakscope.core.specs import settings_of
from tools.fuzz.damage import WORDS
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case

RIGHT = (
    "int8",
    "gaussian:sigma=0.1+int8",
    "text_to_text:eta=60+int8",
    "santext:epsilon=9+rounding:decimals=2",
    "custext:epsilon=4,k=8+token_representation:eta=1e3+truncation:dimension=4",
    "tem:epsilon=12+text_to_text:eta=90+gaussian:sigma=0.2+binary",
)
"""Chains that nothing is wrong with."""

_NUMBERS = ("0.1", "1", "2", "8", "60", "1e3", "0", "-1", "nan", "inf", "1e308", "1e-320")
_JOINTS = ("+", "+", "+", "+", "+", "++", "+ ", " ", ",", "")

_OPTIONS: Mapping[str, str] = {
    "invert": "--defence",
    "evaluate": "--defence",
    "attributes": "--defence",
    "train": "--defence",
    "list": "--defence",
    "privatize": "--mechanism",
    "study tradeoff": "--defences",
}
"""Each command that takes a chain, and by what."""


@st.composite
def defence_chains(draw: Callable[..., Any]) -> str:
    """Draw a chain of one to four stages, some of them no defence, with settings."""
    known = all_defences()
    by_name, others = sorted(DEFENCES), sorted(known.keys() - DEFENCES.keys())
    names = st.one_of(
        st.sampled_from(by_name),
        st.sampled_from(by_name),
        st.sampled_from(others),
        st.sampled_from(WORDS),
    )
    told = ""
    for i in range(draw(st.integers(1, 4))):
        name = draw(names)
        kind = known[name].kind if name in known else None
        told += (draw(st.sampled_from(_JOINTS)) if i else "") + name + draw(_settings(kind))
    return told


@st.composite
def _settings(draw: Callable[..., Any], kind: type[Any] | None) -> str:
    """Draw settings of a defence, mostly its own."""
    if draw(st.integers(0, 2)) == 0:
        return ""
    own = sorted(settings_of(kind)) if kind is not None else []
    value = st.one_of(
        st.sampled_from(_NUMBERS),
        st.sampled_from(_NUMBERS),
        st.sampled_from(WORDS),
        st.floats().map(str),
    )
    name = st.sampled_from([*own, *own, "seed", "eta", ""])
    pairs = draw(st.lists(st.tuples(name, st.sampled_from("===:"), value), min_size=1, max_size=2))
    return ":" + ",".join("".join(pair) for pair in pairs)


@st.composite
def chains(draw: Callable[..., Any], kit: Kit, lines: Mapping[str, list[str]]) -> Case:
    """Draw a case: a command with a valid or random defence chain.

    Parameters
    ----------
    lines : mapping
        A right line of each command.
    """
    command = draw(st.sampled_from(sorted(_OPTIONS)))
    is_right = draw(st.integers(0, 3)) == 0
    told = draw(st.sampled_from(RIGHT)) if is_right else draw(defence_chains())
    line = lines[command]
    if command == "privatize":  # its own option for the noise stands aside
        line = [word for word in line if word not in ("--eta", "20")]
        is_right = False  # what releases no text is refused
    words = (*line, f"{_OPTIONS[command]}={told}")
    return Case("chain of defences", words, files=kit.files, is_whole=is_right)
