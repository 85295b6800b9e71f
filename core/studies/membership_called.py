"""What the collections are called that models of the studies of membership were trained on."""

from __future__ import annotations

from pathlib import Path

from core.studies.rows import Row

__all__ = ["collection_said", "epochs_said", "file_of"]

_CALLED = {
    "irc": "chats (IRC)",
    "newsgroups": "posts of newsgroups",
    "novels_en": "English novels",
    "topics": "texts of topics",
}
"""Collections whose file has a name that few know."""


def collection_said(row: Row) -> str:
    """Return what a model of a row was trained on, by the name that people know."""
    name = str(row.get("corpus") or file_of(row))
    return _CALLED.get(name, name)


def file_of(row: Row) -> str:
    """Return the name of the file that a row is of, without folder and ending."""
    return Path(str(row["target"]).partition("#")[0]).stem


def epochs_said(row: Row) -> str:
    """Return how often a model of a row saw its texts."""
    return "1 epoch" if row["epochs"] == 1 else f"{row['epochs']} epochs"
