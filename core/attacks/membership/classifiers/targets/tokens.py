"""Texts as token ids: words, or pieces of words, of a vocabulary that all models share.

It is counted over all texts, of members or not, so that what is in it tells of nobody's membership.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.encoders.dual.word_tokens import PAD, UNK, WordTokens
from core.encoders.minilm import minilm_folder
from core.errors import InvalidInputError

__all__ = ["TOKENISATIONS", "token_rows"]

TOKENISATIONS = ("word", "word-piece")

_SPECIAL = (PAD, UNK)


def token_rows(
    texts: Sequence[str], tokenisation: str, vocabulary_size: int, max_length: int
) -> tuple[NDArray[np.int64], int]:
    """Return the ids of each text, filled with PAD on the right, and the size of the vocabulary.

    Parameters
    ----------
    tokenisation : str
        `word`: runs of letters, and single signs; `word-piece`: as BERT splits words (Wu et al.
        2016). Of both the most frequent in these texts are known.
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
        return _filled([words.ids(text, max_length).tolist() for text in texts]), len(words)
    if tokenisation != "word-piece":
        raise InvalidInputError(
            f"tokenisation must be one of {', '.join(TOKENISATIONS)}, got {tokenisation!r}."
        )
    found = _pieces(texts, vocabulary_size - len(_SPECIAL))
    rows = [[row + len(_SPECIAL) if row >= 0 else UNK for row in rows] for rows in found]
    return _filled([row[:max_length] or [UNK] for row in rows]), vocabulary_size


def _pieces(texts: Sequence[str], size: int) -> list[list[int]]:
    """Return the rank of each piece of each text by how often it occurs, -1 beyond the size."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(
        minilm_folder(), local_files_only=True, trust_remote_code=False
    )
    found = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    counts = Counter(piece for row in found for piece in row)
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))[:size]
    rank = {piece: i for i, piece in enumerate(ranked)}
    return [[rank.get(piece, -1) for piece in row] for row in found]


def _filled(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    out = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for filled, row in zip(out, rows, strict=True):
        filled[: len(row)] = row
    return out
