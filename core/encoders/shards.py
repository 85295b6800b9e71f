"""Sealed files of embeddings: texts' digests and their vectors, named by their own SHA-256.

A shard is written whole, under another name, and renamed last, so a kill leaves no half shard.
Its name is the digest of its content: truncation and alteration show, and processes that write
at once cannot overwrite each other.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save
from scipy import sparse

from core.errors import ArtifactError
from core.protocols import Vectors
from core.store import storage_errors
from core.vectors import is_sparse, sparse_of, sparse_parts

__all__ = ["KEY_BYTES", "list_shards", "read_keys", "read_vectors", "text_key", "write_shard"]

KEY_BYTES = 16
_SUFFIX = ".safetensors"
_ABANDONED_SECONDS = 3600.0


def text_key(text: str) -> bytes:
    """Return the 128-bit BLAKE2b digest of the UTF-8 text."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def list_shards(folder: Path) -> list[Path]:
    """Return the shards of a folder in a fixed order."""
    return sorted(folder.glob(f"shard-*{_SUFFIX}"))


def write_shard(folder: Path, keys: Sequence[bytes], vectors: Vectors) -> Path:
    """Write n keys and their (n, dimension) float32 vectors, dense or sparse, in one step.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written; older shards are untouched.
    """
    table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)
    if is_sparse(vectors):
        stored = sparse_parts(sparse.csr_array(vectors, dtype=np.float32))
    else:
        stored = {"vectors": np.ascontiguousarray(vectors, dtype=np.float32)}
    content = save({"keys": table, **stored})
    sealed = folder / f"shard-{hashlib.sha256(content).hexdigest()}{_SUFFIX}"
    with storage_errors(sealed):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as file:
            unsealed = Path(file.name)
            try:
                file.write(content)
                file.flush()
                unsealed.replace(sealed)
            except BaseException:
                unsealed.unlink(missing_ok=True)
                raise
    return sealed


def _remove_abandoned(folder: Path) -> None:
    """Delete what a killed process had begun; younger files may belong to a running one."""
    for path in folder.glob("*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        except FileNotFoundError:  # another process was faster
            continue


def read_keys(path: Path) -> list[bytes]:
    """Return the keys of a shard without reading its vectors (nor checking its seal)."""
    try:
        with safe_open(path, framework="numpy") as file:
            keys: NDArray[np.uint8] = file.get_tensor("keys")
    except (SafetensorError, OSError, ValueError) as error:
        raise _refusal(path) from error
    if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != KEY_BYTES:
        raise _refusal(path)
    return [row.tobytes() for row in np.ascontiguousarray(keys)]


def read_vectors(path: Path, dimension: int) -> Vectors:
    """Return the (n, dimension) float32 vectors of a shard, as written, after checking its seal.

    Raises
    ------
    ArtifactError
        The shard is missing, truncated, altered or holds something else; the message names it.
    """
    try:
        content = path.read_bytes()
        if path.name != f"shard-{hashlib.sha256(content).hexdigest()}{_SUFFIX}":
            raise _refusal(path)
        tensors = load(content)
        keys = tensors["keys"]
        if "vectors" in tensors:
            vectors: Any = tensors["vectors"]
        else:
            vectors = sparse_of(tensors, dimension)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _refusal(path) from error
    if vectors.dtype != np.float32 or vectors.shape != (len(keys), dimension):
        raise _refusal(path)
    checked: Vectors = vectors
    return checked


def _refusal(path: Path) -> ArtifactError:
    return ArtifactError(
        f"{path} is truncated, was altered or is no embedding shard. Delete this file: its texts "
        "are encoded again at the next run, and all other shards are kept."
    )
