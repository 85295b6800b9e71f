"""One sentence behind a defence or chain: the released text, the stored vector, and an attacker.

Both come from the same draw: the vector is that of the shown text. If only vectors change, an
attacker maps them back by a linear map learned on other protected texts; for released tokens,
`fit_posterior_attack` recovers the most likely original tokens instead of taking the released ones
(`leakscope.core.attacks.inversion.released_tokens.posterior`). Trained defences are used as they
ship.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.lifted import Lift
from leakscope.core.attacks.inversion.released_tokens.noisy_tokens import (
    NoisyTokenReader,
    ReleasedTokenVectors,
)
from leakscope.core.attacks.inversion.released_tokens.posterior import PosteriorReader, TokenPrior
from leakscope.core.attacks.inversion.released_tokens.released import ReleasedTokens
from leakscope.core.corpora.near_duplicates import (
    CONTAINED,
    THRESHOLD,
    containment,
    shingles,
    similarity,
)
from leakscope.core.defences.adaptive_attack import KnownVectors
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.entries import ChainEntry
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.mechanisms import TokenRepresentation, make_privatizer
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.protected import generator_of
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.defences.stored import find_shipped, with_trained
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, Vectors, WhiteBoxEncoder
from leakscope.core.specs import DefenceSpec
from leakscope.core.text import Vocabulary, words


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
    """Apply a defence or chain to one sentence; return the text, tokens and vector it releases.

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
    made: Any = with_trained(_set_seeds(spec, seed), find_shipped(spec, encoder.name))
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
        opened = require_white_box(encoder, entry.title)
        (own,) = opened.token_ids([text])
        noisy = release_under_noise(token_table(opened)[own], made.eta, generator_of(made.seed))
        return DefendedSentence(released, tokens, vector, told, ids, noisy, made.eta)
    return DefendedSentence(released, tokens, vector, told, ids)


def fit_inverse_map(encoder: Encoder, spec: DefenceSpec, known: Vectors, seed: int) -> Lift | None:
    """Fit a linear map from protected to plain vectors; None unless only the vector changes.

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
    own = {**dict(_set_seeds(spec, seed).settings), **dict(noise.settings)}
    made = with_trained(DefenceSpec.of(spec.name, own), find_shipped(spec, encoder.name))
    texts = [""] * len(known)
    return Lift.fit(made.protect(KnownVectors(encoder, texts, known)).encode(texts), known)


def _set_seeds(spec: DefenceSpec, seed: int) -> DefenceSpec:
    """Return a spec with `seed` for all noise and a chain's matrix, unless it has its own seeds."""
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
    """Replace a text's tokens by mechanisms; return the new text, token pairs and new token ids.

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


TELLS = ("santext", "santext_plus", "custext", "tem")
"""Mechanisms with a known P[y | x] for each token."""

NOISY = "token_representation"
"""The mechanism with a known density P[z | x] of each token's noisy vector."""

PosteriorAttack = PosteriorReader | NoisyTokenReader

_N_HELD = 200
"""Held-out texts that choose the decoding; at most a tenth of the attacker's texts."""
_MOST_MEMBERS = 100
"""The largest output set of CusText that is attacked live."""


def has_known_distribution(spec: DefenceSpec) -> bool:
    """Return whether a spec's P[output | token] is known and can be computed in seconds."""
    members: Any = dict(spec.settings).get("k", 0)
    return spec.name in (*TELLS, NOISY) and members <= _MOST_MEMBERS


@dataclass(frozen=True, eq=False)
class AttackerTexts:
    """The attacker's texts and their token frequencies, without repeats of a given sentence.

    Attributes
    ----------
    known, held : tuple of str
        Texts whose tokens are counted, and held-out texts that choose the decoding.
    rows : list of list of int
        The tokens of each known text.
    prior : TokenPrior
        Their token frequencies.
    """

    encoder: WhiteBoxEncoder
    known: tuple[str, ...]
    held: tuple[str, ...]
    rows: list[list[int]]
    prior: TokenPrior
    vocabulary: Vocabulary
    _folded: str
    _starts: list[int]

    @classmethod
    def of(cls, encoder: Encoder, texts: Sequence[str], seed: int) -> AttackerTexts:
        """Split texts at random into known and held-out; tokenise and count the known ones.

        Raises
        ------
        InvalidInputError
            The encoder is not a white box, or the texts contain no token.
        """
        opened = require_white_box(encoder, "The token decoder")
        mixed = [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))]
        n_held = min(_N_HELD, len(mixed) // 10)
        held, known = tuple(mixed[:n_held]), tuple(mixed[n_held:])
        rows = opened.token_ids(known)
        folded = [_frame_words(text) for text in known]
        starts = [0, *accumulate(map(len, folded))]
        prior = TokenPrior.of(rows, len(opened.tokens))
        vocabulary = Vocabulary.count(known)
        return cls(opened, known, held, rows, prior, vocabulary, "".join(folded), starts)

    def prior_beside(self, text: str) -> TokenPrior:
        """Return the token frequencies of the known texts that do not repeat a given sentence."""
        return self.prior.without([self.rows[i] for i in self.near_duplicates_of(text)])

    def near_duplicates_of(self, text: str) -> list[int]:
        """Return the indices of known texts that nearly repeat or contain the given text.

        As `leakscope.core.corpora.near_duplicates`, for one text.
        """
        own = shingles(text)
        found = sorted({row for run in own for row in self._rows_with(" ".join(run))})
        return [row for row in found if _nearly_repeats(own, shingles(self.known[row]))]

    def _rows_with(self, run: str) -> list[int]:
        """Return the index of a known text for each place where a run of words occurs."""
        sought, places, at = f" {run} ", [], -1
        while (at := self._folded.find(sought, at + 1)) >= 0:
            places.append(bisect_right(self._starts, at) - 1)
        return places


def fit_posterior_attack(own: AttackerTexts, spec: DefenceSpec, seed: int) -> PosteriorAttack:
    """Fit an attack that knows a setting's token distribution; held-out texts choose its decoder.

    Takes seconds: it computes the output distribution of every token in the texts.

    Parameters
    ----------
    spec : DefenceSpec
        A setting for which `has_known_distribution` is true.
    seed : int
        Random seed of the attacker's draws, which choose the decoding.
    """
    if spec.name == NOISY:
        eta, rng = float(dict(spec.settings)["eta"]), generator_of(seed)
        vectors = ReleasedTokenVectors(
            own.encoder, eta, rng, identity=spec.name, release=release_under_noise
        )
        return NoisyTokenReader(own.vocabulary).fit(vectors, own.known, own.held, own.prior)
    change: Any = make_privatizer(make_defence(spec), own.encoder, generator_of(seed))
    released = ReleasedTokens(own.encoder, change.tokens, identity=spec.name)
    return PosteriorReader(own.vocabulary, change).fit(released, own.known, own.held, own.prior)


def likeliest_text(
    own: AttackerTexts, found: DefendedSentence, prior: TokenPrior, law: PosteriorAttack
) -> str | None:
    """Decode a released sentence to its likeliest original text; None if it has no tokens.

    Special tokens are left out.

    Parameters
    ----------
    prior : TokenPrior
        See `AttackerTexts.prior_beside`.
    law : PosteriorReader or NoisyTokenReader
        The fitted attacker, which knows the mechanism.
    """
    seen: Any = found.released if found.noisy is None else found.noisy
    if seen is None:
        return None
    knowing = copy.copy(law)
    knowing.prior_ = prior
    (read,) = knowing.read([seen])
    return own.encoder.text_of(read[np.isin(read, candidate_ids(own.encoder))].tolist())


def _frame_words(text: str) -> str:
    """Return a text's words joined and framed by spaces, so that runs of words can be found."""
    return f" {' '.join(words(text))} \n"


def _nearly_repeats(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    """Return whether two texts, as sets of word runs, nearly repeat or contain each other."""
    contained = len(one) > 1 and containment(one, other) >= CONTAINED
    return contained or similarity(one, other) >= THRESHOLD
