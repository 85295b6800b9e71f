"""What one visitor has chosen on the page of names, and what came of it, for this session alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.address import Address, Parameter
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.names.experiment import NameExperiment

__all__ = [
    "ATTACK_KEY",
    "COLUMN_KEY",
    "NAMES_KEY",
    "PROBED_KEY",
    "ROW_KEY",
    "SENTENCES_KEY",
    "NamesRequest",
    "address",
    "adopt_cell_click",
    "carry_sentence",
    "chosen_cell",
    "chosen_request",
    "experiment_of",
    "remember_experiment",
    "restore_request",
    "use_samples",
]

SENTENCES_KEY = "names_sentences"
NAMES_KEY = "names_names"
ATTACK_KEY = "names_attack"
ROW_KEY = "names_row"
COLUMN_KEY = "names_column"
PROBED_KEY = "names_probed"
_ROUND = str.maketrans("[]", "()")
"""Square brackets mark a name on this page; elsewhere they are part of the text."""
_SEEN: Kept[NamesRequest, NameExperiment] = Kept("_name_experiments", 6)
experiment_of = _SEEN.get
remember_experiment = _SEEN.add


@dataclass(frozen=True, kw_only=True)
class NamesRequest:
    """What identifies an experiment: sentences and names as they were typed, and the attack."""

    sentences: str
    names: str
    attack: str


def address(defaults: NamesRequest, attacks: Sequence[str]) -> Address:
    """Return what an address may ask for: `?text=…&names=…&attack=msp`.

    Line breaks (`%0A`) stand between sentences and between names.
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
    """Return what the controls stand at."""
    sentences, names, attack = (st.session_state[k] for k in (SENTENCES_KEY, NAMES_KEY, ATTACK_KEY))
    return NamesRequest(sentences=str(sentences), names=str(names), attack=str(attack))


def use_samples(samples: NamesRequest) -> None:
    """Set sentences and names back to the examples, from a callback."""
    st.session_state[SENTENCES_KEY] = samples.sentences
    st.session_state[NAMES_KEY] = samples.names


def carry_sentence(text: str, names: Sequence[str], others: Sequence[str]) -> None:
    """Put a sentence of another page and the names in it here, from a callback.

    Parameters
    ----------
    names : sequence of str
        At least one, each in the sentence.
    others : sequence of str
        Further candidates, for the attacker to choose between; at most four are taken.
    """
    st.session_state[SENTENCES_KEY] = " ".join(text.translate(_ROUND).split())
    more = [name for name in others if name not in names]
    st.session_state[NAMES_KEY] = "\n".join([*names, *more[:4]])


def restore_request(request: NamesRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    use_samples(request)
    st.session_state[ATTACK_KEY] = request.attack


def chosen_cell() -> tuple[int, int]:
    """Return row and column of the cell that is shown."""
    return int(st.session_state[ROW_KEY]), int(st.session_state[COLUMN_KEY])


def adopt_cell_click(clicked: tuple[int, int] | None) -> bool:
    """Choose the cell that was clicked, once per click; return whether that changed the cell."""
    is_new = clicked is not None and clicked != st.session_state.get("_clicked_cell")
    st.session_state["_clicked_cell"] = clicked
    if clicked is None or not is_new or clicked == chosen_cell():
        return False
    st.session_state[ROW_KEY], st.session_state[COLUMN_KEY] = clicked
    return True
