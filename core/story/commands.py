"""What repeats the figures of a table: a study, and the specification beside its result."""

from __future__ import annotations

from pathlib import Path

__all__ = ["command_of", "is_table"]

_DATA = "--files DATA"
_SPECS = "docs/results"


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
    study = {"representations": "encoders"}.get(command) or command.partition("-")[0]
    spec = Path(_SPECS) / f"{command}.spec.json"
    study = {"inversion": "attacks"}.get(study, study)
    return f"python -m core study {study} --spec {spec.as_posix()} {_DATA}"
