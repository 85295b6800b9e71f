"""What replaces a token: itself, a near one, or one unrelated to it.

Asghar et al. (2024, arXiv 2411.13784) hold against d_χ-privacy that in many dimensions it returns
the very token or any other, and seldom a near one. So the rank of the replacement among the
original's neighbours is told: 0 is the token itself, 1 its nearest neighbour, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpora import bundled_sentences
from core.defences.metric_dp.ahead import drawn_in_blocks
from core.defences.metric_dp.choosing import Distances
from core.defences.metric_dp.texts import TokenPrivatizer
from core.protocols import WhiteBoxEncoder

__all__ = [
    "RANKS",
    "ReplacementRanks",
    "bundled_tokens",
    "classes_of",
    "ranks_in_texts",
    "replacement_ranks",
]

RANKS = (0, 10, 100, 1000)
"""The last rank of each class but the last: itself, its 10 nearest, its 100 nearest, …"""

_MOST_TOKENS = 4000


@dataclass(frozen=True, eq=False)
class ReplacementRanks:
    """Ranks of replacements among their originals' neighbours.

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
        """The share of each class of ranks."""
        return {name: float(held.mean()) for name, held in classes_of(self.ranks).items()}

    @property
    def said(self) -> str:
        """What becomes of tokens, in a sentence."""
        own, near, *_ = self.shares.values()
        told = (
            f"Of {len(self.ranks):,} tokens {own:.0%} came back, {near:.0%} became one of their "
            f"{RANKS[1]} nearest neighbours"
        )
        if self.middle is None:
            return f"{told}, and none one farther away."
        return (
            f"{told}, and half of the others one beyond rank {self.middle:,} of "
            f"{self.n_candidates:,}."
        )

    @property
    def middle(self) -> int | None:
        """The median rank of what became none of the nearest; None where all did."""
        others = self.ranks[self.ranks > RANKS[1]]
        return int(np.median(others)) if len(others) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"n": len(self.ranks), "n_candidates": self.n_candidates, "shares": self.shares}


def classes_of(ranks: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Return for each class of ranks which of (n,) ranks it holds.

    Examples
    --------
    >>> {name: held.tolist() for name, held in classes_of(np.array([0, 10])).items() if held.any()}
    {'0': [True, False], '1-10': [False, True]}
    """
    names = ["0", *(f"{a + 1}-{b}" for a, b in pairwise(RANKS)), f"{RANKS[-1] + 1} and more"]
    places = np.searchsorted(RANKS, ranks)
    return {name: places == i for i, name in enumerate(names)}


def replacement_ranks(
    distances: Distances, originals: NDArray[np.int64], replaced: NDArray[np.int64]
) -> ReplacementRanks:
    """Return at which rank of its original's neighbours each replacement stands.

    Parameters
    ----------
    distances : Distances
        To the candidates, of which the replacements are.
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

    ranks = drawn_in_blocks(pairs, ranked)
    return ReplacementRanks(ranks, len(distances.ids))


def ranks_in_texts(privatizer: TokenPrivatizer, texts: Sequence[str]) -> ReplacementRanks | None:
    """Return the ranks for tokens of these texts, drawn for this alone; None without a token."""
    encoder = privatizer.encoder
    rows = encoder.token_ids(list(texts)) if texts else []
    ids = np.array([i for row in rows for i in row][:_MOST_TOKENS], np.int64)
    if not len(ids):
        return None
    return replacement_ranks(Distances(encoder, privatizer.ids), ids, privatizer.tokens(ids))


def bundled_tokens(
    encoder: WhiteBoxEncoder, n_texts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the (n,) tokens of so many sentences that ship, and the sentence of each."""
    sentences = bundled_sentences()
    some = sentences[:: max(1, len(sentences) // n_texts)][:n_texts]
    rows = encoder.token_ids(some)
    ids = np.array([i for row in rows for i in row], np.int64)
    return ids, np.repeat(np.arange(len(rows)), [len(row) for row in rows])
