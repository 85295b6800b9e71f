"""Measure the distances that the guarantees of the bundled encoder's mechanisms are about.

python -m scripts.deniability_distances --out assets/deniability/minilm/distances.json
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

from leakscope.core.defences.metric_dp.distances import (
    EXAMPLE,
    TokenDistances,
    bundled_distances,
    measured_distances,
)
from leakscope.core.defences.metric_dp.exponential_guarantee import SHIPPED, ShippedDistances
from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder
from leakscope.core.storage.artifacts import write_json


def measure_distances(encoder: Encoder) -> ShippedDistances:
    """Measure the distances among an encoder's tokens and among bundled sentences' vectors."""
    tokens = measured_distances(encoder, "text_to_text")
    assert isinstance(tokens, TokenDistances)
    return ShippedDistances(encoder.name, encoder.fingerprint, tokens, bundled_distances(encoder))


def main() -> None:
    """Measure the distances of the bundled encoder and write them as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.deniability_distances", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=SHIPPED)
    given = parser.parse_args()
    found = asdict(measure_distances(load_encoder("minilm")))
    tokens = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found["tokens"].items()}
    write_json(given.out, {**found, "text": EXAMPLE, "tokens": tokens})


if __name__ == "__main__":
    main()
