"""Texts as token ids: words, or pieces of words, of a vocabulary that all models share.

It is counted over all texts, of members or not, so that what is in it tells of nobody's membership.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.encoders.dual.word_tokens import PAD, UNK, WordTokens
from core.errors import InvalidInputError

__all__ = ["TOKENISATIONS", "token_rows"]

TOKENISATIONS = ("word", "word-piece")

_LEAST_PIECES = 200
"""With fewer the signs that a text is written in would not all be among the pieces."""


def token_rows(
    texts: Sequence[str], tokenisation: str, vocabulary_size: int, max_length: int
) -> tuple[NDArray[np.int64], int]:
    """Return the ids of each text, filled with PAD on the right, and the size of the vocabulary.

    Parameters
    ----------
    tokenisation : str
        `word`: runs of letters and single signs, the most frequent ones; `word-piece`: as BERT
        splits words (Wu et al. 2016), the pieces learnt from these texts.
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
    pieces = _pieces(texts, max(vocabulary_size, _LEAST_PIECES))
    found = [each.ids[:max_length] or [UNK] for each in pieces.encode_batch(list(texts))]
    return _filled(found), pieces.get_vocab_size()


def _pieces(texts: Sequence[str], size: int):  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[PAD]", "[UNK]"], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _filled(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    out = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for filled, row in zip(out, rows, strict=True):
        filled[: len(row)] = row
    return out
