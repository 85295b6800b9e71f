"""The visitor's choices and cached experiments on the names page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.names.experiment import NameExperiment

SENTENCES_KEY = "names_sentences"
NAMES_KEY = "names_names"
ATTACK_KEY = "names_attack"
ROW_KEY = "names_row"
COLUMN_KEY = "names_column"
PROBED_KEY = "names_probed"
_ROUND = str.maketrans("[]", "()")
"""Square brackets mark a name on this page; elsewhere they are part of the text."""
_EXPERIMENTS: SessionCache[NamesRequest, NameExperiment] = SessionCache("_name_experiments", 6)
experiment_of = _EXPERIMENTS.get
remember_experiment = _EXPERIMENTS.add


@dataclass(frozen=True, kw_only=True)
class NamesRequest:
    """The request of an experiment: the typed sentences and names, and the attack."""

    sentences: str
    names: str
    attack: str


def address(defaults: NamesRequest, attacks: Sequence[str]) -> Address:
    """Build the page's address parameters: `?text=…&names=…&attack=msp`.

    Line breaks (`%0A`) separate sentences, and names.
    """
    return Address(
        "names",
        (
            Parameter(name="text", key=SENTENCES_KEY, default=defaults.sentences),
            Parameter(name="names", key=NAMES_KEY, default=defaults.names),
            Parameter(name="attack", key=ATTACK_KEY, default=defaults.attack, options=attacks),
        ),
    )


def chosen_request() -> NamesRequest:
    """Build the request from the page's controls."""
    sentences, names, attack = (st.session_state[k] for k in (SENTENCES_KEY, NAMES_KEY, ATTACK_KEY))
    return NamesRequest(sentences=str(sentences), names=str(names), attack=str(attack))


def use_samples(samples: NamesRequest) -> None:
    """Set the inputs of sentences and names to the examples, as a callback."""
    st.session_state[SENTENCES_KEY] = samples.sentences
    st.session_state[NAMES_KEY] = samples.names


def carry_sentence(text: str, names: Sequence[str], others: Sequence[str]) -> None:
    """Set the inputs to another page's sentence and names, as a callback.

    Parameters
    ----------
    names : sequence of str
        At least one name; each occurs in the sentence.
    others : sequence of str
        Further candidates for the attacker; at most four are used.
    """
    st.session_state[SENTENCES_KEY] = " ".join(text.translate(_ROUND).split())
    more = [name for name in others if name not in names]
    st.session_state[NAMES_KEY] = "\n".join([*names, *more[:4]])


def restore_request(request: NamesRequest) -> None:
    """Set the page's controls to a job's request, after a reload."""
    use_samples(request)
    st.session_state[ATTACK_KEY] = request.attack


def chosen_cell() -> tuple[int, int]:
    """Return the row and column of the selected cell of the heat map."""
    return int(st.session_state[ROW_KEY]), int(st.session_state[COLUMN_KEY])


def adopt_cell_click(clicked: tuple[int, int] | None) -> bool:
    """Select the clicked cell of the heat map, once per click; return whether it changed."""
    is_new = clicked is not None and clicked != st.session_state.get("_clicked_cell")
    st.session_state["_clicked_cell"] = clicked
    if clicked is None or not is_new or clicked == chosen_cell():
        return False
    st.session_state[ROW_KEY], st.session_state[COLUMN_KEY] = clicked
    return True
