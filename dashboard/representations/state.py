"""What one visitor has chosen on the page of representations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.encoders.registry import preparable
from core.studies.classification import VIEWS
from core.studies.domains import DOMAINS
from core.studies.prepared import CORPORA, COUNTS
from core.studies.representation_summary import Representations
from dashboard.address import Address, Parameter
from dashboard.state import text_parameter

__all__ = [
    "TryRequest",
    "address",
    "chosen",
    "encoder_options",
    "key_of",
    "restore_try",
    "try_request",
]

_SINGLE = {"domain": tuple(DOMAINS), "view": VIEWS, "corpus": CORPORA, "n": COUNTS}
"""Choices of one of several, and what there is."""

_MANY = ("encoder", "attack")
_DEFAULTS: dict[str, Any] = {
    "domain": "cross",
    "view": "sentences",
    "corpus": CORPORA[0],
    "n": 2000,
}


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
    return st.session_state.get(key_of(name), _DEFAULTS.get(name))


def encoder_options(found: Representations | None) -> list[str]:
    """Return the encoders that can be shown, or tried on a sentence, or both."""
    return list(dict.fromkeys([*(found.encoders if found else ()), *preparable()]))


def address(found: Representations | None) -> Address:
    """Return what an address may ask for.

    `?encoder=tfidf&encoder=minilm&attack=msp&domain=in&view=text&corpus=lee&n=1000&text=…`, or
    `encoder=tfidf,minilm`.
    """
    encoders = found.encoders if found else [*preparable()]
    attacks = found.attacks if found else []
    return Address(
        "representations",
        (
            _many("encoder", encoders, encoder_options(found)),
            _many("attack", attacks, attacks),
            *(
                Parameter(name=name, key=key_of(name), default=_DEFAULTS[name], options=options)
                for name, options in _SINGLE.items()
            ),
            text_parameter(),
        ),
    )


def _many(name: str, default: Sequence[str], options: Sequence[str]) -> Parameter:
    return Parameter(
        name=name, key=key_of(name), default=list(default), options=options, is_many=True
    )


def try_request() -> TryRequest:
    """Return what is to be fitted as the controls stand."""
    encoders = tuple(name for name in preparable() if name in chosen("encoder"))
    return TryRequest(encoders=encoders, corpus=chosen("corpus"), n_texts=chosen("n"))


def restore_try(request: TryRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    others = [name for name in chosen("encoder") if name not in preparable()]
    st.session_state[key_of("encoder")] = [*request.encoders, *others]
    st.session_state[key_of("corpus")] = request.corpus
    st.session_state[key_of("n")] = request.n_texts
