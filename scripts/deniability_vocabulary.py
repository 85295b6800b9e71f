"""Measure the deniability of every token of an encoder.

python -m scripts.deniability_vocabulary --out assets/deniability/minilm
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from leakscope.core.defences.deniability.vocabulary import measure_vocabulary, save_vocabulary
from leakscope.core.encoders import load_encoder


def main() -> None:
    """Measure the deniability of every token of an encoder and write it as an artifact."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.deniability_vocabulary", description=__doc__
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
