"""Rows of a study of the visitor's own, from the JSON that `core study` wrote: kept nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import streamlit as st

from core.errors import ArtifactError, CoreError
from dashboard.calm import show_error

__all__ = ["own_study"]

_MOST_BYTES = 24 * 2**20
"""Of all files together: read, they take up to twenty times as much of the server's memory."""

_T = TypeVar("_T")


def own_study(key: str, about: str, made_of: Callable[[list[Mapping[str, Any]]], _T]) -> _T | None:
    """Draw what takes the files of a study; return what they hold, None for none.

    Parameters
    ----------
    made_of : callable
        From the files, each as it was written, to what a page shows.
        Raises CoreError where they are something else.
    """
    sent = st.file_uploader(
        "Rows of a study of your own",
        type=["json"],
        accept_multiple_files=True,
        key=key,
        help=f"{about} The files stay in the memory of this computer, for your session.",
    )
    if not sent:
        return None
    try:
        if sum(file.size for file in sent) > _MOST_BYTES:
            raise ArtifactError(
                f"The files have more than {_MOST_BYTES // 2**20} MB together. Send fewer studies."
            )
        found = made_of([_read(file.name, file.getvalue()) for file in sent])
    except CoreError as error:
        show_error(error, title="These rows cannot be shown")
        return None
    st.success("Shown below.", icon=":material/check:")
    return found


def _read(name: str, content: bytes) -> Mapping[str, Any]:
    """Return a file's JSON object.

    Raises
    ------
    ArtifactError
        It is none.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{name} is not JSON. Send what `core study --out` wrote.") from error
    if not isinstance(found, dict):
        raise ArtifactError(f"{name} holds no rows. Send what `core study --out` wrote.")
    return found
