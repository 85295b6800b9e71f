"""What is read of what users send to a network under noise: the mechanism alone decides it.

The network is trained on what is sent, and changes nothing of it. So what an attacker reads stands
beside what the network is worth at the same η.
"""

from __future__ import annotations

from pathlib import Path

from core.assets import ASSETS
from core.errors import ArtifactError, InvalidInputError
from core.results import Score
from core.studies.tradeoff_files import load_rows
from core.studies.tradeoff_summary import summarise

__all__ = ["SHIPPED", "load_read_under_noise"]

SHIPPED = ASSETS / "training" / "tradeoff-noise.json"
"""What `python -m core study tradeoff` wrote at the η of the networks under noise."""


def load_read_under_noise(path: Path = SHIPPED) -> dict[tuple[str, float], Score]:
    """Return by mechanism and η what the strongest attacker reads: F1 of words, in per cent.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    try:
        points = summarise(load_rows(path)).points
        found = {(point.defence, float(dict(point.settings)["eta"])): point.leakage
                 for point in points}  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, InvalidInputError):
        found = {}
    if not found:
        raise ArtifactError(
            f"{path} holds no mechanism at an η. Make it anew with `python -m core study tradeoff "
            "--spec docs/results/tradeoff-noise.spec.json --files DATA`."
        )
    return found
