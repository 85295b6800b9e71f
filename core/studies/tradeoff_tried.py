"""One sentence under a defence or a chain: what is released of it, and the vector that is stored.

Both are of the same draw: the vector is that of the text which is shown. What changes vectors alone
is led back by a linear map, which an attacker learns from texts of their own behind the defence;
for released tokens see `core.studies.tradeoff_reader`. What is trained is taken as it ships.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.lifted import Lift
from core.defences.chain import Chain
from core.defences.metric_dp.mechanisms import TokenRepresentation, privatizer_of
from core.defences.metric_dp.release import release_under_noise
from core.defences.protected import generator_of
from core.defences.registry import ChainEntry, entry_of
from core.defences.shipped import find_shipped, with_trained
from core.encoders.white_box import require_white_box, token_table
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.specs import DefenceSpec

__all__ = ["Defended", "defended", "way_back"]


@dataclass(frozen=True, eq=False)
class Defended:
    """What a defence leaves of a sentence.

    Attributes
    ----------
    text : str or None
        The text that is released; None where the sentence is encoded as it is.
    tokens : tuple of (str, str)
        Each word piece of the sentence and what it became, or the token nearest to its noisy vector
        where these vectors are released; empty where the vector of the sentence alone is, or where
        several mechanisms cut it anew.
    vector : float32 array (1, m)
        What is stored.
    told : str or None
        What is read by whoever takes released tokens as they are; None where none are released.
    released : int64 array (k,) or None
        Those tokens, where one mechanism alone released them.
    noisy : float32 array (k, d) or None
        The vectors of tokens, where these are released.
    eta : float
        The privacy parameter of their noise; 0 where there are none.
    """

    text: str | None
    tokens: tuple[tuple[str, str], ...]
    vector: Vectors
    told: str | None = None
    released: NDArray[np.int64] | None = None
    noisy: NDArray[np.float32] | None = None
    eta: float = 0.0


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
    made: Any = with_trained(_seeded(spec, seed), find_shipped(spec, encoder.name))
    stages = made.stages if isinstance(made, Chain) else ((entry.acts_on, made),)
    changing = [stage for kind, stage in stages if kind == "text"]
    rest = Chain(tuple(each for each in stages if each[0] != "text"))
    released: str | None = None
    told: str | None = None
    tokens: tuple[tuple[str, str], ...] = ()
    ids: NDArray[np.int64] | None = None
    if changing:
        released, tokens, ids = _released(encoder, changing, text)
        told = released
    elif stages[-1][0] == "tokens":
        told, tokens, ids = _released(encoder, [stages[-1][1]], text)
    with np.errstate(over="ignore", invalid="ignore"):
        vector = rest.protect(encoder).encode([text if released is None else released])
    if not np.isfinite(vector).all():
        raise InvalidInputError(
            f"{spec.name} leaves numbers that float32 has no room for. Take a weaker setting."
        )
    if not entry.releases_tokens:
        return Defended(released, tokens, vector)
    if isinstance(made, TokenRepresentation):
        noisy = _noisy(require_white_box(encoder, entry.title), made, text)
        return Defended(released, tokens, vector, told, ids, noisy, made.eta)
    return Defended(released, tokens, vector, told, ids)


def way_back(encoder: Encoder, spec: DefenceSpec, known: Vectors, seed: int) -> Lift | None:
    """Return what leads protected vectors back, learnt from (n, d) vectors behind the defence.

    None where the defence changes more than the vector: then other texts would have to be encoded.

    Parameters
    ----------
    seed : int
        As `defended` had it: the attacker knows a matrix, and draws noise of their own.
    """
    entry = entry_of(spec.name)
    parts = entry.of.values() if isinstance(entry, ChainEntry) else (entry,)
    if any(part.acts_on != "vector" for part in parts):
        return None
    noise = DefenceSpec.of(spec.name, {"seed": seed + 1} if entry.draws_noise else {})
    own = {**dict(_seeded(spec, seed).settings), **dict(noise.settings)}
    made = with_trained(DefenceSpec.of(spec.name, own), find_shipped(spec, encoder.name))
    protected = made.protect(_Known(encoder, known))
    changed = protected.encode([""] * len(known))
    return Lift.fit(changed, known)


def _noisy(encoder: WhiteBoxEncoder, made: TokenRepresentation, text: str) -> NDArray[np.float32]:
    """Return the noisy vectors of a text's tokens, from which the encoder goes on."""
    (ids,) = encoder.token_ids([text])
    return release_under_noise(token_table(encoder)[ids], made.eta, generator_of(made.seed))


class _Known:
    """Gives vectors that are known, for as many texts, whatever these are."""

    def __init__(self, encoder: Encoder, vectors: Vectors) -> None:
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimension, self._vectors = encoder.dimension, vectors
        self.base = encoder

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        assert len(texts) == len(self._vectors)
        return self._vectors


def _seeded(spec: DefenceSpec, seed: int) -> DefenceSpec:
    """Return a spec with a seed for all that is drawn, the matrix of a projection named apart."""
    entry = entry_of(spec.name)
    parts = entry.of if isinstance(entry, ChainEntry) else {spec.name: entry}
    own: dict[str, Any] = {"seed": seed} if entry.takes_seed else {}
    for name, part in parts.items():
        if isinstance(entry, ChainEntry) and part.takes_seed and not part.draws_noise:
            own[f"{name}.seed"] = seed
    return DefenceSpec.of(spec.name, own | dict(spec.settings))


def _released(
    encoder: Encoder, changing: list[Any], text: str
) -> tuple[str, tuple[tuple[str, str], ...], NDArray[np.int64] | None]:
    """Return the text that mechanisms release, as far as the encoder reads it, and its tokens.

    Of noisy token vectors, that of the tokens nearest to them, under the noise that they have.
    """
    if len(changing) > 1:
        (released,) = Chain(tuple(("text", stage) for stage in changing)).change(encoder)([text])
        return released, (), None
    (stage,) = changing
    opened = require_white_box(encoder, type(stage).__name__)
    (ids,) = opened.token_ids([text])
    if not ids:
        raise InvalidInputError("The encoder finds no word in this text. Type another one.")
    new = privatizer_of(stage, opened, generator_of(stage.seed)).tokens(np.array(ids, np.int64))
    names = opened.tokens
    pairs = ((names[old], names[n]) for old, n in zip(ids, new.tolist(), strict=True))
    return opened.text_of(new.tolist()), tuple(pairs), new
