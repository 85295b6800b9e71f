"""What one visitor has chosen on the page of representations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.studies.classification import VIEWS
from core.studies.domains import DOMAINS
from core.studies.prepared import CORPORA, COUNTS, PREPARABLE
from core.studies.representation_summary import Representations
from dashboard.state import TEXT_KEY, text

__all__ = ["TryRequest", "adopt_representation_link", "chosen", "drop_stale_representation_link",
           "encoder_options", "key_of", "link_parts", "remember_try_job", "restore_try",
           "try_job", "try_request"]  # fmt: skip

_SINGLE = {"domain": tuple(DOMAINS), "view": VIEWS, "corpus": CORPORA, "n": COUNTS}
"""Choices of one of several, and what there is."""

_MANY = ("encoder", "attack")
_DEFAULTS: dict[str, Any] = {"domain": "cross", "view": "sentences", "corpus": CORPORA[0],
                             "n": 2000, "paper": True}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TryRequest:
    """What is to be fitted for the sentence, without the sentence."""

    encoders: tuple[str, ...]
    corpus: str
    n_texts: int


def key_of(name: str) -> str:
    """Return the key of a control of the page."""
    return f"rep_{name}"


def chosen(name: str) -> Any:
    """Return what a control of the page stands at: a value, or a list of encoders or attacks."""
    if name in _MANY:
        return list(st.session_state.get(key_of(name)) or [])
    return st.session_state.get(key_of(name), _DEFAULTS[name])


def encoder_options(found: Representations | None) -> list[str]:
    """Return the encoders that can be shown, or tried on a sentence, or both."""
    return list(dict.fromkeys([*(found.encoders if found else ()), *PREPARABLE]))


def adopt_representation_link(default_text: str, found: Representations | None) -> list[str]:
    """Take over the choices of the address, once per address; return those that do not exist.

    `?encoder=tfidf&encoder=minilm&attack=msp&domain=in&view=text&corpus=lee&n=1000&text=…`, or
    `encoder=tfidf,minilm`.
    """
    options = {
        "encoder": encoder_options(found),
        "attack": found.attacks if found else [],
    }
    st.session_state.setdefault(TEXT_KEY, default_text)
    for name, value in _DEFAULTS.items():
        st.session_state.setdefault(key_of(name), value)
    st.session_state.setdefault(key_of("encoder"), found.encoders if found else [*PREPARABLE])
    st.session_state.setdefault(key_of("attack"), options["attack"])
    names = (*_MANY, *_SINGLE, "text")
    params = {n: st.query_params.get_all(n) for n in names if n in st.query_params}
    if params == st.session_state.get("_adopted_rep_link", {}):
        return list(st.session_state.get("_refused_rep_link", []))
    st.session_state["_adopted_rep_link"] = params
    refused = [r for name, values in params.items() for r in _adopt(name, values, options)]
    st.session_state["_refused_rep_link"] = refused
    return refused


def _adopt(name: str, values: Sequence[str], options: dict[str, list[str]]) -> list[str]:
    """Take over one choice; return what of it does not exist."""
    if name == "text":
        st.session_state[TEXT_KEY] = values[-1]
        return []
    if name in _SINGLE:
        known = next((v for v in _SINGLE[name] if str(v) == values[-1]), None)
        if known is not None:
            st.session_state[key_of(name)] = known
        return [] if known is not None else [f"{name}={values[-1]}"]
    named = _named(values)
    kept = [n for n in options[name] if n in named]
    if kept:
        st.session_state[key_of(name)] = kept
    return [f"{name}={n}" for n in named if n not in options[name]]


def _named(values: Sequence[str]) -> list[str]:
    return [n.strip() for value in values for n in value.split(",") if n.strip()]


def link_parts() -> list[tuple[str, str]]:
    """Return what an address must say to open this view, but for the sentence."""
    many = [(name, value) for name in _MANY for value in chosen(name)]
    return many + [(name, str(chosen(name))) for name in _SINGLE]


def drop_stale_representation_link() -> None:
    """Take the choices out of the address as soon as one no longer tells the truth."""
    adopted: dict[str, list[str]] = dict(st.session_state.get("_adopted_rep_link", {}))
    refused = st.session_state.get("_refused_rep_link", [])
    if any(not _is_true(name, values, refused) for name, values in adopted.items()):
        for name in adopted:
            st.query_params.pop(name, None)
        st.session_state["_adopted_rep_link"] = {}
        st.session_state["_refused_rep_link"] = []


def _is_true(name: str, values: list[str], refused: Sequence[str]) -> bool:
    if name == "text":
        return values[-1] == text()
    if name in _SINGLE:
        return str(chosen(name)) == values[-1] or f"{name}={values[-1]}" in refused
    named = [n for n in _named(values) if f"{name}={n}" not in refused]
    return not named or set(named) == set(chosen(name))


def try_request() -> TryRequest:
    """Return what is to be fitted as the controls stand."""
    encoders = tuple(name for name in PREPARABLE if name in chosen("encoder"))
    return TryRequest(encoders=encoders, corpus=chosen("corpus"), n_texts=chosen("n"))


def restore_try(request: TryRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    others = [name for name in chosen("encoder") if name not in PREPARABLE]
    st.session_state[key_of("encoder")] = [*request.encoders, *others]
    st.session_state[key_of("corpus")] = request.corpus
    st.session_state[key_of("n")] = request.n_texts


def try_job() -> tuple[TryRequest, str] | None:
    """Return the job that this session waits for, and what it was asked."""
    found: tuple[TryRequest, str] | None = st.session_state.get("_try_job")
    return found


def remember_try_job(request: TryRequest | None, job_id: str = "") -> None:
    """Note the job that fits encoders, here and in the address; None forgets it."""
    if request is None:
        st.session_state.pop("_try_job", None)
        st.query_params.pop("job", None)
    else:
        st.session_state["_try_job"] = (request, job_id)
        st.query_params["job"] = job_id
