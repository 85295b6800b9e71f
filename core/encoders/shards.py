"""Sealed files of embeddings: texts' digests and their vectors, named by their own SHA-256.

A shard is whole and on disk before it has its name (`core.durable`), so no half shard is left.
Its name is the digest of its content: truncation and alteration show, and processes that write
at once cannot overwrite each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
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

__all__ = [
    "KEY_BYTES",
    "Shelf",
    "facts_of_shard",
    "list_shards",
    "packed",
    "read_content",
    "read_keys",
    "read_vectors",
    "refusal",
    "sealed_name",
    "table_of",
    "text_key",
    "unpacked",
    "write_shard",
]

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


def write_shard(
    folder: Path, keys: Sequence[bytes], vectors: Vectors, *, encoder: str = ""
) -> Path:
    """Write n keys and their (n, dimension) float32 vectors, dense or sparse, in one step.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written; older shards are untouched.
    """
    content = save({"keys": table_of(keys), **packed(vectors)}, metadata={"encoder": encoder})
    sealed = folder / sealed_name(content, _SUFFIX)
    with storage_errors(sealed):
        return write_whole(sealed, content)


def table_of(keys: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return n keys as an (n, KEY_BYTES) array."""
    return np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)


def packed(vectors: Vectors) -> dict[str, NDArray[Any]]:
    """Return the arrays as which vectors are stored."""
    if is_sparse(vectors):
        return sparse_parts(sparse.csr_array(vectors, dtype=np.float32))
    return {"vectors": np.ascontiguousarray(vectors, dtype=np.float32)}


def unpacked(tensors: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Vectors:
    """Return the vectors that arrays stand for.

    Raises
    ------
    ValueError
        They are of another shape or type.
    KeyError
        Arrays are missing.
    """
    found: Any = tensors["vectors"] if "vectors" in tensors else sparse_of(tensors, shape[1])
    if found.dtype != np.float32 or found.shape != shape:
        raise ValueError("vectors of another shape")
    vectors: Vectors = found
    return vectors


def sealed_name(content: bytes, suffix: str) -> str:
    """Return the name of a shard, which tells whether its content is whole."""
    return f"shard-{hashlib.sha256(content).hexdigest()}{suffix}"


def read_content(path: Path) -> bytes:
    """Return the content of a shard after checking its seal.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is not what was written.
    """
    content = read_whole(path, _MOST_BYTES)
    if path.name != sealed_name(content, path.suffix):
        raise ValueError("its name is not that of its content")
    return content


def read_keys(path: Path) -> list[bytes]:
    """Return the keys of a shard without reading its vectors (nor checking its seal)."""
    try:
        with safe_open(path, framework="numpy") as file:
            keys: NDArray[np.uint8] = file.get_tensor("keys")
    except (SafetensorError, OSError, ValueError) as error:
        raise refusal(path) from error
    if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != KEY_BYTES:
        raise refusal(path)
    return [row.tobytes() for row in np.ascontiguousarray(keys)]


def read_vectors(path: Path, dimension: int) -> Vectors:
    """Return the (n, dimension) float32 vectors of a shard, as written, after checking its seal.

    Raises
    ------
    ArtifactError
        The shard is missing, truncated, altered or holds something else; the message names it.
    """
    try:
        tensors = load(read_content(path))
        return unpacked(tensors, (len(tensors["keys"]), dimension))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise refusal(path) from error


def facts_of_shard(path: Path) -> tuple[str, int]:
    """Return the name of the encoder, where it was written, and the number of vectors."""
    try:
        with safe_open(path, framework="numpy") as file:
            n_keys = int(file.get_slice("keys").get_shape()[0])
            return (file.metadata() or {}).get("encoder", ""), n_keys
    except (SafetensorError, OSError, ValueError, IndexError) as error:
        raise refusal(path) from error


class Shelf:
    """The shards of one encoder, unencrypted.

    Parameters
    ----------
    folder : Path
        Where they lie.
    dimension : int
        Of the vectors.
    encoder : str
        Its name, for those who list what is kept.
    """

    def __init__(self, folder: Path, dimension: int, encoder: str) -> None:
        self.folder, self.dimension, self.encoder = folder, dimension, encoder
        self.key: Callable[[str], bytes] = text_key  # what a text is found by

    def shards(self) -> list[Path]:
        """Return the shards in a fixed order."""
        return list_shards(self.folder)

    def keys(self, path: Path) -> list[bytes]:
        """Return what a shard holds vectors of."""
        return read_keys(path)

    def vectors(self, path: Path) -> Vectors:
        """Return the vectors of a shard, in the order of its keys."""
        return read_vectors(path, self.dimension)

    def is_current(self) -> bool:
        """Return whether others find here what is written now."""
        return True

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> Path:
        """Write a shard."""
        return write_shard(self.folder, keys, vectors, encoder=self.encoder)


def refusal(path: Path) -> ArtifactError:
    """Return what to say of a shard that cannot be read."""
    return ArtifactError(
        f"{path} is truncated, was altered or is no embedding shard. Move this file away: its "
        "texts are encoded again at the next run, and all other shards are kept."
    )
