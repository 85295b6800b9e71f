"""An attacker on one sentence's released tokens that knows the mechanism and token frequencies.

It recovers the most likely original tokens instead of taking the released ones; see
`leakscope.core.attacks.inversion.released_tokens.posterior`.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

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
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.mechanisms import make_privatizer
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.protected import generator_of
from leakscope.core.defences.registry import make_defence
from leakscope.core.defences.tried import DefendedSentence
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.specs import DefenceSpec
from leakscope.core.text import Vocabulary, words

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
    """Return whether a setting's token distribution is known and can be computed in seconds."""
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
        """Split texts at random into known and held-out ones, and count the known tokens.

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
        folded = [_folded(text) for text in known]
        starts = [0, *accumulate(map(len, folded))]
        prior = TokenPrior.of(rows, len(opened.tokens))
        vocabulary = Vocabulary.count(known)
        return cls(opened, known, held, rows, prior, vocabulary, "".join(folded), starts)

    def prior_beside(self, text: str) -> TokenPrior:
        """Return the token prior without texts that repeat or contain a sentence."""
        return self.prior.without([self.rows[i] for i in self.near_duplicates_of(text)])

    def near_duplicates_of(self, text: str) -> list[int]:
        """Return the indices of known texts that nearly repeat or contain a sentence.

        As `leakscope.core.corpora.near_duplicates`, for one text.
        """
        own = shingles(text)
        found = sorted({row for run in own for row in self._rows_with(" ".join(run))})
        return [row for row in found if _is_like(own, shingles(self.known[row]))]

    def _rows_with(self, run: str) -> list[int]:
        """Return the indices of known texts that contain a run of words."""
        sought, places, at = f" {run} ", [], -1
        while (at := self._folded.find(sought, at + 1)) >= 0:
            places.append(bisect_right(self._starts, at) - 1)
        return places


def fit_posterior_attack(own: AttackerTexts, spec: DefenceSpec, seed: int) -> PosteriorAttack:
    """Fit an attacker that knows the token distribution of a setting; it chooses a decoding.

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
    """Return the text of the most likely original tokens; None if no tokens were released.

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


def _folded(text: str) -> str:
    """Return a text's words between spaces, so that runs of words can be found."""
    return f" {' '.join(words(text))} \n"


def _is_like(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    """Return whether two sets of word runs nearly repeat or contain each other."""
    contained = len(one) > 1 and containment(one, other) >= CONTAINED
    return contained or similarity(one, other) >= THRESHOLD
