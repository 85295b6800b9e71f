"""Compile what pages wait for, before anybody waits: `python -m core.compile_ahead`.

Once after an installation it takes some seconds; then the machine code is on disk (core.compiled)
and it takes the time of an import.
"""

from __future__ import annotations

import os

__all__ = ["compile_loops"]


def compile_loops() -> None:
    """Compile the loops of the deniability engine, on an encoder of a few made-up tokens."""
    import numpy as np

    from core.defences.deniability.engine import DeniabilityEngine

    vectors = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    engine = DeniabilityEngine(vectors, np.arange(200), n_draws=16, n_threads=1)
    engine.envelopes(np.arange(2))
    engine.outcomes(np.arange(2), np.array([20.0, 40.0]))


if __name__ == "__main__":
    if hasattr(os, "nice"):  # the first page comes first; what is imported below takes a second
        os.nice(19)
    compile_loops()
