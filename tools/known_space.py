"""Measure the shape of the bundled encoder's vectors again: `python -m tools.known_space`."""

from __future__ import annotations

from core.audit.identification import N_REFERENCE, SHIPPED, measured_space
from core.encoders import load_encoder


def main() -> None:
    """Write the shape to where the engine reads it."""
    encoder = load_encoder("minilm")
    space = measured_space(encoder)
    space.save(SHIPPED / encoder.name, corpus="bundled", n_texts=N_REFERENCE, seed=0)
    print(f"own fit {space.own_fit:.3f}, {space.dimension} dimensions")


if __name__ == "__main__":
    main()
