"""Sealed files of embeddings: texts' digests and their vectors, named by their own SHA-256.

A shard is whole and on disk before it has its name (`core.durable`), so no half shard is left.
Its name is the digest of its content: truncation and alteration show, and processes that write
at once cannot overwrite each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save
from scipy import sparse

from core.durable import write_whole
from core.errors import ArtifactError
from core.protocols import Vectors
from core.store import read_whole, storage_errors
from core.vectors import is_sparse, sparse_of, sparse_parts

__all__ = ["KEY_BYTES", "list_shards", "read_keys", "read_vectors", "text_key", "write_shard"]

KEY_BYTES = 16
_SUFFIX = ".safetensors"
_MOST_BYTES = 16 * 2**30
"""Largest shard that is read: a block of texts takes a thousandth of it."""


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
        return write_whole(sealed, content)


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
        content = read_whole(path, _MOST_BYTES)
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
        f"{path} is truncated, was altered or is no embedding shard. Move this file away: its "
        "texts are encoded again at the next run, and all other shards are kept."
    )
