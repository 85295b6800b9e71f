"""What one visitor has chosen on the page of names, and what came of it, for this session alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

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
    "adopt_cell_click",
    "adopt_names_link",
    "chosen_cell",
    "chosen_request",
    "drop_stale_names_link",
    "experiment_of",
    "keep_choice",
    "link_parts",
    "names_job",
    "remember_experiment",
    "remember_names_job",
    "restore_request",
    "use_samples",
]

SENTENCES_KEY = "names_sentences"
NAMES_KEY = "names_names"
ATTACK_KEY = "names_attack"
ROW_KEY = "names_row"
COLUMN_KEY = "names_column"
PROBED_KEY = "names_probed"
_LINKED = {"text": SENTENCES_KEY, "names": NAMES_KEY, "attack": ATTACK_KEY}
_MOST_KEPT = 6


@dataclass(frozen=True, kw_only=True)
class NamesRequest:
    """What identifies an experiment: sentences and names as they were typed, and the attack."""

    sentences: str
    names: str
    attack: str


def adopt_names_link(defaults: NamesRequest, attacks: Sequence[str]) -> str:
    """Take over sentences, names and attack from the address, once per address.

    `?text=…&names=…&attack=msp`, with line breaks (`%0A`) between sentences and between names.
    Returns an attack that does not exist here, or nothing.
    """
    st.session_state.setdefault(SENTENCES_KEY, defaults.sentences)
    st.session_state.setdefault(NAMES_KEY, defaults.names)
    st.session_state.setdefault(ATTACK_KEY, defaults.attack)
    params = {name: st.query_params[name] for name in _LINKED if name in st.query_params}
    if params == st.session_state.get("_adopted_names_link", {}):
        return str(st.session_state.get("_refused_names_attack", ""))
    st.session_state["_adopted_names_link"] = params
    refused = params.get("attack", "")
    refused = "" if refused in attacks else refused
    for name, value in params.items():
        if name != "attack" or not refused:
            st.session_state[_LINKED[name]] = value
    st.session_state["_refused_names_attack"] = refused
    return refused


def drop_stale_names_link() -> None:
    """Take the choices out of the address as soon as one no longer tells the truth."""
    adopted = dict(st.session_state.get("_adopted_names_link", {}))
    refused = st.session_state.get("_refused_names_attack", "")
    now = dict(link_parts())
    if any(now[name] != value for name, value in adopted.items() if value != refused):
        for name in adopted:
            st.query_params.pop(name, None)
        st.session_state["_adopted_names_link"] = {}
        st.session_state["_refused_names_attack"] = ""


def link_parts() -> list[tuple[str, str]]:
    """Return what an address must say to open this view."""
    return [(name, str(st.session_state[key])) for name, key in _LINKED.items()]


def chosen_request() -> NamesRequest:
    """Return what the controls stand at."""
    chosen = dict(link_parts())
    return NamesRequest(sentences=chosen["text"], names=chosen["names"], attack=chosen["attack"])


def use_samples(samples: NamesRequest) -> None:
    """Set sentences and names back to the examples, from a callback."""
    st.session_state[SENTENCES_KEY] = samples.sentences
    st.session_state[NAMES_KEY] = samples.names


def restore_request(request: NamesRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    use_samples(request)
    st.session_state[ATTACK_KEY] = request.attack


def names_job() -> tuple[NamesRequest, str] | None:
    """Return the job that this session waits for, and what it was asked."""
    found: tuple[NamesRequest, str] | None = st.session_state.get("_names_job")
    return found


def remember_names_job(request: NamesRequest | None, job_id: str = "") -> None:
    """Note the job, here and in the address; None forgets it."""
    if request is None:
        st.session_state.pop("_names_job", None)
        st.query_params.pop("job", None)
    else:
        st.session_state["_names_job"] = (request, job_id)
        st.query_params["job"] = job_id


def experiment_of(request: NamesRequest) -> NameExperiment | None:
    """Return an experiment that this session has seen."""
    return _kept().get(request)


def remember_experiment(request: NamesRequest, found: NameExperiment) -> NameExperiment:
    """Keep an experiment for this session, the oldest giving way."""
    kept = _kept()
    kept[request] = found
    while len(kept) > _MOST_KEPT:
        kept.popitem(last=False)
    return found


def _kept() -> OrderedDict[NamesRequest, NameExperiment]:
    found: OrderedDict[NamesRequest, NameExperiment] = st.session_state.setdefault(
        "_name_experiments", OrderedDict()
    )
    return found


def keep_choice(key: str, options: Sequence[object]) -> None:
    """Let a choice stand if it is among the options, else take the first."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[0]


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
