"""What repeats the figures of a table: a study, and the specification beside its result."""

from __future__ import annotations

from pathlib import Path

__all__ = ["command_of", "is_table"]

_DATA = "--files DATA"
_SPECS = "docs/results"
_STUDIES = {
    "inversion": "attacks",
    "learning": "scaling",
    "membership-classifiers": "membership-classifiers",
    "membership-sentences": "membership-sentences",
    "membership-words": "membership-words",
    "private-training": "private-training",
} | dict.fromkeys(("dual-encoders", "representations", "sentence-bert", "word-vectors"), "encoders")
"""Of tables whose name does not begin with that of their study, or whose study has two words."""


def is_table(command: str) -> bool:
    """Return whether a table of docs/results is named instead of a command."""
    return " " not in command


def command_of(command: str) -> str:
    """Return a command, or that which makes a table of docs/results again.

    Examples
    --------
    >>> command_of("tradeoff")
    'python -m core study tradeoff --spec docs/results/tradeoff.spec.json --files DATA'
    """
    if not is_table(command):
        return command
    spec = Path(_SPECS) / f"{command}.spec.json"
    return f"python -m core study {_study(command)} --spec {spec.as_posix()} {_DATA}"


def _study(table: str) -> str:
    """Return the study of a table: that of its name, unless the table has a name of its own."""
    own = (study for name, study in _STUDIES.items() if f"{table}-".startswith(f"{name}-"))
    return next(own, table.partition("-")[0])
