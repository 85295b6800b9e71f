"""Tokenise texts into words or word pieces of a vocabulary that all models share.

The vocabulary is counted over all texts, members or not, so that it reveals no membership.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.encoders.dual.word_tokens import PAD, UNK, WordTokens
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.errors import InvalidInputError

TOKENISATIONS = ("word", "word-piece")

_SPECIAL = (PAD, UNK)


def token_rows(
    texts: Sequence[str], tokenisation: str, vocabulary_size: int, max_length: int
) -> tuple[NDArray[np.int64], int]:
    """Tokenise texts; return an array of ids, right-padded with PAD, and the vocabulary size.

    Parameters
    ----------
    tokenisation : str
        `word`: runs of letters, and single punctuation marks; `word-piece`: as BERT splits words
        (Wu et al. 2016). The vocabulary is the most frequent ones in these texts.
    max_length : int
        Tokens of a text that are read.

    Returns
    -------
    ids : ndarray of int64, shape (n, longest)
    n_tokens : int

    Raises
    ------
    InvalidInputError
        No such tokenisation.
    """
    if tokenisation == "word":
        words = WordTokens.count(texts, vocabulary_size)
        return _pad([words.ids(text, max_length).tolist() for text in texts]), len(words)
    if tokenisation != "word-piece":
        raise InvalidInputError(
            f"tokenisation must be one of {', '.join(TOKENISATIONS)}, got {tokenisation!r}."
        )
    found = _word_piece_ranks(texts, vocabulary_size - len(_SPECIAL))
    rows = [[row + len(_SPECIAL) if row >= 0 else UNK for row in rows] for rows in found]
    return _pad([row[:max_length] or [UNK] for row in rows]), vocabulary_size


def _word_piece_ranks(texts: Sequence[str], size: int) -> list[list[int]]:
    """Tokenise texts; return each word piece's frequency rank, -1 for ranks beyond the size."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(
        minilm_folder(), local_files_only=True, trust_remote_code=False
    )
    found = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    counts = Counter(piece for row in found for piece in row)
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))[:size]
    rank = {piece: i for i, piece in enumerate(ranked)}
    return [[rank.get(piece, -1) for piece in row] for row in found]


def _pad(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Stack lists of token ids into one array, right-padded with PAD."""
    out = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for filled, row in zip(out, rows, strict=True):
        filled[: len(row)] = row
    return out
