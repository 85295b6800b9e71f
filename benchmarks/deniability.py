"""Deniability of a whole vocabulary: ours against exact faiss search and a numpy loop."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from benchmarks import Measurement, seconds_of

N_DRAWS = 1000
ETAS = np.geomspace(30, 120, 16)
N_QUERIES = 2048
"""Of the peer's 472 million queries, a sample a turn; its time is proportional to their number."""


def measure() -> list[Measurement]:
    """Compare the seconds of our deniability engine with faiss and with a numpy loop."""
    import faiss

    from leakscope.core.defences.deniability.engine import DeniabilityEngine
    from leakscope.core.defences.deniability.vocabulary import measure_vocabulary
    from leakscope.core.defences.metric_dp.candidates import candidate_ids
    from leakscope.core.encoders.minilm import load_minilm

    encoder = load_minilm(device="cpu")
    vectors, tokens = encoder.token_vectors.numpy(), candidate_ids(encoder)
    known = np.ascontiguousarray(vectors[tokens])
    index = faiss.IndexFlatL2(known.shape[1])
    index.add(known)
    n_queries = len(tokens) * N_DRAWS * len(ETAS)
    rng = np.random.default_rng(0)
    engine = DeniabilityEngine(vectors, tokens, n_draws=N_DRAWS, eta_min=float(ETAS[0]))
    engine.envelopes(tokens[:8])  # compiled before the clock runs

    def queries() -> np.ndarray:
        """Return noisy vectors of random tokens, draws and η: queries for the search."""
        token = rng.integers(0, len(known), N_QUERIES)
        draw = rng.integers(0, N_DRAWS, N_QUERIES)
        eta = rng.choice(ETAS, N_QUERIES).astype(np.float32)
        return known[token] + engine.draws[draw] / eta[:, None]

    def faiss_seconds() -> float:
        """Time exact faiss search on some queries; return the seconds extrapolated to all."""
        asked = queries()
        return seconds_of(lambda: index.search(asked, 1)) / len(asked) * n_queries

    def loop_seconds(n: int = 40) -> float:
        """Time plain numpy search on some queries; return the seconds extrapolated to all."""
        asked = queries()[:n]
        start = time.perf_counter()
        for query in asked:
            np.argmin(np.linalg.norm(known - query, axis=1))
        return (time.perf_counter() - start) / n * n_queries

    peers, loops, ours, stars = [], [], [], []
    for _ in range(2):
        peers.append(faiss_seconds())
        loops.append(loop_seconds())
        ours.append(seconds_of(lambda: measure_vocabulary(encoder, etas=ETAS, n_draws=N_DRAWS)))
        peers.append(faiss_seconds())
        stars.append(seconds_of(lambda: _compute_all_eta_star(vectors, tokens)))
    peer, loop = float(np.median(peers)), float(np.median(loops))
    own, star = float(np.median(ours)), float(np.median(stars))
    sampled = f"extrapolated from {len(peers)} interleaved samples of {N_QUERIES:,} queries"
    return [
        Measurement(
            name="N_w and S_w, whole vocabulary × 1,000 × 16 η",
            value=peer / own,
            unit="× faiss IndexFlatL2",
            goal=2500,
            n=2,
            note=f"{own:.0f} s against {peer / 3600:.0f} h, {sampled}",
        ),
        Measurement(
            name="N_w at every η (η* of every token and draw)",
            value=peer / star,
            unit="× faiss, 16 η",
            goal=5000,
            n=2,
            note=f"{star:.0f} s against the same",
        ),
        Measurement(
            name="the same N_w and S_w",
            value=loop / own,
            unit="× a numpy loop",
            goal=50_000,
            n=2,
            note=f"{loop / 3600:.0f} h, extrapolated from samples of 40 queries",
        ),
        Measurement(
            name="peak memory, whole vocabulary",
            value=_peak_gigabytes(),
            unit="GB",
            at_most=2.0,
            note="resident, encoder included, a process of its own",
        ),
    ]


def _compute_all_eta_star(vectors: np.ndarray, tokens: np.ndarray) -> None:
    """Compute η* of every token and draw, for timing; return nothing."""
    from leakscope.core.defences.deniability.engine import DeniabilityEngine

    engine = DeniabilityEngine(vectors, tokens, n_draws=N_DRAWS, eta_min=float(ETAS[0]))
    for start in range(0, len(tokens), 2048):
        engine.eta_star(tokens[start : start + 2048])


def _peak_gigabytes() -> float:
    """Run the vocabulary measurement in a new process; return its peak memory in GB."""
    code = (
        "import numpy as np\n"
        "from leakscope.core.defences.deniability.vocabulary import measure_vocabulary\n"
        "from leakscope.core.encoders.minilm import load_minilm\n"
        "measure_vocabulary(load_minilm(device='cpu'), etas=np.geomspace(30, 120, 16))\n"
        "from leakscope.core.jobs.child import peak_memory\n"
        "print(peak_memory())\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(out.stdout.split()[-1]) / 1e9
