"""Artifacts on disk: arrays as safetensors, the rest as JSON, checked when read, never unpickled.

An artifact is a folder with `model.json` (what it is, and the SHA-256 of its arrays) and a
`model-<digest>.safetensors` that the JSON names. The JSON is replaced last and in one step, so a
kill at any moment leaves the old artifact or the new one, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from core.errors import ArtifactError, StorageError

__all__ = [
    "META",
    "cache_dir",
    "digest_file",
    "digest_of",
    "load_artifact",
    "read_json",
    "save_artifact",
    "storage_errors",
    "write_json",
]

META = "model.json"
FORMAT = 1


def cache_dir(*parts: str) -> Path:
    """Return a folder for derived data: $LEAKSCOPE_HOME, or ~/.cache/leakscope."""
    home = os.environ.get("LEAKSCOPE_HOME")
    root = Path(home) if home else Path.home() / ".cache" / "leakscope"
    return root.joinpath(*parts)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while writing below `path` into a StorageError that names the remedy."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"Could not write {path}: {error.strerror or error}. Free some disk space, or set "
            "LEAKSCOPE_HOME to a folder that can be written; what was finished before is kept."
        ) from error


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(arrays: Mapping[str, NDArray[Any]], meta: Any) -> str:
    """Return the SHA-256 of arrays by name and of what else is told, which must be JSON-able."""
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        unfinished = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, ensure_ascii=False)
            unfinished.chmod(0o644)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read JSON, or raise ArtifactError naming the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} does not exist.") from error
    except (ValueError, OSError) as error:
        raise ArtifactError(
            f"{path} is damaged or not JSON: {error}. Delete its folder and make it anew."
        ) from error


def save_artifact(folder: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Path:
    """Write arrays and meta into `folder`, replacing an older artifact as a whole.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        unsealed = folder / f".{os.getpid()}.tmp"
        try:
            save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, unsealed)
            unsealed.chmod(0o644)
            digest = digest_file(unsealed)
            sealed = unsealed.replace(folder / f"model-{digest[:12]}.safetensors")
        except SafetensorError as error:
            raise OSError(f"{error}") from error
        finally:
            unsealed.unlink(missing_ok=True)
        seal = {"format": FORMAT, "arrays_file": sealed.name, "arrays_sha256": digest}
        write_json(folder / META, {**meta, **seal})
        for older in set(folder.glob("model-*.safetensors")) - {sealed}:
            older.unlink()
    return folder


def load_artifact(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `save_artifact` wrote, after checking it.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or of another format: the message names the file.
    """
    meta = read_json(folder / META)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ArtifactError(f"{folder / META} is not an artifact of format {FORMAT}.")
    path = folder / Path(str(meta.get("arrays_file"))).name
    if not path.is_file():
        raise ArtifactError(f"{path} is missing. Restore the file or train the model again.")
    if digest_file(path) != meta.get("arrays_sha256"):
        raise ArtifactError(
            f"{path} is truncated or was altered: its SHA-256 is not the one that {META} "
            "records. Restore the file or train the model again."
        )
    try:
        return load_file(path), meta
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a safetensors file: {error}.") from error
