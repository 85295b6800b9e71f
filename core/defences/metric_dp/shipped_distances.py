"""Stored distances of the bundled encoder, so that guarantees are shown without loading it.

`scripts/deniability_distances.py` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from leakscope.core.assets import ASSETS
from leakscope.core.defences.metric_dp.distances import TextDistances, TokenDistances
from leakscope.core.defences.metric_dp.exponential_guarantee import guarantees_from_distances
from leakscope.core.defences.metric_dp.guarantee import Guarantees
from leakscope.core.defences.registry import DEFENCES, guarantee_of
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import read_record

SHIPPED = ASSETS / "deniability" / "minilm" / "distances.json"

_Found = TypeVar("_Found", TokenDistances, TextDistances)


@dataclass(frozen=True, eq=False)
class ShippedDistances:
    """The distances that the guarantees of an encoder's mechanisms are computed from.

    Attributes
    ----------
    tokens : TokenDistances
        Of the tokens of `encoder_guarantee.EXAMPLE`, among the regular ones.
    texts : TextDistances
        Of some bundled sentences.
    """

    encoder: str
    fingerprint: str
    tokens: TokenDistances
    texts: TextDistances


def load_distances(path: Path) -> ShippedDistances:
    """Load stored token and text distances from a JSON file.

    Raises
    ------
    ArtifactError
        Missing, damaged, or something else.
    """
    data = read_record(path, encoder=str, fingerprint=str, tokens=dict, texts=dict)
    try:
        tokens, texts = (
            _from_dict(TokenDistances, data["tokens"]),
            _from_dict(TextDistances, data["texts"]),
        )
        for found in (tokens, texts):
            found.guarantees(1.0)
    except (TypeError, ValueError, IndexError, KeyError, InvalidInputError) as error:
        raise ArtifactError(
            f"{path} does not contain an encoder's distances. Create it again: "
            "python -m scripts.deniability_distances"
        ) from error
    return ShippedDistances(data["encoder"], data["fingerprint"], tokens, texts)


def _from_dict(kind: type[_Found], stored: dict[str, Any]) -> _Found:
    """Build TokenDistances or TextDistances from its JSON form."""
    own = {each.name: stored[each.name] for each in fields(kind)}
    lists = {name: value for name, value in own.items() if isinstance(value, list)}
    numbers = {
        name: np.array(value, np.float64) if name.startswith("to_") else tuple(map(str, value))
        for name, value in lists.items()
    }
    return kind(**own | numbers)


@cache
def _load_shipped() -> ShippedDistances:
    """Load the distances that ship with the project, cached."""
    return load_distances(SHIPPED)


def shipped_guarantees(spec: DefenceSpec, encoder: str) -> Guarantees | None:
    """Return a mechanism's guarantees for an example text from stored distances; None if unknown.

    They are stored for the bundled encoder and the `regular` candidates alone.

    Examples
    --------
    >>> found = shipped_guarantees(DefenceSpec.of("text_to_text", {"eta": 75.0}), "minilm")
    >>> found.n_tokens, shipped_guarantees(DefenceSpec.of("int8", {}), "minilm")
    (10, None)
    """
    if spec.name not in DEFENCES or not guarantee_of(spec):
        return None
    found = _load_shipped()
    if encoder != found.encoder or dict(spec.settings).get("candidates", "regular") != "regular":
        return None
    is_of_texts = DEFENCES[spec.name].acts_on == "vector"
    return guarantees_from_distances(spec, found.texts if is_of_texts else found.tokens)
