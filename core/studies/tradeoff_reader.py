"""Who reads the released tokens of one sentence, and knows the mechanism and how tokens are used.

The likeliest tokens that went in are read, not those that came out; see
`core.attacks.inversion.posterior`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.posterior import PosteriorReader
from core.attacks.inversion.released import ReleasedTokens
from core.attacks.inversion.token_prior import TokenPrior
from core.defences.metric_dp.likeliest import LikeliestTokens
from core.defences.metric_dp.mechanisms import TokenRepresentation, privatizer_of
from core.defences.protected import generator_of
from core.defences.registry import ChainEntry, entry_of, make_defence
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, WhiteBoxEncoder
from core.specs import DefenceSpec
from core.text import Vocabulary

__all__ = ["TokensReader", "reader_of"]

_N_HELD = 200
"""The attacker's texts on which a reading is chosen, at most a tenth of them."""


@dataclass(frozen=True, eq=False)
class TokensReader:
    """Reads what one setting of a mechanism released of a sentence.

    Attributes
    ----------
    known : frozenset of str
        The attacker's texts. One that is the sentence itself is left out of what is known.
    prior : TokenPrior
        How tokens are used there.
    law : PosteriorReader or None
        Knows what the mechanism does to each token; None where noisy vectors of tokens are
        released, whose density is known.
    """

    encoder: WhiteBoxEncoder
    spec: DefenceSpec
    known: frozenset[str]
    prior: TokenPrior
    law: PosteriorReader | None

    def read(self, text: str, released: NDArray[np.int64], seed: int) -> str:
        """Return the text of the likeliest tokens.

        Parameters
        ----------
        text : str
            The sentence that went in.
        released : int64 array (k,)
            What became of its tokens.
        seed : int
            With which it was protected: noisy vectors are drawn with it again.
        """
        (own,) = self.encoder.token_ids([text])
        prior = self.prior.without(own) if text in self.known else self.prior
        if self.law is None:
            made: Any = make_defence(self.spec)
            rng = generator_of(seed if made.seed is None else made.seed)
            noisy = LikeliestTokens(self.encoder, made.eta, prior.log, rng)
            return self.encoder.text_of(noisy.tokens(np.array(own, np.int64)).tolist())
        law = copy.copy(self.law)
        law.prior_ = prior
        (read,) = law.read([released])
        return self.encoder.text_of(read.tolist())


def reader_of(
    encoder: Encoder, spec: DefenceSpec, known: Sequence[str], seed: int
) -> TokensReader | None:
    """Return who reads a setting's released tokens; None where it cannot tell what it does.

    Takes seconds where each token that the texts hold is asked what may become of it.

    Parameters
    ----------
    known : sequence of str
        Texts of the attacker's own, in any order.
    seed : int
        Of what the attacker draws, to choose a reading by.

    Raises
    ------
    InvalidInputError
        The texts hold no token.
    """
    entry = entry_of(spec.name)
    if isinstance(entry, ChainEntry) or not entry.releases_tokens:
        return None
    opened = require_white_box(encoder, entry.title)
    made: Any = make_defence(spec)
    change: Any = privatizer_of(made, opened, generator_of(seed))
    is_noise = isinstance(made, TokenRepresentation)
    if not is_noise and not hasattr(change, "chances"):
        return None
    n_held = min(_N_HELD, len(known) // 10)
    held, rest = known[:n_held], known[n_held:]
    law: PosteriorReader | None = None
    if not is_noise:
        released = ReleasedTokens(opened, change.tokens, identity=spec.name)
        law = PosteriorReader(Vocabulary.count(rest), change).fit(released, rest, held)
    prior = law.prior_ if law else TokenPrior.of(opened.token_ids(rest), len(opened.tokens))
    return TokensReader(opened, spec, frozenset(rest), prior, law)
