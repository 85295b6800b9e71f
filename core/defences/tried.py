"""One sentence behind a defence or chain: the released text and the stored vector.

Both come from the same draw: the vector is that of the shown text. If only vectors change, an
attacker maps them back by a linear map learned on other protected texts; for released tokens see
`leakscope.core.defences.posterior_attack`. Trained defences are used as they ship.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.lifted import Lift
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.entries import ChainEntry
from leakscope.core.defences.metric_dp.mechanisms import TokenRepresentation, make_privatizer
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.protected import generator_of
from leakscope.core.defences.registry import entry_of
from leakscope.core.defences.shipped import find_shipped, with_trained
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.specs import DefenceSpec


@dataclass(frozen=True, eq=False)
class DefendedSentence:
    """What a defence releases of a sentence: text, tokens, vector and noisy token vectors.

    Attributes
    ----------
    text : str or None
        The released text; None if the sentence is encoded unchanged.
    tokens : tuple of (str, str)
        Each word piece of the sentence and its replacement, or the token nearest to its noisy
        vector if these vectors are released; empty if only the vector of the sentence is released,
        or if several mechanisms tokenise it again.
    vector : float32 array (1, m)
        What is stored.
    told : str or None
        The text of the released tokens, read literally; None if none are released.
    released : int64 array (k,) or None
        Those tokens, if a single mechanism released them.
    noisy : float32 array (k, d) or None
        The vectors of tokens, if these are released.
    eta : float
        The privacy parameter of their noise; 0 without any.
    """

    text: str | None
    tokens: tuple[tuple[str, str], ...]
    vector: Vectors
    told: str | None = None
    released: NDArray[np.int64] | None = None
    noisy: NDArray[np.float32] | None = None
    eta: float = 0.0


def defend_sentence(encoder: Encoder, spec: DefenceSpec, text: str, seed: int) -> DefendedSentence:
    """Apply a defence or chain to a sentence.

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
        released, tokens, ids = _release_text(encoder, changing, text)
        told = released
    elif stages[-1][0] == "tokens":
        told, tokens, ids = _release_text(encoder, [stages[-1][1]], text)
    with np.errstate(over="ignore", invalid="ignore"):
        vector = rest.protect(encoder).encode([text if released is None else released])
    if not np.isfinite(vector).all():
        raise InvalidInputError(
            f"{spec.name} produces numbers too large for float32. Choose a weaker setting."
        )
    if not entry.releases_tokens:
        return DefendedSentence(released, tokens, vector)
    if isinstance(made, TokenRepresentation):
        noisy = _noisy_token_vectors(require_white_box(encoder, entry.title), made, text)
        return DefendedSentence(released, tokens, vector, told, ids, noisy, made.eta)
    return DefendedSentence(released, tokens, vector, told, ids)


def fit_inverse_map(encoder: Encoder, spec: DefenceSpec, known: Vectors, seed: int) -> Lift | None:
    """Fit a linear map back from protected vectors; None if more than the vector changes.

    If more changes, other texts would have to be encoded behind the defence.

    Parameters
    ----------
    seed : int
        As `defend_sentence` had it: the attacker knows a matrix, and draws noise of their own.
    """
    entry = entry_of(spec.name)
    parts = entry.of.values() if isinstance(entry, ChainEntry) else (entry,)
    if any(part.acts_on != "vector" for part in parts):
        return None
    noise = DefenceSpec.of(spec.name, {"seed": seed + 1} if entry.draws_noise else {})
    own = {**dict(_seeded(spec, seed).settings), **dict(noise.settings)}
    made = with_trained(DefenceSpec.of(spec.name, own), find_shipped(spec, encoder.name))
    protected = made.protect(_FixedVectors(encoder, known))
    changed = protected.encode([""] * len(known))
    return Lift.fit(changed, known)


def _noisy_token_vectors(
    encoder: WhiteBoxEncoder, made: TokenRepresentation, text: str
) -> NDArray[np.float32]:
    """Return the noisy vectors of a text's tokens, which the encoder continues from."""
    (ids,) = encoder.token_ids([text])
    return release_under_noise(token_table(encoder)[ids], made.eta, generator_of(made.seed))


class _FixedVectors:
    """An encoder that returns given vectors for any texts."""

    def __init__(self, encoder: Encoder, vectors: Vectors) -> None:
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimension, self._vectors = encoder.dimension, vectors
        self.base = encoder

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the given vectors for as many texts."""
        assert len(texts) == len(self._vectors)
        return self._vectors


def _seeded(spec: DefenceSpec, seed: int) -> DefenceSpec:
    """Return a spec with a seed for all that is drawn, including a chain's projection matrix."""
    entry = entry_of(spec.name)
    parts = entry.of if isinstance(entry, ChainEntry) else {spec.name: entry}
    own: dict[str, Any] = {"seed": seed} if entry.takes_seed else {}
    for name, part in parts.items():
        if isinstance(entry, ChainEntry) and part.takes_seed and not part.draws_noise:
            own[f"{name}.seed"] = seed
    return DefenceSpec.of(spec.name, own | dict(spec.settings))


def _release_text(
    encoder: Encoder, changing: list[Any], text: str
) -> tuple[str, tuple[tuple[str, str], ...], NDArray[np.int64] | None]:
    """Release a text by mechanisms; return the new text, pairs of tokens, and new token ids.

    Noisy token vectors give the text of their nearest tokens.
    """
    if len(changing) > 1:
        (released,) = Chain(tuple(("text", stage) for stage in changing)).change(encoder)([text])
        return released, (), None
    (stage,) = changing
    opened = require_white_box(encoder, type(stage).__name__)
    (ids,) = opened.token_ids([text])
    if not ids:
        raise InvalidInputError("The encoder finds no word in this text. Type another text.")
    new = make_privatizer(stage, opened, generator_of(stage.seed)).tokens(np.array(ids, np.int64))
    names = opened.tokens
    pairs = ((names[old], names[n]) for old, n in zip(ids, new.tolist(), strict=True))
    return opened.text_of(new.tolist()), tuple(pairs), new
