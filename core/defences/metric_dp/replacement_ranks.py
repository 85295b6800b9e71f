"""Which neighbour of a token replaces it: the token itself, a near one, or an unrelated one.

Asghar et al. (2024, arXiv 2411.13784) hold against d_χ-privacy that in many dimensions it returns
the very token or any other, and seldom a near one. So the rank of the replacement among the
original's neighbours is reported: 0 is the token itself, 1 its nearest neighbour, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.metric_dp.exponential_mechanism import Distances, draw_in_blocks
from leakscope.core.defences.metric_dp.texts import TokenPrivatizer
from leakscope.core.protocols import WhiteBoxEncoder

RANKS = (0, 10, 100, 1000)
"""The last rank of each class except the last: itself, its 10 nearest, its 100 nearest, …"""

_MOST_TOKENS = 4000


@dataclass(frozen=True, eq=False)
class ReplacementRanks:
    """The rank of each replacement among its original token's nearest neighbours.

    Attributes
    ----------
    ranks : int64 array (n,)
    n_candidates : int
        Tokens that could have come out.
    """

    ranks: NDArray[np.int64]
    n_candidates: int

    @property
    def shares(self) -> dict[str, float]:
        """The share of replacements in each rank class, by the class's name."""
        return {name: float(held.mean()) for name, held in rank_classes(self.ranks).items()}

    @property
    def sentence(self) -> str:
        """One sentence on how many tokens stayed unchanged or became a near neighbour."""
        own, near, *_ = self.shares.values()
        start = (
            f"Of {len(self.ranks):,} tokens, {own:.0%} stayed unchanged, and {near:.0%} became "
            f"one of their {RANKS[1]} nearest neighbours"
        )
        if self.middle is None:
            return f"{start}. None became a farther token."
        return (
            f"{start}. The median rank of the other replacements is {self.middle:,} of "
            f"{self.n_candidates:,}."
        )

    @property
    def middle(self) -> int | None:
        """The median rank of replacements beyond the nearest neighbours; None if there are none."""
        others = self.ranks[self.ranks > RANKS[1]]
        return int(np.median(others)) if len(others) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the share of each rank class as a JSON-able dict."""
        return {"n": len(self.ranks), "n_candidates": self.n_candidates, "shares": self.shares}


def rank_classes(ranks: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Return a mask over (n,) ranks for each rank class, by the class's name.

    Examples
    --------
    >>> classes = rank_classes(np.array([0, 10])).items()
    >>> {name: mask.tolist() for name, mask in classes if mask.any()}
    {'0': [True, False], '1-10': [False, True]}
    """
    names = ["0", *(f"{a + 1}-{b}" for a, b in pairwise(RANKS)), f"{RANKS[-1] + 1} and more"]
    places = np.searchsorted(RANKS, ranks)
    return {name: places == i for i, name in enumerate(names)}


def replacement_ranks(
    distances: Distances, originals: NDArray[np.int64], replaced: NDArray[np.int64]
) -> ReplacementRanks:
    """Compute the rank of each replacement among its original token's nearest neighbours.

    Parameters
    ----------
    distances : Distances
        To the candidates, which include the replacements.
    originals, replaced : int64 arrays (n,)
        Tokens. Of candidates equally near, none counts before another. The original itself has
        rank 0, be it a candidate or not.
    """
    pairs = originals * len(distances.vectors) + replaced

    def ranked(block: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
        own, other = np.divmod(block, len(distances.vectors))
        found = distances.of(own)
        place = np.searchsorted(distances.ids, other)
        reached = found[np.arange(len(block)), place]
        n_nearer = (found < reached[:, None]).sum(1)
        is_own_counted = np.isin(own, distances.ids) & (reached > 0)
        n_nearer += (own != other) & ~is_own_counted
        return n_nearer[which]

    ranks = draw_in_blocks(pairs, ranked)
    return ReplacementRanks(ranks, len(distances.ids))


def ranks_in_texts(privatizer: TokenPrivatizer, texts: Sequence[str]) -> ReplacementRanks | None:
    """Privatise the tokens of texts once; return their replacement ranks, or None if empty."""
    encoder = privatizer.encoder
    rows = encoder.token_ids(list(texts)) if texts else []
    ids = np.array([i for row in rows for i in row][:_MOST_TOKENS], np.int64)
    if not len(ids):
        return None
    return replacement_ranks(Distances(encoder, privatizer.ids), ids, privatizer.tokens(ids))


def bundled_tokens(
    encoder: WhiteBoxEncoder, n_texts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokenise `n_texts` bundled sentences; return the (n,) token ids and sentence indices."""
    sentences = bundled_sentences()
    some = sentences[:: max(1, len(sentences) // n_texts)][:n_texts]
    rows = encoder.token_ids(some)
    ids = np.array([i for row in rows for i in row], np.int64)
    return ids, np.repeat(np.arange(len(rows)), [len(row) for row in rows])
