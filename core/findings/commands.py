"""The commands that reproduce a finding: a study, with the spec stored beside its table."""

from __future__ import annotations

_STUDIES = {
    "inversion": "attacks",
    "learning": "scaling",
    "membership-classifiers": "membership-classifiers",
    "membership-sentences": "membership-sentences",
    "membership-words": "membership-words",
    "private-training": "private-training",
} | dict.fromkeys(("dual-encoders", "representations", "sentence-bert", "word-vectors"), "encoders")
"""Studies of tables whose name does not begin with the study's, or whose study has two words."""


def is_table(command: str) -> bool:
    """Return whether a string names a table in results/ rather than a command."""
    return " " not in command


def command_of(command: str) -> str:
    """Return the command that reproduces a table in results/; a full command is returned unchanged.

    Examples
    --------
    >>> command_of("tradeoff")
    'leakscope study tradeoff --spec results/tradeoff.spec.json --files DATA'
    """
    if not is_table(command):
        return command
    own = (study for name, study in _STUDIES.items() if f"{command}-".startswith(f"{name}-"))
    study = next(own, command.partition("-")[0])
    return f"leakscope study {study} --spec results/{command}.spec.json --files DATA"
