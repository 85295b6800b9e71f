"""Guarantees of the mechanisms that sample a token: SanText, SanText+, CusText and TEM.

For tokens x and x' and every output y: P[M(x) = y] ≤ exp(E)·P[M(x') = y] with

- SanText: E = ε·d(x, x');
- TEM: E = ε·min(d(x, x'), γ);
- SanText+: E = ε·d(x, x') + ln(1/p) for outputs y that are sensitive; no bound for the others;
- CusText: E = ε where x and x' share their output set; no bound else.

`scripts/deniability_distances.py` writes the distances that ship, so that guarantees are shown
without loading the encoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from leakscope.core.assets import ASSETS
from leakscope.core.defences.metric_dp.custext import CusText
from leakscope.core.defences.metric_dp.distances import (
    EXAMPLE,
    TextDistances,
    TokenDistances,
    measured_distances,
)
from leakscope.core.defences.metric_dp.exponential_mechanism import TEM, SanText, SanTextPlus
from leakscope.core.defences.metric_dp.guarantee import Guarantee, Guarantees
from leakscope.core.defences.registry import DEFENCES, guarantee_of, make_defence
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import read_record


def guarantees_of(encoder: Encoder, spec: DefenceSpec, text: str = EXAMPLE) -> Guarantees:
    """Measure a text's token distances; return the guarantees of a spec's mechanism.

    Raises
    ------
    InvalidInputError
        The defence guarantees nothing, needs a white box, or the text holds no token.
    """
    candidates = getattr(_make_with_guarantee(spec), "candidates", "regular")
    return guarantees_from_distances(spec, measured_distances(encoder, spec.name, text, candidates))


def guarantees_from_distances(
    spec: DefenceSpec, found: TokenDistances | TextDistances
) -> Guarantees:
    """Compute the guarantees of a spec's mechanism from distances measured before.

    Raises
    ------
    InvalidInputError
        The defence guarantees nothing.
    """
    mechanism = _make_with_guarantee(spec)
    known = _GUARANTEES.get(type(mechanism))
    return found.guarantees(mechanism.eta) if known is None else known(mechanism, found)


def _make_with_guarantee(spec: DefenceSpec) -> Any:
    """Build the mechanism of a spec; raise InvalidInputError if it guarantees nothing."""
    mechanism: Any = make_defence(spec)
    if type(mechanism) not in _GUARANTEES and not hasattr(mechanism, "eta"):
        raise InvalidInputError(
            f"{spec.name} guarantees nothing. Choose a mechanism with a guarantee."
        )
    return mechanism


def _santext_guarantees(mechanism: SanText, found: TokenDistances) -> Guarantees:
    """Compute SanText's guarantees from distances d: log-odds of ε·d for every token pair."""
    return replace(found.guarantees(mechanism.epsilon), symbol="ε")


def _tem_guarantees(mechanism: TEM, found: TokenDistances) -> Guarantees:
    """Compute TEM's guarantees from distances capped at γ, otherwise as SanText's."""
    gamma = mechanism.gamma(found.n_candidates)
    cut = replace(
        found,
        to_nearest=np.minimum(found.to_nearest, gamma),
        to_median=np.minimum(found.to_median, gamma),
        to_farthest=np.minimum(found.to_farthest, gamma),
        median_pair=min(found.median_pair, gamma),
    )
    also = f"Distances beyond γ = {gamma:.3g} do not increase the odds any further."
    return replace(cut.guarantees(mechanism.epsilon), symbol="ε", also=also)


def _santext_plus_guarantees(mechanism: SanTextPlus, found: TokenDistances) -> Guarantees:
    """Compute the guarantees of SanText+ from distances: SanText's plus ln(1/p)."""
    base = found.guarantees(mechanism.epsilon)
    more = math.log(1 / mechanism.p)
    whole = base.whole and replace(base.whole, more=more * base.n_tokens)
    return replace(
        base,
        nearest=replace(base.nearest, more=more),
        median=replace(base.median, more=more),
        whole=whole,
        widest=replace(base.widest, more=more),
        symbol="ε",
        also=f"This applies to rare tokens. A frequent token stays unchanged in "
        f"{1 - mechanism.p:.0%} of cases, and is then not protected.",
    )


def _custext_guarantees(mechanism: CusText, found: TokenDistances) -> Guarantees:
    """Compute CusText's guarantees: ε within a shared output set, no bound between sets."""
    epsilon, n = mechanism.epsilon, len(found.tokens)
    is_shared = mechanism.mapping == "conservative"
    own = 1.0 if is_shared else math.inf
    others = Guarantee("two tokens of different sets", epsilon, math.inf)
    of = f"a token and another of its set of {mechanism.k}"
    what = f"this text of {n} tokens and any text with other tokens of the same sets"
    return Guarantees(
        Guarantee(of, epsilon, own),
        others,
        Guarantee(what, epsilon, own * n) if n > 1 else None,
        others,
        n_tokens=n,
        pairs=(f"within a visible set of {mechanism.k} tokens", "between two sets"),
        symbol="ε",
        also="The set of a token is visible: nothing is guaranteed between sets."
        if is_shared
        else "Each token has its own set, so nothing is guaranteed. Use mapping=conservative.",
    )


_GUARANTEES: dict[type, Callable[..., Guarantees]] = {
    SanText: _santext_guarantees,
    SanTextPlus: _santext_plus_guarantees,
    CusText: _custext_guarantees,
    TEM: _tem_guarantees,
}


SHIPPED = ASSETS / "deniability" / "minilm" / "distances.json"

_Found = TypeVar("_Found", TokenDistances, TextDistances)


@dataclass(frozen=True, eq=False)
class ShippedDistances:
    """The distances that the guarantees of an encoder's mechanisms are computed from.

    Attributes
    ----------
    tokens : TokenDistances
        Of the tokens of `distances.EXAMPLE`, among the regular ones.
    texts : TextDistances
        Of some bundled sentences.
    """

    encoder: str
    fingerprint: str
    tokens: TokenDistances
    texts: TextDistances


def load_distances(path: Path) -> ShippedDistances:
    """Load an encoder's stored token and text distances from a JSON file.

    Raises
    ------
    ArtifactError
        Missing, damaged, or something else.
    """
    data = read_record(path, encoder=str, fingerprint=str, tokens=dict, texts=dict)
    try:
        tokens, texts = (
            _restore_distances(TokenDistances, data["tokens"]),
            _restore_distances(TextDistances, data["texts"]),
        )
        for found in (tokens, texts):
            found.guarantees(1.0)
    except (TypeError, ValueError, IndexError, KeyError, InvalidInputError) as error:
        raise ArtifactError(
            f"{path} does not contain an encoder's distances. Create it again: "
            "python -m scripts.deniability_distances"
        ) from error
    return ShippedDistances(data["encoder"], data["fingerprint"], tokens, texts)


def _restore_distances(kind: type[_Found], stored: dict[str, Any]) -> _Found:
    """Build TokenDistances or TextDistances from its JSON form."""
    own = {each.name: stored[each.name] for each in fields(kind)}
    lists = {name: value for name, value in own.items() if isinstance(value, list)}
    numbers = {
        name: np.array(value, np.float64) if name.startswith("to_") else tuple(map(str, value))
        for name, value in lists.items()
    }
    return kind(**own | numbers)


@cache
def _load_shipped_distances() -> ShippedDistances:
    """Load the token and text distances that ship with the project, cached."""
    return load_distances(SHIPPED)


def shipped_guarantees(spec: DefenceSpec, encoder: str) -> Guarantees | None:
    """Compute a spec's guarantees for the example text from shipped distances, or None.

    They are stored for the bundled encoder and the `regular` candidates alone.

    Examples
    --------
    >>> found = shipped_guarantees(DefenceSpec.of("text_to_text", {"eta": 75.0}), "minilm")
    >>> found.n_tokens, shipped_guarantees(DefenceSpec.of("int8", {}), "minilm")
    (10, None)
    """
    if spec.name not in DEFENCES or not guarantee_of(spec):
        return None
    found = _load_shipped_distances()
    if encoder != found.encoder or dict(spec.settings).get("candidates", "regular") != "regular":
        return None
    is_of_texts = DEFENCES[spec.name].acts_on == "vector"
    return guarantees_from_distances(spec, found.texts if is_of_texts else found.tokens)
