"""Measure the distances among an encoder's tokens, as the deniability page shows.

python -m scripts.deniability_geometry --out assets/deniability/minilm/geometry.json
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from leakscope.core.defences.deniability.geometry import measure_geometry
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.encoders import load_encoder
from leakscope.core.storage.artifacts import write_json


def main() -> None:
    """Measure the distances among the named encoder's tokens and write them as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.deniability_geometry", description=__doc__
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    encoder = load_encoder(given.encoder)
    found = measure_geometry(
        encoder,  # type: ignore[arg-type]
        candidate_ids(encoder),  # type: ignore[arg-type]
        on_progress=lambda f, m: print(f"\r{f:4.0%} {m}", end="", file=sys.stderr, flush=True),
    )
    write_json(given.out, asdict(found))


if __name__ == "__main__":
    main()
