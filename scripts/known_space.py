"""Measure the shape of the bundled encoder's vectors: `python -m scripts.known_space`."""

from __future__ import annotations

import argparse

from leakscope.core.audit.identification import N_REFERENCE, SHIPPED, measured_space
from leakscope.core.encoders import load_encoder


def main() -> None:
    """Measure the shape of MiniLM's vectors and write it to where audits read it."""
    argparse.ArgumentParser(prog="python -m scripts.known_space", description=__doc__).parse_args()
    encoder = load_encoder("minilm")
    space = measured_space(encoder)
    space.save(SHIPPED / encoder.name, corpus="bundled", n_texts=N_REFERENCE, seed=0)
    print(f"own fit {space.own_fit:.3f}, {space.dimension} dimensions")


if __name__ == "__main__":
    main()
