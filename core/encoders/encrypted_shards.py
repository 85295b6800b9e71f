"""Encrypted embedding shards: the encrypted form of `leakscope.core.encoders.shards`.

A shard is a header, then three encrypted boxes: the encoder's name, the keys of the texts, and
their vectors. The header holds a random id of the shard. This id and the keyed digest that names
the folder are authenticated with each box: no box can be decrypted in another shard, and no shard
in the folder of another encoder. Texts and folders are identified by keyed digests, which cannot
be compared with the digests of guessed texts.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load, save

from leakscope.core.encoders.shards import (
    KEY_BYTES,
    ShardFolder,
    pack_vectors,
    read_content,
    shard_error,
    shard_name,
    unpack_vectors,
)
from leakscope.core.protocols import Vectors
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import atomic_write
from leakscope.core.storage.encryption import Lock, restore_lock

LOCKED_SUFFIX = ".locked"
_MAGIC = b"leakscope\x00shard\x00\x01"
_OWN_BYTES = 16
_HEADER = struct.Struct(f"<{len(_MAGIC)}s{_OWN_BYTES}s3Q")
_SEAL_BYTES = 28
"""Bytes that encryption adds: the nonce and the tag."""
_NAME, _KEYS, _VECTORS = range(3)


class EncryptedShards(ShardFolder):
    """The shards of one encoder, encrypted with the cache's lock.

    Parameters
    ----------
    root : Path
        The folder of the cache.
    identity : str
        Identifies this encoder and its arithmetic; the folder is named by a keyed digest of it.
    dimension : int
        Dimension of the vectors.
    encoder : str
        The encoder's name, for listing the cache with the key.
    lock : Lock
        The cache's lock.
    """

    def __init__(self, root: Path, identity: str, dimension: int, encoder: str, lock: Lock) -> None:
        folder = root / f"locked-{lock.name(b'shelf ' + identity.encode(), 16).hex()}"
        super().__init__(folder, dimension, encoder)
        self._root, self._lock = root, lock
        self.key = lambda text: lock.name(b"text " + text.encode(), KEY_BYTES)

    def shards(self) -> list[Path]:
        """Return the paths of the shards in a fixed order."""
        return list_locked(self.folder)

    def keys(self, path: Path) -> list[bytes]:
        """Decrypt and return the text keys of a shard, without reading its vectors."""
        joined = _decrypt_box(path, _KEYS, self._lock)
        return [joined[i : i + KEY_BYTES] for i in range(0, len(joined), KEY_BYTES)]

    def vectors(self, path: Path) -> Vectors:
        """Read, check and decrypt the vectors of a shard, in the order of its keys."""
        try:
            content = read_content(path)
            own, sizes = _header(content)
            n_keys = (sizes[_KEYS] - _SEAL_BYTES) // KEY_BYTES
            boxes = content[_HEADER.size + sizes[_NAME] + sizes[_KEYS] :]
            tensors = load(self._lock.open(boxes, _context(path.parent, own, _VECTORS)))
            return unpack_vectors(tensors, (n_keys, self.dimension))
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise shard_error(path) from error

    def is_current(self) -> bool:
        """Return whether the cache still has this lock; write the lock back if it was removed."""
        return restore_lock(self._root, self._lock)

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> Path:
        """Encrypt text keys and vectors and write them as a new shard; return its path."""
        own = secrets.token_bytes(_OWN_BYTES)
        plain = (self.encoder.encode(), b"".join(keys), save(pack_vectors(vectors)))
        boxes = [
            self._lock.seal(part, _context(self.folder, own, i)) for i, part in enumerate(plain)
        ]
        content = _HEADER.pack(_MAGIC, own, *map(len, boxes)) + b"".join(boxes)
        sealed = self.folder / shard_name(content, LOCKED_SUFFIX)
        with storage_errors(sealed):
            atomic_write(sealed, content)
        self.is_current()  # the lock may have been removed while there were no shards
        return sealed


def list_locked(folder: Path) -> list[Path]:
    """Return the encrypted shards of a folder in a fixed order."""
    return sorted(folder.glob(f"shard-*{LOCKED_SUFFIX}"))


def n_locked(path: Path) -> int:
    """Compute from an encrypted shard's size, without the key, its number of vectors."""
    try:
        with path.open("rb") as file:
            sizes = _header(file.read(_HEADER.size))[1]
    except (OSError, ValueError) as error:
        raise shard_error(path) from error
    return (sizes[_KEYS] - _SEAL_BYTES) // KEY_BYTES


def name_locked(path: Path, lock: Lock) -> str:
    """Decrypt and return the name of the encoder of an encrypted shard."""
    return _decrypt_box(path, _NAME, lock).decode()


def _decrypt_box(path: Path, box: int, lock: Lock) -> bytes:
    """Decrypt one box of a shard, the encoder's name or the text keys, but not the vectors."""
    try:
        with path.open("rb") as file:
            own, sizes = _header(file.read(_HEADER.size))
            size = path.stat().st_size
            if min(sizes) < _SEAL_BYTES or sum(sizes) + _HEADER.size != size:
                raise ValueError("its parts do not have the stated lengths")
            file.seek(sum(sizes[:box]), 1)
            return lock.open(file.read(sizes[box]), _context(path.parent, own, box))
    except (OSError, ValueError) as error:
        raise shard_error(path) from error


def _header(content: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Parse a shard's header; return its id and its three boxes' sizes, or raise ValueError."""
    try:
        magic, own, *sizes = _HEADER.unpack_from(content)
    except struct.error as error:
        raise ValueError("it is too short") from error
    if magic != _MAGIC:
        raise ValueError("it is another kind of file")
    return own, tuple(sizes)


def _context(folder: Path, own: bytes, box: int) -> bytes:
    """Return the associated data that binds a box to its shard and folder."""
    return _MAGIC + own + bytes([box]) + folder.name.encode()
