"""Leakage of the texts that users send to a network under noise, by mechanism and η.

The network is trained on the sent texts and does not change them, so leakage depends only on the
mechanism and can be compared with the network's accuracy at the same η.
"""

from __future__ import annotations

from pathlib import Path

from leakscope.core.assets import RESULTS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.tradeoff.summary import summarise

SHIPPED = RESULTS / "tradeoff-noise.json"
"""The shipped trade-off rows at the η of the networks under noise."""


def load_read_under_noise(path: Path = SHIPPED) -> dict[tuple[str, float], Score]:
    """Read the strongest attacker's F1 on words by mechanism and η, in per cent.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    try:
        points = summarise(read_rows(path, "tradeoff")).points
        found = {
            (point.defence, float(dict(point.settings)["eta"])): point.leakage for point in points
        }
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, InvalidInputError):
        found = {}
    if not found:
        raise ArtifactError(
            f"{path} contains no mechanism with an η. Run `leakscope study tradeoff --spec "
            "results/tradeoff-noise.spec.json --files DATA` again."
        )
    return found
