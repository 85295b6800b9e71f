"""Deniability of the whole vocabulary: N_w and S_w of every regular token on a grid of η.

Computed once for an encoder and kept on disk; the statistics of MiniLM ship with the project.
`python -m core.defences.deniability.vocabulary --out assets/deniability/minilm` makes them anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.assets import ASSETS
from core.defences.deniability.engine import DeniabilityEngine
from core.defences.metric_dp.candidates import candidate_ids
from core.errors import EncoderMismatchError, InvalidInputError
from core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from core.store import load_artifact, save_artifact

__all__ = [
    "NAMED_ETAS",
    "SHIPPED",
    "VocabularyDeniability",
    "eta_grid",
    "load_vocabulary",
    "measure_vocabulary",
    "save_vocabulary",
]

NAMED_ETAS = (30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0)
"""η at which MiniLM's tokens come back as often as BERT's at the η of Qu et al. (2021): the two
scales differ with the dimension and the lengths of the token vectors."""

SHIPPED = ASSETS / "deniability"
"""The statistics that ship, a folder an encoder."""

PANEL = 1024
"""Tokens walked at a time; bounds the memory."""


@dataclass(frozen=True, kw_only=True)
class VocabularyDeniability:
    """N_w and S_w of every candidate token.

    Attributes
    ----------
    tokens : int64 array (W,)
        The encoder's tokens, ascending.
    etas : float64 array (G,)
        Ascending.
    n_w, s_w : uint16 array (W, G)
        Of `n_draws` draws, under the first seed.
    ranks : int64 array (R,)
        Numbers of draws.
    eta_at_rank : float32 array (W, R)
        The smallest η at which N_w reaches each rank: N_w is read off it at any η.
    mean_n_w, mean_s_w : float64 array (sets of draws, G)
        Means over the vocabulary, a row per seed: their spread is the uncertainty of the means.
    """

    encoder: str
    fingerprint: str
    candidates: str
    n_draws: int
    seeds: tuple[int, ...]
    seconds: float
    tokens: NDArray[np.int64]
    etas: NDArray[np.float64]
    n_w: NDArray[np.uint16]
    s_w: NDArray[np.uint16]
    ranks: NDArray[np.int64]
    eta_at_rank: NDArray[np.float32]
    mean_n_w: NDArray[np.float64]
    mean_s_w: NDArray[np.float64]

    def at(self, eta: float) -> int:
        """Return the column of the grid's η nearest to `eta`, by ratio."""
        return int(np.abs(np.log(self.etas / eta)).argmin())


def eta_grid(dimension: int, n: int = 41) -> NDArray[np.float64]:
    """Return an ascending grid of η from 15 to 200 at n = 384, scaled with the dimension.

    `NAMED_ETAS` and the η of Qu et al. (2021, Table 3) are among it.
    """
    scale = dimension / 384
    plain = np.round(np.geomspace(15, 200, n), 1)
    return np.unique(np.concatenate([plain, NAMED_ETAS, (50, 100, 125, 150, 175)])) * scale


def measure_vocabulary(
    encoder: WhiteBoxEncoder,
    *,
    etas: NDArray[np.float64] | None = None,
    candidates: str = "regular",
    n_draws: int = 1000,
    seeds: tuple[int, ...] = (0,),
    n_threads: int | None = None,
    on_progress: OnProgress = no_progress,
) -> VocabularyDeniability:
    """Count the outcomes of every candidate token at every η of a grid.

    Raises
    ------
    InvalidInputError
        No seed, or more than 65,535 draws.
    StoppedError
        `on_progress` asked to stop.
    """
    if not seeds or not 2 <= n_draws <= 65_535:
        raise InvalidInputError("Give at least one seed, and 2 to 65,535 draws.")
    start = time.perf_counter()
    grid = eta_grid(encoder.dimension) if etas is None else np.unique(np.asarray(etas, np.float64))
    vectors = encoder.token_vectors.detach().float().cpu().numpy()
    tokens = candidate_ids(encoder, candidates)
    ranks = np.unique(np.round(np.linspace(0, n_draws, 41)[1:]).astype(np.int64))
    n_w = np.empty((len(seeds), len(tokens), len(grid)), np.uint16)
    s_w = np.empty_like(n_w)
    eta_at_rank = np.empty((len(tokens), len(ranks)), np.float32)
    n_panels = len(seeds) * -(-len(tokens) // PANEL)
    done = 0
    for which, seed in enumerate(seeds):
        engine = DeniabilityEngine(
            vectors,
            tokens,
            n_draws=n_draws,
            seed=seed,
            eta_min=grid[0],
            n_threads=n_threads,
            device="cuda" if encoder.token_vectors.is_cuda else "cpu",
        )
        for first in range(0, len(tokens), PANEL):
            rows = slice(first, first + PANEL)
            n_w[which, rows], s_w[which, rows], eta_star = engine.outcomes(tokens[rows], grid)
            if which == 0:
                eta_at_rank[rows] = eta_star[:, ranks - 1]
            done += 1
            on_progress(done / n_panels, f"{done * PANEL:,} of {n_panels * PANEL:,} tokens")
    return VocabularyDeniability(
        encoder=encoder.name,
        fingerprint=encoder.fingerprint,
        candidates=candidates,
        n_draws=n_draws,
        seeds=seeds,
        seconds=time.perf_counter() - start,
        tokens=tokens,
        etas=grid,
        n_w=n_w[0],
        s_w=s_w[0],
        ranks=ranks,
        eta_at_rank=eta_at_rank,
        mean_n_w=n_w.mean(1, dtype=np.float64),
        mean_s_w=s_w.mean(1, dtype=np.float64),
    )


_ARRAYS = ("tokens", "etas", "n_w", "s_w", "ranks", "eta_at_rank", "mean_n_w", "mean_s_w")
_FACTS = ("encoder", "fingerprint", "candidates", "n_draws", "seeds", "seconds")


def save_vocabulary(folder: Path, found: VocabularyDeniability) -> Path:
    """Write the statistics as an artifact; `eta_at_rank` is rounded to float16."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(found, name) for name in _ARRAYS}
    arrays["eta_at_rank"] = arrays["eta_at_rank"].astype(np.float16)
    facts = {name: getattr(found, name) for name in _FACTS}
    return save_artifact(folder, arrays, {"kind": "deniability", **facts})


def load_vocabulary(folder: Path, encoder: WhiteBoxEncoder | None = None) -> VocabularyDeniability:
    """Read what `save_vocabulary` wrote.

    Raises
    ------
    ArtifactError
        Missing, truncated or altered; the message names the file.
    EncoderMismatchError
        The statistics are of another encoder than the one given.
    """
    arrays, meta = load_artifact(folder)
    if encoder is not None and meta["fingerprint"] != encoder.fingerprint:
        raise EncoderMismatchError(
            f"{folder} holds the deniability of {meta['encoder']}, not of this {encoder.name}. "
            "Compute it for this encoder."
        )
    facts: dict[str, Any] = {name: meta[name] for name in _FACTS}
    facts |= {name: arrays[name] for name in _ARRAYS}
    facts["seeds"] = tuple(facts["seeds"])
    facts["eta_at_rank"] = facts["eta_at_rank"].astype(np.float32)
    return VocabularyDeniability(**facts)


def main() -> None:
    """Measure an encoder's vocabulary and write it."""
    from core.encoders import load_encoder

    parser = argparse.ArgumentParser(
        prog="python -m core.defences.deniability.vocabulary", description=__doc__
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--n-draws", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measure_vocabulary(
        load_encoder(given.encoder),  # type: ignore[arg-type]
        n_draws=given.n_draws,
        seeds=tuple(given.seeds),
        on_progress=lambda f, m: print(f"\r{f:4.0%} {m}", end="", file=sys.stderr, flush=True),
    )
    save_vocabulary(given.out, found)


if __name__ == "__main__":
    main()
