"""The visitor's choices on the representations page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from leakscope.core.encoders.registry import preparable
from leakscope.core.findings.representations import EncoderChoice
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion.classification import VIEWS
from leakscope.core.studies.inversion.prepared import CORPORA, COUNTS
from leakscope.core.studies.inversion.representation_summary import Representations
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.state import text_parameter

_SINGLE = {"domain": tuple(DOMAINS), "view": VIEWS, "corpus": CORPORA, "n": COUNTS}
"""The options of the controls with a single choice."""

_MANY = ("encoder", "attack")
_DEFAULTS: dict[str, Any] = {
    "domain": "cross",
    "view": "sentences",
    "corpus": CORPORA[0],
    "n": 2000,
}


@dataclass(frozen=True, kw_only=True)
class TryRequest:
    """The request of the job: the encoders to fit, and their texts; without the sentence."""

    encoders: tuple[str, ...]
    corpus: str
    n_texts: int


def key_of(name: str) -> str:
    """Return the session key of a named control."""
    return f"rep_{name}"


def control_value(name: str) -> Any:
    """Return the current value of a named control; a list for encoders and attacks."""
    if name in _MANY:
        return list(st.session_state.get(key_of(name)) or [])
    return st.session_state.get(key_of(name), _DEFAULTS.get(name))


def encoder_comparison() -> EncoderChoice:
    """Build the comparison (encoders, attacks, domain, view) from the controls."""
    return EncoderChoice(
        encoders=tuple(control_value("encoder")),
        attacks=tuple(control_value("attack")),
        domain=control_value("domain"),
        view=control_value("view"),
        has_paper=bool(control_value("paper")),
    )


def encoder_options(found: Representations | None) -> list[str]:
    """Return the names of encoders that have results or can be fitted."""
    return list(dict.fromkeys([*(found.encoders if found else ()), *preparable()]))


def address(found: Representations | None) -> Address:
    """Build the representations page's address parameters.

    `?encoder=tfidf&encoder=minilm&attack=msp&domain=in&view=text&corpus=lee&n=1000&text=…`, or
    `encoder=tfidf,minilm`.
    """
    encoders = found.encoders if found else [*preparable()]
    attacks = found.attacks if found else []
    return Address(
        "representations",
        (
            _list_parameter("encoder", encoders, encoder_options(found)),
            _list_parameter("attack", attacks, attacks),
            *(
                Parameter(name=name, key=key_of(name), default=_DEFAULTS[name], options=options)
                for name, options in _SINGLE.items()
            ),
            text_parameter(),
        ),
    )


def _list_parameter(name: str, default: Sequence[str], options: Sequence[str]) -> Parameter:
    """Build a named address parameter that takes a list of values."""
    return Parameter(
        name=name, key=key_of(name), default=list(default), options=options, is_many=True
    )


def try_request() -> TryRequest:
    """Build the request to fit encoders from the controls."""
    encoders = tuple(name for name in preparable() if name in control_value("encoder"))
    return TryRequest(encoders=encoders, corpus=control_value("corpus"), n_texts=control_value("n"))


def restore_try(request: TryRequest) -> None:
    """Set the page's controls to a job's request, after a reload."""
    others = [name for name in control_value("encoder") if name not in preparable()]
    st.session_state[key_of("encoder")] = [*request.encoders, *others]
    st.session_state[key_of("corpus")] = request.corpus
    st.session_state[key_of("n")] = request.n_texts
