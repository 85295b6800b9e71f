"""Deniability of the whole vocabulary: N_w and S_w of every regular token on a grid of η.

Computed once per encoder and stored on disk. The statistics of MiniLM ship with the project;
`scripts/deniability_vocabulary.py` writes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.assets import ASSETS
from leakscope.core.defences.deniability.engine import DeniabilityEngine
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.eta_grid import eta_grid
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import ArtifactError, EncoderMismatchError, InvalidInputError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.storage.artifacts import UNFIT, load_artifact, save_artifact

SHIPPED = ASSETS / "deniability"
"""The shipped statistics, one folder per encoder."""

PANEL = 1024
"""Tokens processed at a time; bounds the memory."""


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
        """Return the index of the measured η nearest to `eta`, by ratio."""
        return int(np.abs(np.log(self.etas / eta)).argmin())


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
    """Measure N_w (draws unchanged) and S_w (distinct outcomes) of every token at every η.

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
    tokens = candidate_ids(encoder, candidates)
    ranks = np.unique(np.round(np.linspace(0, n_draws, 41)[1:]).astype(np.int64))
    n_w = np.empty((len(seeds), len(tokens), len(grid)), np.uint16)
    s_w, eta_at_rank = np.empty_like(n_w), np.empty((len(tokens), len(ranks)), np.float32)
    panels = [slice(first, first + PANEL) for first in range(0, len(tokens), PANEL)]
    n_panels = len(seeds) * len(panels)
    for which, seed in enumerate(seeds):
        engine = DeniabilityEngine(
            token_table(encoder),
            tokens,
            n_draws=n_draws,
            seed=seed,
            eta_min=grid[0],
            n_threads=n_threads,
            device="cuda" if encoder.token_vectors.is_cuda else "cpu",
        )
        for done, rows in enumerate(panels, which * len(panels) + 1):
            n_w[which, rows], s_w[which, rows], eta_star = engine.outcomes(tokens[rows], grid)
            if which == 0:
                eta_at_rank[rows] = eta_star[:, ranks - 1]
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
_FACTS: dict[str, Callable[[Any], Any]] = {
    "encoder": str,
    "fingerprint": str,
    "candidates": str,
    "n_draws": int,
    "seeds": tuple,
    "seconds": float,
}


def save_vocabulary(folder: Path, found: VocabularyDeniability) -> Path:
    """Write a vocabulary's statistics to a folder; `eta_at_rank` is rounded to float16."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(found, name) for name in _ARRAYS}
    arrays["eta_at_rank"] = arrays["eta_at_rank"].astype(np.float16)
    facts = {name: getattr(found, name) for name in _FACTS}
    return save_artifact(folder, arrays, {"kind": "deniability", **facts})


def load_vocabulary(folder: Path, encoder: WhiteBoxEncoder | None = None) -> VocabularyDeniability:
    """Load the vocabulary statistics that `save_vocabulary` wrote to a folder.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or something else; the message names the file.
    EncoderMismatchError
        The statistics are of another encoder than the one given.
    """
    arrays, meta = load_artifact(folder)
    try:
        facts = {name: kind(meta[name]) for name, kind in _FACTS.items()}
        facts |= {name: arrays[name] for name in _ARRAYS}
        found = VocabularyDeniability(**facts)
        _check_arrays(found)
    except (*UNFIT, OverflowError) as error:
        raise ArtifactError(
            f"{folder} does not contain deniability statistics: {error!r}. Move it away, then "
            "measure the encoder again."
        ) from error
    if encoder is not None and found.fingerprint != encoder.fingerprint:
        raise EncoderMismatchError(
            f"{folder} contains the statistics of {found.encoder}, not of this {encoder.name}. "
            "Measure this encoder."
        )
    return replace(found, eta_at_rank=found.eta_at_rank.astype(np.float32))


def _check_arrays(found: VocabularyDeniability) -> None:
    """Raise ValueError if the statistics' arrays have shapes or types that do not match."""
    n_sets, *axes = (len(part) for part in (found.seeds, found.tokens, found.etas, found.ranks))
    n_tokens, n_etas, n_ranks = axes
    wanted = {
        "tokens": ("iu", (n_tokens,)),
        "etas": ("f", (n_etas,)),
        "n_w": ("u", (n_tokens, n_etas)),
        "s_w": ("u", (n_tokens, n_etas)),
        "ranks": ("iu", (n_ranks,)),
        "eta_at_rank": ("f", (n_tokens, n_ranks)),
        "mean_n_w": ("f", (n_sets, n_etas)),
        "mean_s_w": ("f", (n_sets, n_etas)),
    }
    for name, (kinds, shape) in wanted.items():
        array = getattr(found, name)
        if array.dtype.kind not in kinds or array.shape != shape:
            raise ValueError(f"{name} holds {array.dtype} of the shape {array.shape}, not {shape}")
    if 0 in (*axes, n_sets) or not (found.etas > 0).all():
        raise ValueError("it has no tokens, or an η that is not positive")
