"""Display names of the collections in the membership studies."""

from __future__ import annotations

from pathlib import Path

from leakscope.core.results.rows import Row

_CALLED = {
    "irc": "chats (IRC)",
    "newsgroups": "newsgroup posts",
    "novels_en": "English novels",
    "topics": "texts by topic",
}
"""Titles of collections whose file name is not self-explanatory."""


def format_collection(row: Row) -> str:
    """Return the display name of the collection that a row's model was trained on."""
    name = str(row.get("corpus") or file_of(row))
    return _CALLED.get(name, name)


def file_of(row: Row) -> str:
    """Return the name of a row's file without folder and extension."""
    return Path(str(row["target"]).partition("#")[0]).stem


def describe_epochs(row: Row) -> str:
    """Return a row's number of epochs in words."""
    return "1 epoch" if row["epochs"] == 1 else f"{row['epochs']} epochs"
