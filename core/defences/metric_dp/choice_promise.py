"""What the mechanisms promise that choose a token: SanText, SanText+, CusText and TEM.

For tokens x and x' and every output y: P[M(x) = y] ≤ exp(E)·P[M(x') = y] with

- SanText: E = ε·d(x, x');
- TEM: E = ε·min(d(x, x'), γ);
- SanText+: E = ε·d(x, x') + ln(1/p) for outputs y that are sensitive; no bound for the others;
- CusText: E = ε where x and x' share their output set; no bound else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from core.defences.metric_dp.candidates import candidate_ids
from core.defences.metric_dp.custext import CusText
from core.defences.metric_dp.distances import TokenDistances
from core.defences.metric_dp.promise import Promise, Promises
from core.defences.metric_dp.promised import EXAMPLE, promises_at
from core.defences.metric_dp.santext import SanText, SanTextPlus
from core.defences.metric_dp.tem import TEM
from core.defences.registry import DEFENCES, make_defence
from core.encoders.white_box import require_white_box
from core.errors import InvalidInputError
from core.protocols import Encoder, WhiteBoxEncoder
from core.specs import DefenceSpec

__all__ = ["promises_of"]

_MOST_TOKENS = 254


def promises_of(encoder: Encoder, spec: DefenceSpec, text: str = EXAMPLE) -> Promises:
    """Return what a mechanism promises with its settings, for the tokens of a text.

    Raises
    ------
    InvalidInputError
        The defence promises nothing, needs a white box, or the text holds no token.
    """
    mechanism: Any = make_defence(spec)
    known = _KNOWN.get(type(mechanism))
    if known is None:
        if not hasattr(mechanism, "eta"):
            raise InvalidInputError(f"{spec.name} promises nothing. Choose one that does.")
        candidates = getattr(mechanism, "candidates", "regular")
        return promises_at(encoder, spec.name, mechanism.eta, text, candidates)
    opened = require_white_box(encoder, DEFENCES[spec.name].title)
    (ids,) = opened.token_ids([text])
    return known(mechanism, opened, ids[:_MOST_TOKENS])


def _santext(mechanism: SanText, encoder: WhiteBoxEncoder, ids: list[int]) -> Promises:
    found = TokenDistances.of(encoder, ids, mechanism.candidates)
    return replace(found.promises(mechanism.epsilon), symbol="ε")


def _tem(mechanism: TEM, encoder: WhiteBoxEncoder, ids: list[int]) -> Promises:
    found = TokenDistances.of(encoder, ids, mechanism.candidates)
    gamma = mechanism.gamma(len(candidate_ids(encoder, mechanism.candidates)))
    cut = replace(
        found,
        to_nearest=np.minimum(found.to_nearest, gamma),
        to_median=np.minimum(found.to_median, gamma),
        to_farthest=np.minimum(found.to_farthest, gamma),
        median_pair=min(found.median_pair, gamma),
    )
    also = f"No two tokens can be told by more than the odds of a distance of γ = {gamma:.3g}."
    return replace(cut.promises(mechanism.epsilon), symbol="ε", also=also)


def _santext_plus(mechanism: SanTextPlus, encoder: WhiteBoxEncoder, ids: list[int]) -> Promises:
    found = TokenDistances.of(encoder, ids, mechanism.candidates).promises(mechanism.epsilon)
    more = math.log(1 / mechanism.p)
    whole = found.whole and replace(found.whole, more=more * len(ids))
    return replace(
        found,
        nearest=replace(found.nearest, more=more),
        median=replace(found.median, more=more),
        whole=whole,
        widest=replace(found.widest, more=more),
        symbol="ε",
        also=f"This holds where a rare token is released. A frequent one that goes in stays as it "
        f"is in {1 - mechanism.p:.0%} of cases, and is then no secret.",
    )


def _custext(mechanism: CusText, encoder: WhiteBoxEncoder, ids: list[int]) -> Promises:
    epsilon, n = mechanism.epsilon, len(ids)
    is_shared = mechanism.mapping == "conservative"
    own = 1.0 if is_shared else math.inf
    others = Promise("two tokens of different sets", epsilon, math.inf)
    of = f"a token from another of its set of {mechanism.k}"
    what = f"this text of {n} tokens from one with others of the same sets"
    return Promises(
        Promise(of, epsilon, own),
        others,
        Promise(what, epsilon, own * n) if n > 1 else None,
        others,
        symbol="ε",
        also="Which set a token is of shows: nothing is promised between sets."
        if is_shared
        else "Each token has a set of its own, so nothing is promised: take mapping=conservative.",
    )


_KNOWN: dict[type, Callable[..., Promises]] = {
    SanText: _santext,
    SanTextPlus: _santext_plus,
    CusText: _custext,
    TEM: _tem,
}
