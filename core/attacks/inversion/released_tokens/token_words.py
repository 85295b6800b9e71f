"""The encoder tokens that white-box attacks may choose, and the word that each spells."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.text import words

_WORD_STARTS = ("▁", "Ġ")
"""How SentencePiece and byte-level BPE mark a token that begins a word."""


def whole_words(tokens: Sequence[str]) -> list[str | None]:
    """Return, for each token string, the whole word that it spells, or None.

    Pieces of words, special and unused tokens, punctuation and single characters stand for none.

    Examples
    --------
    >>> whole_words(["cat", "##s", "[CLS]", "!", "a", "2004"])
    ['cat', None, None, None, None, '2004']
    >>> whole_words(["▁Cat", "s"])
    ['cat', None]
    """
    is_marked = any(token.startswith(_WORD_STARTS) for token in tokens)
    return [_word_of(token, is_marked) for token in tokens]


def _word_of(token: str, is_marked: bool) -> str | None:
    """Return the whole word that one token string spells, or None."""
    if is_marked:
        if not token.startswith(_WORD_STARTS):
            return None
        token = token[1:]
    found = words(token)
    # Equal lengths: nothing but the word is in the token, so neither "##s" nor "[unused1]".
    return found[0] if len(found) == 1 and len(found[0]) == len(token) else None


def regular_token_ids(
    encoder: WhiteBoxEncoder, *, words_only: bool = False, without: Collection[str] = ()
) -> NDArray[np.int64]:
    """Return the ids of an encoder's tokens, without special and unused ones; or of words only.

    Special and [unused…] tokens are left out always.

    Parameters
    ----------
    words_only : bool
        Leave out pieces, punctuation and single characters as well.
    without : collection of str
        Words to leave out.
    """
    tokens = encoder.tokens
    special = set(encoder.special_token_ids)
    return np.array(
        [
            i
            for i, (token, word) in enumerate(zip(tokens, whole_words(tokens), strict=True))
            if i not in special
            and not token.startswith("[unused")
            and not (words_only and word is None)
            and not (word is not None and word in without)
        ],
        dtype=np.int64,
    )
