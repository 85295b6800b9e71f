"""Embedding shards: files of text keys and vectors, named by the SHA-256 of their content.

A shard is written atomically (`leakscope.core.storage.atomic_files`), so that none is incomplete.
Its name is the digest of its content: truncation and alteration are detected, and processes that
write at the same time cannot overwrite each other's shards.
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

from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Vectors
from leakscope.core.storage.artifacts import read_whole, storage_errors
from leakscope.core.storage.atomic_files import atomic_write
from leakscope.core.vectors import is_sparse, sparse_from_parts, sparse_parts

KEY_BYTES = 16
_SUFFIX = ".safetensors"
_MOST_BYTES = 16 * 2**30
"""Maximum size of a shard; a block of texts takes about a thousandth of it."""


def text_key(text: str) -> bytes:
    """Hash a text to its cache key: the 128-bit BLAKE2b digest of its UTF-8 bytes."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def list_shards(folder: Path) -> list[Path]:
    """Return the paths of a folder's shards in a fixed order."""
    return sorted(folder.glob(f"shard-*{_SUFFIX}"))


def write_shard(
    folder: Path, keys: Sequence[bytes], vectors: Vectors, *, encoder: str = ""
) -> Path:
    """Write n text keys and their (n, dimension) vectors atomically as a shard; return its path.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written; older shards are untouched.
    """
    content = save(
        {"keys": key_array(keys), **pack_vectors(vectors)}, metadata={"encoder": encoder}
    )
    sealed = folder / shard_name(content, _SUFFIX)
    with storage_errors(sealed):
        return atomic_write(sealed, content)


def key_array(keys: Sequence[bytes]) -> NDArray[np.uint8]:
    """Convert n keys to an (n, KEY_BYTES) uint8 array."""
    return np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)


def pack_vectors(vectors: Vectors) -> dict[str, NDArray[Any]]:
    """Convert dense or sparse vectors to the arrays, by name, that a shard stores."""
    if is_sparse(vectors):
        return sparse_parts(sparse.csr_array(vectors, dtype=np.float32))
    return {"vectors": np.ascontiguousarray(vectors, dtype=np.float32)}


def unpack_vectors(tensors: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Vectors:
    """Check a shard's stored arrays and convert them to dense or sparse vectors.

    Raises
    ------
    ValueError
        They have another shape or type.
    KeyError
        Arrays are missing.
    """
    found: Any = (
        tensors["vectors"] if "vectors" in tensors else sparse_from_parts(tensors, shape[1])
    )
    if found.dtype != np.float32 or found.shape != shape:
        raise ValueError("vectors of another shape")
    vectors: Vectors = found
    return vectors


def shard_name(content: bytes, suffix: str) -> str:
    """Build a shard's file name, which contains the SHA-256 of its content."""
    return f"shard-{hashlib.sha256(content).hexdigest()}{suffix}"


def read_content(path: Path) -> bytes:
    """Read a shard's bytes; raise if they do not match the digest in its name.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        Its digest does not match its name.
    """
    content = read_whole(path, _MOST_BYTES)
    if path.name != shard_name(content, path.suffix):
        raise ValueError("its name does not match its content")
    return content


def read_keys(path: Path) -> list[bytes]:
    """Read a shard's text keys, without its vectors and without checking its digest."""
    try:
        with safe_open(path, framework="numpy") as file:
            keys: NDArray[np.uint8] = file.get_tensor("keys")
    except (SafetensorError, OSError, ValueError) as error:
        raise shard_error(path) from error
    if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != KEY_BYTES:
        raise shard_error(path)
    return [row.tobytes() for row in np.ascontiguousarray(keys)]


def read_vectors(path: Path, dimension: int) -> Vectors:
    """Read a shard's (n, dimension) float32 vectors after checking its digest.

    Raises
    ------
    ArtifactError
        The shard is missing, truncated, altered or something else; the message names it.
    """
    try:
        tensors = load(read_content(path))
        return unpack_vectors(tensors, (len(tensors["keys"]), dimension))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise shard_error(path) from error


def facts_of_shard(path: Path) -> tuple[str, int]:
    """Read a shard's encoder name, "" if not recorded, and its number of vectors."""
    try:
        with safe_open(path, framework="numpy") as file:
            n_keys = int(file.get_slice("keys").get_shape()[0])
            return (file.metadata() or {}).get("encoder", ""), n_keys
    except (SafetensorError, OSError, ValueError, IndexError) as error:
        raise shard_error(path) from error


class ShardFolder:
    """The unencrypted shards of one encoder.

    Parameters
    ----------
    folder : Path
        The folder of the shards.
    dimension : int
        Dimension of the vectors.
    encoder : str
        The encoder's name, for listing the cache.
    """

    def __init__(self, folder: Path, dimension: int, encoder: str) -> None:
        self.folder, self.dimension, self.encoder = folder, dimension, encoder
        self.key: Callable[[str], bytes] = text_key  # the key of a text

    def shards(self) -> list[Path]:
        """Return the paths of the shards in a fixed order."""
        return list_shards(self.folder)

    def keys(self, path: Path) -> list[bytes]:
        """Read the text keys of a shard."""
        return read_keys(path)

    def vectors(self, path: Path) -> Vectors:
        """Read and check the vectors of a shard, in the order of its keys."""
        return read_vectors(path, self.dimension)

    def is_current(self) -> bool:
        """Return True: without encryption, shards written now will always be found."""
        return True

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> Path:
        """Write text keys and vectors as a new shard; return its path."""
        return write_shard(self.folder, keys, vectors, encoder=self.encoder)


def shard_error(path: Path) -> ArtifactError:
    """Build the ArtifactError, not raised, for a shard that cannot be read."""
    return ArtifactError(
        f"{path} is truncated or altered, or is not an embedding shard. Move this file away: its "
        "texts are encoded again at the next run. All other shards are kept."
    )
