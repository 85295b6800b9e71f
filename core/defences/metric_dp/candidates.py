"""The tokens that a mechanism may return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import WhiteBoxEncoder

CANDIDATES = ("regular", "whole", "all")
"""`regular`: every token that a text can hold (Qu et al. 2021, §5.3: no [PAD], [CLS], [SEP],
[MASK], [UNK], no [unused]); `whole`: those of them that begin a word; `all`: every row."""


def candidate_ids(encoder: WhiteBoxEncoder, which: str = "regular") -> NDArray[np.int64]:
    """Return the ascending ids of the encoder's tokens that a mechanism may return.

    Raises
    ------
    InvalidInputError
        Not one of CANDIDATES.
    """
    if which not in CANDIDATES:
        raise InvalidInputError(
            f"candidates must be one of {', '.join(CANDIDATES)}, got {which!r}."
        )
    tokens = encoder.tokens
    if which == "all":
        return np.arange(len(tokens))
    special = set(encoder.special_token_ids)
    kept = [i for i, t in enumerate(tokens) if i not in special and not t.startswith("[unused")]
    if which == "whole":
        is_marked = any(tokens[i].startswith(("▁", "Ġ")) for i in kept)
        kept = [i for i in kept if _begins_word(tokens[i], is_marked)]
    return np.array(kept, dtype=np.int64)


def _begins_word(token: str, is_marked: bool) -> bool:
    """Return whether a token begins a word.

    WordPiece marks the tokens that do not; BPE and unigram mark those that do.
    """
    return token.startswith(("▁", "Ġ")) if is_marked else not token.startswith("##")
