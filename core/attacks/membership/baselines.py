"""The blind baseline: whether texts alone, without the model, separate members from non-members.

CheckMIABench (2026) asks it of every benchmark of membership inference: an attack that never sees
the model must stay near chance on the same split, or the split leaks. Members and non-members of
two sources or of two dates differ in their words, and every attack finds that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.predictability import Predictability, predictability
from leakscope.core.attacks.membership.ranking import units_are_pure
from leakscope.core.units import cluster_ids

_MOST_WORDS = 20_000
_MOST_CHARACTERS = 100_000
"""The most characters of one unit's texts that are used."""


def blind_baseline(
    texts: Sequence[str],
    members: NDArray[np.bool_],
    units: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> Predictability:
    """Test how well the words and lengths of texts predict membership, without the model.

    Features are the tf-idf of words and of pairs of words, and the logarithms of the numbers of
    characters and of words. Where each unit is a member as a whole, such as a user or a book, its
    texts are one.

    Parameters
    ----------
    texts : sequence of str, (n,)
    members : ndarray of bool, shape (n,)
    units : sequence, optional
        The user or document of each text.

    Examples
    --------
    >>> old, new = ["a letter sent by post"] * 30, ["a message sent by phone"] * 30
    >>> blind_baseline(old + new, np.arange(60) < 30).is_above_chance
    True
    >>> blind_baseline(old + new, np.arange(60) % 2 == 0).is_above_chance
    False
    """
    rows = cluster_ids(units, len(texts))
    if len(np.unique(rows)) < len(rows) and units_are_pure(rows, members):
        joined: list[list[str]] = [[] for _ in range(int(rows.max()) + 1)]
        for row, text in zip(rows.tolist(), texts, strict=True):
            joined[row].append(text)
        texts = ["\n".join(own) for own in joined]
        members = members[np.unique(rows, return_index=True)[1]]
    return predictability(_text_features(texts), members, seed=seed)


def _text_features(texts: Sequence[str]) -> Any:
    """Return the features of texts as a sparse matrix: tf-idf of words and bigrams, and lengths."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    cut = [text[:_MOST_CHARACTERS] for text in texts]
    lengths = np.log1p([[len(text), len(text.split())] for text in texts])
    lengths = (lengths - lengths.mean(axis=0)) / np.maximum(lengths.std(axis=0), 1e-9)
    parts = [sparse.csr_matrix(lengths)]
    words = TfidfVectorizer(
        ngram_range=(1, 2),
        max_features=_MOST_WORDS,
        sublinear_tf=True,
        token_pattern=r"(?u)\b\w+\b",
    )
    with suppress(ValueError):  # no text has a word
        parts.append(words.fit_transform(cut))
    return sparse.csr_matrix(sparse.hstack(parts))
