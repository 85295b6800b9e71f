"""Notes and commands for parts not measured, or measured by an earlier version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from leakscope.core.findings.training import QUESTION
from leakscope.core.studies import registry
from leakscope.core.studies.training import summary as training_summary
from leakscope.core.studies.training.summary import TABLES, Summary
from leakscope.dashboard.training.state import PARTS, STUDIES

_ASKS = {
    "adversary": "what the attacker used in training recovers, and what new attackers recover "
    "afterwards",
    "noise": "how accurate a classifier is that only sees noisy texts",
    "pretraining": "how much accuracy pretraining under noise recovers",
    "private": "what differential privacy costs in training, and how much membership and "
    "memorisation remain",
}


_PRESETS = {"adaptive": "adaptive-small"}
"""Shorter presets, taking hours, of studies whose default preset takes days."""


def command_of(part: str, table: str = "") -> str:
    """Return the `leakscope study` command that measures a section's results or one table.

    Parameters
    ----------
    table : str, optional
        A table of the part, if it has several.
    """
    study = STUDIES[part]
    name = table or TABLES[study][0]
    if table or (training_summary.SHIPPED / f"{name}.json").exists():
        spec = f"results/{name}"
    else:
        spec = f"docs/presets/{_PRESETS.get(study, study)}"
    return f"leakscope study {study} --spec {spec}.spec.json --files DATA --out results/{name}.json"


_OTHER_TEXTS = (
    "networks are now tested on a collection's development part where it has one, not on its test "
    "part, and on no near-duplicate of a training text"
)
_SINCE = {
    "constrained": {
        3: _OTHER_TEXTS,
        4: "text to text is compared with token representation text by text",
    },
    "adaptive": {3: "the losses are compared with each other text by text"},
    "private-training": {2: _OTHER_TEXTS},
}
"""What each version of a study changed."""


def commands_of(part: str, shown: Summary | None) -> list[str]:
    """Return the `leakscope study` command of each table behind a section's figures."""
    tables = [] if shown is None else shown.versions
    return [command_of(part, table) for table in tables] or [command_of(part)]


def show_commands(part: str) -> None:
    """Draw the `leakscope study` command of each shipped table of a section."""
    for table in training_summary.tables_of(STUDIES[part], training_summary.SHIPPED):
        st.code(command_of(part, table), language="sh", wrap_lines=True)


def warn_if_outdated(part: str, versions: Mapping[str, int]) -> None:
    """Draw a warning with commands if figures come from an earlier version of their study.

    Parameters
    ----------
    versions : dict
        The oldest version in each table that the figures come from.
    """
    study = STUDIES[part]
    now = registry.STUDIES[study].version
    former = [table for table, version in versions.items() if version < now]
    if not former:
        return
    oldest, which = min(versions[table] for table in former), "These results are"
    if len(former) < len(versions):
        which = f"Some of these results ({', '.join(former)}) are"
    changes = [change for since, change in _SINCE.get(study, {}).items() if since > oldest]
    changed = f": {'; '.join(changes)}" if changes else ""
    st.warning(
        f"{which} out of date: they come from version {oldest} of the study, and the current one "
        f"is version {now}{changed}. Measured again, they will differ. To measure them again, run "
        f"{'these commands' if len(former) > 1 else 'this command'}; `DATA` is a folder with the "
        "collections:",
        icon=":material/history:",
    )
    for table in former:
        st.code(command_of(part, table), language="sh", wrap_lines=True)


def unmeasured(slot: Any, part: str) -> None:
    """Draw a note that a section was not measured yet, with the command that measures it."""
    slot.title(QUESTION, anchor=False)
    st.info(
        f"**{PARTS[part]}**: not measured yet. This part shows {_ASKS[part]}. To measure it, run "
        "this command in a checkout of Leakscope; the page then shows the results. `DATA` is a "
        "folder with the collections, which `docs/data.md` lists. An interrupted run resumes when "
        "you run the same command again.",
        icon=":material/hourglass_empty:",
    )
    st.code(command_of(part), language="sh", wrap_lines=True)
