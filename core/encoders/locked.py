"""Encrypted shards: as `core.encoders.shards`, for those who give the cache a key.

A shard is a header, then three sealed boxes: the encoder's name, the keys of the texts, and their
vectors. The header holds a number of the shard's own, which all boxes are sealed with, as they are
with the keyed digest that names the folder: no box opens in another shard, and no shard in the
folder of another encoder. Texts are found by a keyed digest, and folders are named by one:
neither can be compared with the digests of texts that somebody guesses.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load, save

from core.durable import write_whole
from core.encoders.shards import (
    KEY_BYTES,
    Shelf,
    packed,
    read_content,
    refusal,
    sealed_name,
    unpacked,
)
from core.protocols import Vectors
from core.store import storage_errors
from core.vault import Lock, keep_lock

__all__ = ["LOCKED_SUFFIX", "LockedShelf", "list_locked", "n_locked", "name_locked"]

LOCKED_SUFFIX = ".locked"
_MAGIC = b"leakscope\x00shard\x00\x01"
_OWN_BYTES = 16
_HEADER = struct.Struct(f"<{len(_MAGIC)}s{_OWN_BYTES}s3Q")
_SEAL_BYTES = 28
"""What sealing adds: the nonce and the tag."""
_NAME, _KEYS, _VECTORS = range(3)


class LockedShelf(Shelf):
    """The shards of one encoder, encrypted.

    Parameters
    ----------
    root : Path
        The folder of the cache.
    shelf : str
        What tells this encoder and its arithmetic from others; its name here is a keyed digest.
    dimension : int
        Of the vectors.
    encoder : str
        Its name, for those who list what is kept and have the key.
    lock : Lock
        Of the cache.
    """

    def __init__(self, root: Path, shelf: str, dimension: int, encoder: str, lock: Lock) -> None:
        folder = root / f"locked-{lock.name(b'shelf ' + shelf.encode(), 16).hex()}"
        super().__init__(folder, dimension, encoder)
        self._root, self._lock = root, lock
        self.key = lambda text: lock.name(b"text " + text.encode(), KEY_BYTES)

    def shards(self) -> list[Path]:
        """Return the shards in a fixed order."""
        return list_locked(self.folder)

    def keys(self, path: Path) -> list[bytes]:
        """Return what a shard holds vectors of, without reading these."""
        joined = _open_early(path, _KEYS, self._lock)
        return [joined[i : i + KEY_BYTES] for i in range(0, len(joined), KEY_BYTES)]

    def vectors(self, path: Path) -> Vectors:
        """Return the vectors of a shard, in the order of its keys, after checking it."""
        try:
            content = read_content(path)
            own, sizes = _header(content)
            n_keys = (sizes[_KEYS] - _SEAL_BYTES) // KEY_BYTES
            boxes = content[_HEADER.size + sizes[_NAME] + sizes[_KEYS] :]
            tensors = load(self._lock.open(boxes, _context(path.parent, own, _VECTORS)))
            return unpacked(tensors, (n_keys, self.dimension))
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise refusal(path) from error

    def is_current(self) -> bool:
        """Return whether the lock of the cache is this one still; a removed one is written back."""
        return keep_lock(self._root, self._lock)

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> Path:
        """Write a shard, encrypted before it reaches the disk."""
        own = secrets.token_bytes(_OWN_BYTES)
        plain = (self.encoder.encode(), b"".join(keys), save(packed(vectors)))
        boxes = [
            self._lock.seal(part, _context(self.folder, own, i)) for i, part in enumerate(plain)
        ]
        content = _HEADER.pack(_MAGIC, own, *map(len, boxes)) + b"".join(boxes)
        sealed = self.folder / sealed_name(content, LOCKED_SUFFIX)
        with storage_errors(sealed):
            write_whole(sealed, content)
        self.is_current()  # it may have been removed while nothing encrypted was there
        return sealed


def list_locked(folder: Path) -> list[Path]:
    """Return the encrypted shards of a folder in a fixed order."""
    return sorted(folder.glob(f"shard-*{LOCKED_SUFFIX}"))


def n_locked(path: Path) -> int:
    """Return how many vectors an encrypted shard holds, which its size tells anyone."""
    try:
        with path.open("rb") as file:
            sizes = _header(file.read(_HEADER.size))[1]
    except (OSError, ValueError) as error:
        raise refusal(path) from error
    return (sizes[_KEYS] - _SEAL_BYTES) // KEY_BYTES


def name_locked(path: Path, lock: Lock) -> str:
    """Return the name of the encoder of an encrypted shard."""
    return _open_early(path, _NAME, lock).decode()


def _open_early(path: Path, box: int, lock: Lock) -> bytes:
    """Return one of the boxes before the vectors, reading no further."""
    try:
        with path.open("rb") as file:
            own, sizes = _header(file.read(_HEADER.size))
            size = path.stat().st_size
            if min(sizes) < _SEAL_BYTES or sum(sizes) + _HEADER.size != size:
                raise ValueError("its parts are not as long as it says")
            file.seek(sum(sizes[:box]), 1)
            return lock.open(file.read(sizes[box]), _context(path.parent, own, box))
    except (OSError, ValueError) as error:
        raise refusal(path) from error


def _header(content: bytes) -> tuple[bytes, tuple[int, ...]]:
    try:
        magic, own, *sizes = _HEADER.unpack_from(content)
    except struct.error as error:
        raise ValueError("it is too short") from error
    if magic != _MAGIC:
        raise ValueError("it is of another kind")
    return own, tuple(sizes)


def _context(folder: Path, own: bytes, box: int) -> bytes:
    return _MAGIC + own + bytes([box]) + folder.name.encode()
