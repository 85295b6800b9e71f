"""What a search for better settings tries, attack by attack.

Settings that change which words count (the vocabulary, stop words) are never searched: a smaller
vocabulary would look better and be none the better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["IN_SEARCH", "SEARCH_SPACES", "Between", "OneOf", "Range"]


@dataclass(frozen=True)
class OneOf:
    """One of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """A number from low to high, both included; whole where both are whole.

    With `is_log`, as many tries between 1 and 10 as between 10 and 100.
    """

    low: float
    high: float
    is_log: bool = False


Range = OneOf | Between

_RELAXATION: dict[str, Range] = {
    "learning_rate": Between(1e-3, 0.5, is_log=True),
    "temperature": Between(0.01, 1.0, is_log=True),
    "final_temperature": Between(0.002, 0.1, is_log=True),
    "length": Between(6, 32),
    "n_steps": OneOf((60, 100, 200)),
}

SEARCH_SPACES: dict[str, dict[str, Range]] = {
    "prior": {},  # guesses as well as can be, whatever it is told
    "retrieval": {
        "n_neighbors": Between(5, 1000, is_log=True),
        "temperature": Between(0.005, 1.0, is_log=True),
    },
    "probe": {"n_words": Between(3, 30)},
    "mlc": {
        "batch_size": OneOf((64, 128, 256)),
        "learning_rate": Between(1e-4, 1e-2, is_log=True),
        "size_factor": Between(0.75, 2.0),
    },
    "msp": {  # Corò (2022), §4.3.3
        "hidden": OneOf((384, 512, 768)),
        "batch_size": OneOf((64, 128, 256)),
        "learning_rate": Between(1e-4, 1e-2, is_log=True),
        "weight_decay": Between(1e-5, 1e-2, is_log=True),
        "dropout": OneOf((0.1, 0.2, 0.3)),
    },
    "relaxation": _RELAXATION,
    "staged": {
        **_RELAXATION,
        "layer": OneOf((0, 1, 2, 3)),
        "ridge": Between(1e-2, 1e2, is_log=True),
        "stretch": OneOf((False, True)),
    },
    "sparse": {
        "penalty": Between(3e-3, 0.3, is_log=True),
        "threshold": Between(1e-3, 0.1, is_log=True),
        "ridge": Between(1e-2, 1e2, is_log=True),
    },
    "probe_mlc": {
        "learning_rate": Between(3e-4, 1e-2, is_log=True),
        "hidden": OneOf((512, 1024, 2048)),
        "blocks": OneOf((0, 1, 2)),
        "dropout": OneOf((0.0, 0.1, 0.2, 0.3)),
        "start_scale": Between(2.0, 20.0, is_log=True),
        "size_factor": Between(0.75, 2.0),
    },
    "search": {
        "n_candidates": Between(20, 100),
        "n_later_candidates": Between(10, 60),
        "n_rounds": OneOf((1, 2, 3)),
        "n_corrections": OneOf((0, 1, 2)),
        "size_factor": Between(0.75, 2.0),
    },
}
"""Attack to setting to range; a setting that is given is kept as it is and not searched."""

IN_SEARCH: dict[str, dict[str, Any]] = {
    "msp": {"epochs": 30},  # Corò (2022), §4.3.3: more trials rather than longer ones
}
"""Settings of every trial, unless others are given."""
