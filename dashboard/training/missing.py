"""What is said where a part of the page was not measured yet, and which command measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.studies import registry, training_summary
from core.studies.training_summary import FILES, Summary
from dashboard.training.state import PARTS, STUDIES

__all__ = [
    "QUESTION", "command_of", "commands_of", "say_if_former", "show_commands", "unmeasured",
]  # fmt: skip

QUESTION = "Does training for privacy hold?"

_ASKS = {
    "adversary": "what an adversary reads while an encoder is trained against it, and what fresh "
    "attackers read afterwards",
    "noise": "what classifiers are worth that only ever see noise",
    "pretraining": "how much of the accuracy that noise costs pretraining under noise wins back",
    "private": "what differential privacy in training costs, and what it leaves of membership and "
    "memory",
}


_PRESETS = {"adaptive": "adaptive-small"}
"""What measures a part in hours, where the preset of its study's name takes days."""


def command_of(part: str, table: str = "") -> str:
    """Return the command that measures a part of the page, or anew by today's code what ships.

    Parameters
    ----------
    table : str, optional
        One of several that the part's figures come from.
    """
    study = STUDIES[part]
    stem, _, kind = FILES[study].rpartition(".")
    if table:
        folder, spec = "results", table
        stem += table.removeprefix(study)
    elif (training_summary.SHIPPED / FILES[study]).exists():
        folder, spec = "results", study
    else:
        folder, spec = "presets", _PRESETS.get(study, study)
    return (
        f"python -m core study {study} --spec docs/{folder}/{spec}.spec.json --files DATA "
        f"--out assets/training/{stem}.{kind}"
    )


_OTHER_TEXTS = (
    "where a collection comes with a part to develop on, networks are tested on that and no longer "
    "on its test part, and on no text that nearly repeats one they were trained on"
)
_SINCE = {
    "constrained": {
        3: _OTHER_TEXTS,
        4: "text to text is held against token representation text by text",
    },
    "adaptive": {3: "the losses are held against each other text by text"},
    "private-training": {2: _OTHER_TEXTS},
}
"""What each version of a study does otherwise than the one before."""


def commands_of(part: str, shown: Summary | None) -> list[str]:
    """Return what measures each table that a part's figures come from."""
    tables = [] if shown is None else shown.versions
    return [command_of(part, table) for table in tables] or [command_of(part)]


def show_commands(part: str) -> None:
    """Draw what measures anew each table of a part that lies there, be it readable or not."""
    for table in training_summary.tables_of(STUDIES[part], training_summary.SHIPPED):
        st.code(command_of(part, table), language="sh", wrap_lines=True)


def say_if_former(part: str, versions: Mapping[str, int]) -> None:
    """Say where figures were measured by a former version of their study, and what has changed.

    Parameters
    ----------
    versions : dict
        Of each table that the figures come from, the least.
    """
    study = STUDIES[part]
    now = registry.STUDIES[study].version
    former = [table for table, version in versions.items() if version < now]
    if not former:
        return
    oldest, which = min(versions[table] for table in former), "These figures are"
    if len(former) < len(versions):
        which = f"Some of these figures ({', '.join(former)}) are"
    told = [said for since, said in _SINCE.get(study, {}).items() if since > oldest]
    changed = f": {'; '.join(told)}" if told else ""
    st.warning(
        f"{which} older than the program that shows them: version {oldest} of the study "
        f"measured them, and today's is version {now}{changed}. Measured anew they will differ. "
        f"{'These commands measure' if len(former) > 1 else 'This command measures'} them anew; "
        "`DATA` is a folder with the collections:",
        icon=":material/history:",
    )
    for table in former:
        st.code(command_of(part, table), language="sh", wrap_lines=True)


def unmeasured(slot: Any, part: str) -> None:
    """Draw the question, that this part was not measured yet, and what would measure it."""
    slot.title(QUESTION, anchor=False)
    st.info(
        f"**{PARTS[part]}**: not measured yet, {_ASKS[part]}. No rows come with this version, and "
        "no figure is made up. In a checkout of Leakscope this command measures it, and the page "
        "shows what it finds; `DATA` is a folder with the collections: `docs/data.md` says where "
        "each comes from. What was stopped goes on when the same command runs again.",
        icon=":material/hourglass_empty:",
    )
    st.code(command_of(part), language="sh", wrap_lines=True)
