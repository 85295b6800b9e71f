"""One sentence under a defence or a chain: what is released of it, and the vector that is stored.

Both are of the same draw: the vector is that of the text which is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.defences.chain import Chain
from core.defences.metric_dp.mechanisms import privatizer_of
from core.defences.protected import generator_of
from core.defences.registry import entry_of, make_defence
from core.encoders.white_box import require_white_box
from core.errors import InvalidInputError
from core.protocols import Encoder, Vectors
from core.specs import DefenceSpec

__all__ = ["Defended", "defended"]


@dataclass(frozen=True, eq=False)
class Defended:
    """What a defence leaves of a sentence.

    Attributes
    ----------
    text : str or None
        The text that is released; None where the sentence is encoded as it is.
    tokens : tuple of (str, str)
        Each word piece of the sentence and what it became; empty where no text is released, or
        where several mechanisms cut it anew.
    vector : float32 array (1, m)
        What is stored.
    """

    text: str | None
    tokens: tuple[tuple[str, str], ...]
    vector: Vectors


def defended(encoder: Encoder, spec: DefenceSpec, text: str, seed: int) -> Defended:
    """Put a sentence through a defence or a chain.

    Parameters
    ----------
    seed : int
        Of all that is drawn, unless the spec names one.

    Raises
    ------
    InvalidInputError
        A setting that does not fit the encoder, or noise that float32 has no room for.
    """
    entry = entry_of(spec.name)
    own = {"seed": seed} if entry.takes_seed else {}
    made: Any = make_defence(DefenceSpec.of(spec.name, own | dict(spec.settings)))
    stages = made.stages if isinstance(made, Chain) else ((entry.acts_on, made),)
    changing = [stage for kind, stage in stages if kind == "text"]
    rest = Chain(tuple(each for each in stages if each[0] != "text"))
    released, tokens = _released(encoder, changing, text) if changing else (None, ())
    with np.errstate(over="ignore", invalid="ignore"):
        vector = rest.protect(encoder).encode([text if released is None else released])
    if not np.isfinite(vector).all():
        raise InvalidInputError(
            f"{spec.name} leaves numbers that float32 has no room for. Take a weaker setting."
        )
    return Defended(released, tokens, vector)


def _released(
    encoder: Encoder, changing: list[Any], text: str
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the text that mechanisms release, as far as the encoder reads it."""
    if len(changing) > 1:
        (released,) = Chain(tuple(("text", stage) for stage in changing)).change(encoder)([text])
        return released, ()
    (stage,) = changing
    opened = require_white_box(encoder, type(stage).__name__)
    (ids,) = opened.token_ids([text])
    if not ids:
        raise InvalidInputError("The encoder finds no word in this text. Type another one.")
    new = privatizer_of(stage, opened, generator_of(stage.seed)).tokens(np.array(ids, np.int64))
    names = opened.tokens
    pairs = ((names[old], names[n]) for old, n in zip(ids, new.tolist(), strict=True))
    return opened.text_of(new.tolist()), tuple(pairs)
