"""Tokenised texts as the service reads them: [CLS] a [SEP], or [CLS] a [SEP] b [SEP] for a pair.

The service adds the special tokens; the tokens between them are the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import WhiteBoxEncoder


@dataclass(frozen=True)
class Marks:
    """Ids of the special tokens that the service adds."""

    pad: int
    first: int
    between: int
    mask: int

    @classmethod
    def of(cls, encoder: WhiteBoxEncoder) -> Marks:
        """Look up the ids of an encoder's special tokens.

        Raises
        ------
        InvalidInputError
            It has others than models of BERT's kind.
        """
        place = {token: i for i, token in enumerate(encoder.tokens)}
        named = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
        if any(name not in place for name in named):
            raise InvalidInputError(
                f"{encoder.name} has no {', '.join(n for n in named if n not in place)}. Choose "
                "`minilm`, or an `mlm:ID` encoder of BERT's kind."
            )
        return cls(*(place[name] for name in named))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some tokenised texts as a matrix, padded on the right.

    Attributes
    ----------
    ids : int64 array (texts, length)
    is_user : bool array (texts, length)
        Word pieces of the text, not set by the service.
    is_there : bool array (texts, length)
        False where a shorter text is filled up.
    types : int64 array (texts, length)
        1 in the second text of a pair.
    """

    ids: NDArray[np.int64]
    is_user: NDArray[np.bool_]
    is_there: NDArray[np.bool_]
    types: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Tokenised texts, or pairs, with the service's special tokens.

    Attributes
    ----------
    rows : list of int64 array
    n_first : int64 array (n,)
        Word pieces of the first text of each.
    lengths : int64 array (n,)
        Marks included.
    """

    rows: list[NDArray[np.int64]]
    n_first: NDArray[np.int64]
    lengths: NDArray[np.int64]
    marks: Marks

    def __len__(self) -> int:
        """Return the number of texts or pairs."""
        return len(self.rows)

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """Pad the texts with the given row indices to equal length and return them as a Batch."""
        lengths = self.lengths[chosen]
        places = np.arange(int(lengths.max()))
        is_there = places < lengths[:, None]
        ids = np.full(is_there.shape, self.marks.pad, dtype=np.int64)
        ids[is_there] = np.concatenate([self.rows[i] for i in chosen])
        middle = self.n_first[chosen][:, None] + 1
        is_user = is_there & (places > 0) & (places != middle) & (places != lengths[:, None] - 1)
        return Batch(ids, is_user, is_there, ((places > middle) & is_there).astype(np.int64))


def tokenise_texts(
    encoder: WhiteBoxEncoder, first: Sequence[str], second: Sequence[str] = (), *, max_length: int
) -> Pieces:
    """Tokenise texts or pairs and truncate them to a length; the longer text of a pair is cut.

    Raises
    ------
    InvalidInputError
        The length leaves no room, or the encoder is not of BERT's kind.
    """
    marks = Marks.of(encoder)
    n_marks = 3 if second else 2
    if max_length <= n_marks:
        raise InvalidInputError(f"max_length must be above {n_marks}, got {max_length}.")
    own = encoder.token_ids(first, is_whole=True)
    other = encoder.token_ids(second, is_whole=True) if second else [[]] * len(own)
    rows, n_first = [], []
    for one, two in zip(own, other, strict=True):
        n_one, n_two = _kept_lengths(len(one), len(two), max_length - n_marks)
        tail = [*two[:n_two], marks.between] if second else []
        row = [marks.first, *one[:n_one], marks.between, *tail]
        rows.append(np.array(row, dtype=np.int64))
        n_first.append(n_one)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return Pieces(rows, np.array(n_first, dtype=np.int64), lengths, marks)


def _kept_lengths(n_one: int, n_two: int, room: int) -> tuple[int, int]:
    """Return how many tokens of each text of a pair fit into `room`: the longer is cut first."""
    over = n_one + n_two - room
    if over <= 0:
        return n_one, n_two
    shorter = min(n_one, n_two, room // 2)
    return (room - shorter, shorter) if n_one >= n_two else (shorter, room - shorter)


def batch_by_length(
    lengths: NDArray[np.int64], most: int, rng: np.random.Generator, *, pool: int = 4000
) -> list[NDArray[np.int64]]:
    """Group row indices of similar text length into batches of at most `most` places, shuffled.

    Rows of a pool of drawn ones are sorted by length, so that little is padding.
    """
    order, found = rng.permutation(len(lengths)), []
    for start in range(0, len(order), pool):
        part = order[start : start + pool]
        part = part[np.argsort(lengths[part], kind="stable")]
        begin = 0
        for end in range(1, len(part) + 1):
            is_last = end == len(part)
            if is_last or (end + 1 - begin) * lengths[part[end]] > most:
                found.append(part[begin:end])
                begin = end
    return [found[i] for i in rng.permutation(len(found))]
