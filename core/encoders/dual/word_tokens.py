"""A word-level tokeniser for encoders trained from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError

PAD = 0
"""Id of the filler at the end of shorter texts of a batch."""
UNK = 1
"""Id of every word that is not in the vocabulary."""

_SPECIAL = ("[PAD]", "[UNK]")
_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}\p{Z}\p{C}]")


def split_tokens(text: str) -> list[str]:
    """Split a text into tokens: runs of letters and digits, and every other sign.

    Lower-cased after Unicode NFKC, as `leakscope.core.text.words` does; words of one letter and
    punctuation are kept, since they help to distinguish sentences.

    Examples
    --------
    >>> split_tokens("I can't, Ada!")
    ['i', 'can', "'", 't', ',', 'ada', '!']
    """
    return _TOKEN.findall(normalize("NFKC", text).lower())


@dataclass(frozen=True)
class WordTokens:
    """The token vocabulary: [PAD], [UNK] and the most frequent tokens of a corpus.

    Parameters
    ----------
    tokens : tuple of str
        In the order of their ids. No text yields a special token, since brackets are separate
        tokens.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ArtifactError unless the tokens are distinct and begin with [PAD] and [UNK]."""
        if self.tokens[:2] != _SPECIAL or len(set(self.tokens)) != len(self.tokens):
            raise ArtifactError(
                "The token vocabulary is damaged: it must start with [PAD] and [UNK] and contain "
                "each token once. Restore the file or train the encoder again."
            )

    @classmethod
    def count(cls, texts: Iterable[str], size: int) -> WordTokens:
        """Count tokens in texts; build a vocabulary of the `size` most frequent (ties: A–Z)."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_tokens(text))
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls(_SPECIAL + tuple(ranked[: size - len(_SPECIAL)]))

    def __len__(self) -> int:
        """Return |V|, special tokens included."""
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each token, by token."""
        return {token: i for i, token in enumerate(self.tokens)}

    def ids(self, text: str, limit: int | None = None) -> NDArray[np.int64]:
        """Tokenise a text; return its first `limit` token ids, [UNK] if unknown or empty."""
        found = [self.index.get(token, UNK) for token in split_tokens(text)[:limit]]
        return np.array(found or [UNK], dtype=np.int64)

    def text_of(self, ids: Sequence[int]) -> str:
        """Convert token ids to a text, tokens joined by spaces."""
        return " ".join(self.tokens[i] for i in ids)
