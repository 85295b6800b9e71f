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

from core.defences.metric_dp.custext import CusText
from core.defences.metric_dp.distances import TextDistances, TokenDistances
from core.defences.metric_dp.promise import Promise, Promises
from core.defences.metric_dp.promised import EXAMPLE, measured_distances
from core.defences.metric_dp.santext import SanText, SanTextPlus
from core.defences.metric_dp.tem import TEM
from core.defences.registry import make_defence
from core.errors import InvalidInputError
from core.protocols import Encoder
from core.specs import DefenceSpec

__all__ = ["promises_by", "promises_of"]


def promises_of(encoder: Encoder, spec: DefenceSpec, text: str = EXAMPLE) -> Promises:
    """Return what a mechanism promises with its settings, for the tokens of a text.

    Raises
    ------
    InvalidInputError
        The defence promises nothing, needs a white box, or the text holds no token.
    """
    candidates = getattr(_promising(spec), "candidates", "regular")
    return promises_by(spec, measured_distances(encoder, spec.name, text, candidates))


def promises_by(spec: DefenceSpec, found: TokenDistances | TextDistances) -> Promises:
    """Return what a mechanism promises with its settings, where the distances are known.

    Raises
    ------
    InvalidInputError
        The defence promises nothing.
    """
    mechanism = _promising(spec)
    known = _KNOWN.get(type(mechanism))
    return found.promises(mechanism.eta) if known is None else known(mechanism, found)


def _promising(spec: DefenceSpec) -> Any:
    mechanism: Any = make_defence(spec)
    if type(mechanism) not in _KNOWN and not hasattr(mechanism, "eta"):
        raise InvalidInputError(f"{spec.name} promises nothing. Choose one that does.")
    return mechanism


def _santext(mechanism: SanText, found: TokenDistances) -> Promises:
    return replace(found.promises(mechanism.epsilon), symbol="ε")


def _tem(mechanism: TEM, found: TokenDistances) -> Promises:
    gamma = mechanism.gamma(found.n_candidates)
    cut = replace(
        found,
        to_nearest=np.minimum(found.to_nearest, gamma),
        to_median=np.minimum(found.to_median, gamma),
        to_farthest=np.minimum(found.to_farthest, gamma),
        median_pair=min(found.median_pair, gamma),
    )
    also = f"No two tokens can be told by more than the odds of a distance of γ = {gamma:.3g}."
    return replace(cut.promises(mechanism.epsilon), symbol="ε", also=also)


def _santext_plus(mechanism: SanTextPlus, found: TokenDistances) -> Promises:
    told = found.promises(mechanism.epsilon)
    more = math.log(1 / mechanism.p)
    whole = told.whole and replace(told.whole, more=more * told.n_tokens)
    return replace(
        told,
        nearest=replace(told.nearest, more=more),
        median=replace(told.median, more=more),
        whole=whole,
        widest=replace(told.widest, more=more),
        symbol="ε",
        also=f"This holds where a rare token is released. A frequent one that goes in stays as it "
        f"is in {1 - mechanism.p:.0%} of cases, and is then no secret.",
    )


def _custext(mechanism: CusText, found: TokenDistances) -> Promises:
    epsilon, n = mechanism.epsilon, len(found.tokens)
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
        n_tokens=n,
        pairs=(f"within a set of {mechanism.k} tokens, which shows", "between two sets"),
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
