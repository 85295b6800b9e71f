"""Who reads the released tokens of one sentence, and knows the mechanism and how tokens are used.

The likeliest tokens that went in are read, not those that came out; see
`core.attacks.inversion.posterior`.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from core.attacks.inversion.noisy_tokens import NoisyTokenReader, ReleasedTokenVectors
from core.attacks.inversion.posterior import PosteriorReader
from core.attacks.inversion.released import ReleasedTokens
from core.attacks.inversion.token_prior import TokenPrior
from core.corpora.near_duplicates import CONTAINED, THRESHOLD, containment, shingles, similarity
from core.defences.metric_dp.candidates import candidate_ids
from core.defences.metric_dp.mechanisms import privatizer_of
from core.defences.metric_dp.release import release_under_noise
from core.defences.protected import generator_of
from core.defences.registry import make_defence
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, WhiteBoxEncoder
from core.specs import DefenceSpec
from core.studies.tradeoff_tried import Defended
from core.text import Vocabulary, words

__all__ = ["TELLS", "OwnTexts", "law_of", "likeliest_text", "tells_law"]

TELLS = ("santext", "santext_plus", "custext", "tem")
"""Mechanisms that can tell P[y | x] of each token."""

NOISY = "token_representation"
"""The mechanism whose density is known, P[z | x] of each token's noisy vector."""

Law = PosteriorReader | NoisyTokenReader

_N_HELD = 200
"""The attacker's texts on which a reading is chosen, at most a tenth of them."""
_MOST_MEMBERS = 100
"""Tokens of an output set of CusText up to which it is read live."""


def tells_law(spec: DefenceSpec) -> bool:
    """Whether there is such a reader of what a setting releases, within seconds."""
    members: Any = dict(spec.settings).get("k", 0)
    return spec.name in (*TELLS, NOISY) and members <= _MOST_MEMBERS


@dataclass(frozen=True, eq=False)
class OwnTexts:
    """Texts of the attacker's own: what they tell of tokens, without any that a sentence repeats.

    Attributes
    ----------
    known, held : tuple of str
        Those that are counted, and those on which a reading is chosen.
    rows : list of list of int
        The tokens of each known one.
    prior : TokenPrior
        How these use tokens.
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
    def of(cls, encoder: Encoder, texts: Sequence[str], seed: int) -> OwnTexts:
        """Part texts by chance, and count their tokens.

        Raises
        ------
        InvalidInputError
            The encoder is no white box, or the texts hold no token.
        """
        opened = require_white_box(encoder, "The reader of tokens")
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
        """Return what the texts tell without those that a sentence nearly repeats or stands in."""
        return self.prior.without([self.rows[i] for i in self.like(text)])

    def like(self, text: str) -> list[int]:
        """Return the places of known texts that a sentence nearly repeats, or stands in.

        As `core.corpora.near_duplicates`, of one text.
        """
        own = shingles(text)
        found = sorted({row for run in own for row in self._rows_with(" ".join(run))})
        return [row for row in found if _is_like(own, shingles(self.known[row]))]

    def _rows_with(self, run: str) -> list[int]:
        sought, places, at = f" {run} ", [], -1
        while (at := self._folded.find(sought, at + 1)) >= 0:
            places.append(bisect_right(self._starts, at) - 1)
        return places


def law_of(own: OwnTexts, spec: DefenceSpec, seed: int) -> Law:
    """Return who knows what a setting does to each token, and chose a reading.

    Takes seconds: of each token that the texts hold it is asked what may become of it. What is
    kept is of these tokens alone.

    Parameters
    ----------
    spec : DefenceSpec
        One of which `tells_law` is true.
    seed : int
        Of the attacker's own draws, by which the reading is chosen.
    """
    if spec.name == NOISY:
        eta, rng = float(dict(spec.settings)["eta"]), generator_of(seed)
        vectors = ReleasedTokenVectors(
            own.encoder, eta, rng, identity=spec.name, release=release_under_noise
        )
        return NoisyTokenReader(own.vocabulary).fit(vectors, own.known, own.held, own.prior)
    change: Any = privatizer_of(make_defence(spec), own.encoder, generator_of(seed))
    released = ReleasedTokens(own.encoder, change.tokens, identity=spec.name)
    return PosteriorReader(own.vocabulary, change).fit(released, own.known, own.held, own.prior)


def likeliest_text(own: OwnTexts, found: Defended, prior: TokenPrior, law: Law) -> str | None:
    """Return the text of the likeliest tokens under what was released; None where nothing was.

    Special tokens are no words, and left out.

    Parameters
    ----------
    prior : TokenPrior
        See `OwnTexts.prior_beside`.
    law : PosteriorReader or NoisyTokenReader
        What the mechanism does.
    """
    seen: Any = found.released if found.noisy is None else found.noisy
    if seen is None:
        return None
    knowing = copy.copy(law)
    knowing.prior_ = prior
    (read,) = knowing.read([seen])
    return own.encoder.text_of(read[np.isin(read, candidate_ids(own.encoder))].tolist())


def _folded(text: str) -> str:
    """Return the words of a text between spaces, so that runs of them are found."""
    return f" {' '.join(words(text))} \n"


def _is_like(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    contained = len(one) > 1 and containment(one, other) >= CONTAINED
    return contained or similarity(one, other) >= THRESHOLD
