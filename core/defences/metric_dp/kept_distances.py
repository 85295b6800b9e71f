"""Distances of the bundled encoder, kept: what an η promises, told without opening the encoder.

`python -m core.defences.metric_dp.kept_distances --out assets/deniability/minilm/distances.json`
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from core.assets import ASSETS
from core.defences.metric_dp.choice_promise import promises_by
from core.defences.metric_dp.distances import TextDistances, TokenDistances
from core.defences.metric_dp.promise import Promises
from core.defences.metric_dp.promised import (
    EXAMPLE,
    bundled_distances,
    measured_distances,
)
from core.defences.registry import DEFENCES, guarantee_of
from core.errors import ArtifactError, InvalidInputError
from core.protocols import Encoder
from core.specs import DefenceSpec
from core.store import read_record, write_json

__all__ = ["SHIPPED", "KeptDistances", "kept_promises", "load_distances", "measure_kept"]

SHIPPED = ASSETS / "deniability" / "minilm" / "distances.json"

_Found = TypeVar("_Found", TokenDistances, TextDistances)


@dataclass(frozen=True, eq=False)
class KeptDistances:
    """What the promises of an encoder's mechanisms are about.

    Attributes
    ----------
    tokens : TokenDistances
        Of the tokens of `EXAMPLE`, among the regular ones.
    texts : TextDistances
        Of some bundled sentences.
    """

    encoder: str
    fingerprint: str
    tokens: TokenDistances
    texts: TextDistances


def measure_kept(encoder: Encoder) -> KeptDistances:
    """Measure what is kept."""
    tokens = measured_distances(encoder, "text_to_text")
    assert isinstance(tokens, TokenDistances)
    return KeptDistances(encoder.name, encoder.fingerprint, tokens, bundled_distances(encoder))


def load_distances(path: Path) -> KeptDistances:
    """Read what `main` wrote.

    Raises
    ------
    ArtifactError
        Missing, damaged, or something else.
    """
    data = read_record(path, encoder=str, fingerprint=str, tokens=dict, texts=dict)
    try:
        tokens, texts = _of(TokenDistances, data["tokens"]), _of(TextDistances, data["texts"])
        for found in (tokens, texts):
            found.promises(1.0)
    except (TypeError, ValueError, IndexError, KeyError, InvalidInputError) as error:
        raise ArtifactError(f"{path} holds no distances of an encoder. Make it anew.") from error
    return KeptDistances(data["encoder"], data["fingerprint"], tokens, texts)


def _of(kind: type[_Found], told: dict[str, Any]) -> _Found:
    own = {each.name: told[each.name] for each in fields(kind)}
    lists = {name: value for name, value in own.items() if isinstance(value, list)}
    numbers = {
        name: np.array(value, np.float64) if name.startswith("to_") else tuple(map(str, value))
        for name, value in lists.items()
    }
    return kind(**own | numbers)


@cache
def _shipped() -> KeptDistances:
    return load_distances(SHIPPED)


def kept_promises(spec: DefenceSpec, encoder: str) -> Promises | None:
    """Return what a mechanism promises of `EXAMPLE`; None where none is, or it is not known.

    It is known of the bundled encoder, with the tokens that are candidates unless told otherwise.

    Examples
    --------
    >>> found = kept_promises(DefenceSpec.of("text_to_text", {"eta": 75.0}), "minilm")
    >>> found.n_tokens, kept_promises(DefenceSpec.of("int8", {}), "minilm")
    (10, None)
    """
    if spec.name not in DEFENCES or not guarantee_of(spec):
        return None
    found = _shipped()
    if encoder != found.encoder or dict(spec.settings).get("candidates", "regular") != "regular":
        return None
    is_of_texts = DEFENCES[spec.name].acts_on == "vector"
    return promises_by(spec, found.texts if is_of_texts else found.tokens)


def main() -> None:
    """Measure the bundled encoder and write the result."""
    from core.encoders import load_encoder

    parser = argparse.ArgumentParser(
        prog="python -m core.defences.metric_dp.kept_distances", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=SHIPPED)
    found = asdict(measure_kept(load_encoder("minilm")))
    told = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found["tokens"].items()}
    write_json(parser.parse_args().out, {**found, "text": EXAMPLE, "tokens": told})


if __name__ == "__main__":
    main()
