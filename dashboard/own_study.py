"""Upload of result rows that `leakscope study` wrote; they stay in the session's memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import streamlit as st

from leakscope.core.errors import ArtifactError, CoreError
from leakscope.dashboard.ui.errors import show_error

_MOST_BYTES = 24 * 2**20
"""The limit for all files together; parsed, they take up to twenty times as much memory."""

_T = TypeVar("_T")


def upload_study(
    key: str, about: str, made_of: Callable[[list[Mapping[str, Any]]], _T]
) -> _T | None:
    """Draw the upload of a study's files; parse them and return `made_of(parsed)`, or None.

    Parameters
    ----------
    made_of : callable
        Converts the parsed files to the page's results.
        Raises CoreError if the files are something else.
    """
    sent = st.file_uploader(
        "Results of your own study",
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
                f"The files exceed {_MOST_BYTES // 2**20} MB together. Upload fewer studies."
            )
        found = made_of([_read_object(file.name, file.getvalue()) for file in sent])
    except CoreError as error:
        show_error(error, title="These results cannot be shown")
        return None
    st.success("Shown below.", icon=":material/check:")
    return found


def _read_object(name: str, content: bytes) -> Mapping[str, Any]:
    """Parse a file's JSON; raise ArtifactError if it is not an object.

    Raises
    ------
    ArtifactError
        The content is not JSON, or not an object.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{name} is not JSON. Upload a file that `leakscope study --out` wrote."
        ) from error
    if not isinstance(found, dict):
        raise ArtifactError(
            f"{name} contains no rows. Upload a file that `leakscope study --out` wrote."
        )
    return found
