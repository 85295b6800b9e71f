"""Embeddings on disk, so that no corpus is encoded twice and a kill loses one block at most.

Corpora alone go through this cache. Typed and uploaded texts never do: their vectors would stay
on disk, and a vector tells much about its text. `core.vault` says how it is turned off, and how it
is encrypted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.encoders.locked import LockedShelf
from core.encoders.shards import Shelf
from core.errors import ArtifactError, StorageError
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.store import cache_dir, is_refused
from core.text import check_texts
from core.vault import find_lock, is_cache_off
from core.vectors import is_sparse, stack

__all__ = ["CachedEncoder"]

_LOG = logging.getLogger(__name__)

_Part = tuple[list[bytes], Vectors]


class CachedEncoder:
    """An encoder that remembers on disk what it has encoded; in all else the encoder it wraps.

    Vectors are kept as the float32 that the encoder returned, per encoder fingerprint and
    arithmetic (its precision and, but for float32, the library), and found again by a 128-bit
    digest of the text. Only `encode` is remembered; `encode_layer` and gradients pass through.
    With LEAKSCOPE_NO_CACHE nothing is; with LEAKSCOPE_KEY what is kept is encrypted.

    Parameters
    ----------
    encoder : Encoder
        Its attributes, those of white-box encoders included, are this encoder's too.
    folder : Path or None
        Where the shards lie; `cache_dir("embeddings")` by default.
    block_size : int
        Texts encoded between two writes. A multiple of the encoder's batch, so that batches are
        the ones that the encoder forms itself.

    Raises
    ------
    ArtifactError
        On encoding, when a shard is truncated or altered; the message names it.
    StorageError
        On encoding, when the disk is full; the blocks before are kept. A folder that takes nothing
        at all is done without, and a warning says so.
    InvalidInputError
        On encoding, when the key is not the one that encrypts the folder.
    """

    def __new__(cls, encoder: Encoder, *_: Any, **__: Any) -> CachedEncoder:
        """Make a white-box encoder of a white-box encoder, and no other."""
        is_white_box = hasattr(encoder, "embed_token_vectors")
        return object.__new__(_CachedWhiteBoxEncoder if is_white_box else cls)

    def __init__(
        self, encoder: Encoder, folder: Path | None = None, *, block_size: int = 4096
    ) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.block_size = block_size
        self._root = cache_dir("embeddings") if folder is None else Path(folder)
        self._rows: dict[bytes, tuple[Path, int]] = {}
        self._scanned: set[Path] = set()
        self._is_told, self._has_place = False, True

    def __getnewargs__(self) -> tuple[Encoder]:
        """Say what `__new__` takes where this object is copied."""
        return (self._encoder,)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the shelf: another process takes the key from its own environment."""
        return {name: value for name, value in self.__dict__.items() if name != "_shelf"}

    def __getattr__(self, name: str) -> Any:
        """Pass every other attribute through to the encoder."""
        if name.startswith("_"):  # not while this object is being built or copied
            raise AttributeError(name)
        return getattr(self._encoder, name)

    @property
    def folder(self) -> Path:
        """Where the shards lie: vectors of another arithmetic have a folder of their own."""
        return self._shelf.folder

    @cached_property
    def _shelf(self) -> Shelf:
        precision = getattr(self._encoder, "precision", "float32")
        name = f"{self.fingerprint[:32]}-{getattr(self._encoder, 'arithmetic', precision)}"
        lock = find_lock(self._root)
        if lock is None:
            return Shelf(self._root / name, self.dimension, self.name)
        return LockedShelf(self._root, name, self.dimension, self.name, lock)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) float32 embeddings of n texts, encoding the new ones only."""
        texts = check_texts(texts)
        if hasattr(self._encoder, "choose_backend"):
            self._encoder.choose_backend(on_progress)
        if is_cache_off() or not self._has_shelf():
            return self._encoder.encode(texts, on_progress)
        key_of = self._shelf.key
        keys = [key_of(text) for text in texts]
        self._scan()
        if not texts:
            return self._encoder.encode([])
        places: dict[bytes, list[int]] = {}
        for i, key in enumerate(keys):
            places.setdefault(key, []).append(i)
        parts = list(self._look_up([key for key in places if key in self._rows]))
        new = {k: texts[at[0]] for k, at in places.items() if k not in self._rows}
        parts += self._encode_new(new, on_progress)
        if not new:
            on_progress(1.0, f"All {len(texts):,} texts were encoded before")
        return _in_order(parts, places, len(texts))

    def _has_shelf(self) -> bool:
        """Return whether vectors can be looked up: a lock may have to be written first."""
        if not self._has_place:
            return False
        try:
            return bool(self._shelf)
        except StorageError as error:
            self._do_without(error)
            self._has_place = False  # each try costs what it costs to guess a key
            return False

    def _do_without(self, error: StorageError) -> None:
        """Go on though vectors cannot be kept.

        Raises
        ------
        StorageError
            The disk is full: anyone who frees some space can go on from there.
        """
        if not is_refused(error):
            raise error
        if not self._is_told:
            _LOG.warning(
                "The vectors of texts are not kept, so they are encoded again each time: %s", error
            )
        self._is_told = True

    def _scan(self) -> None:
        """Take up the shards that appeared since the last call, other processes' included."""
        for path in self._shelf.shards():
            if path not in self._scanned:
                with _while_there(path):
                    self._take_up(path, self._shelf.keys(path))

    def _take_up(self, path: Path, keys: Sequence[bytes]) -> None:
        self._rows.update((key, (path, i)) for i, key in enumerate(keys))
        self._scanned.add(path)

    def _forget(self, path: Path) -> None:
        self._rows = {key: place for key, place in self._rows.items() if place[0] != path}
        self._scanned.discard(path)

    def _look_up(self, keys: list[bytes]) -> Iterator[_Part]:
        """Yield known keys with their vectors, reading each shard once.

        The keys of shards that were removed meanwhile are known no more.
        """
        by_shard: dict[Path, list[bytes]] = {}
        for key in keys:
            by_shard.setdefault(self._rows[key][0], []).append(key)
        for path, held in by_shard.items():
            rows = [self._rows[key][1] for key in held]
            vectors = None
            with _while_there(path):
                vectors = self._shelf.vectors(path)
            if vectors is None:
                self._forget(path)
            else:
                yield held, vectors[rows]

    def _encode_new(self, new: dict[bytes, str], on_progress: OnProgress) -> Iterator[_Part]:
        """Encode texts that are not on disk, longest first, and write every block at once."""
        done = 0
        ranked = sorted(new, key=lambda k: len(new[k]), reverse=True)
        for block in _blocks(ranked, self.block_size):

            def scaled(fraction: float, _: str, done: int = done, n: int = len(block)) -> None:
                now = done + round(fraction * n)
                on_progress(now / len(new), f"Encoded {now:,} of {len(new):,} new texts")

            vectors = self._encoder.encode([new[k] for k in block], scaled)
            self._keep([new[k] for k in block], vectors)
            done += len(block)
            yield block, vectors

    def _keep(self, texts: list[str], vectors: Vectors) -> None:
        """Write vectors, where that can be done."""
        try:
            self._write(texts, vectors)
        except StorageError as error:
            self._do_without(error)

    def _write(self, texts: list[str], vectors: Vectors) -> None:
        """Write vectors, though somebody may be clearing the cache beside us."""
        if not self._shelf.is_current():  # it was cleared, and locked anew
            self.__dict__.pop("_shelf", None)
            self._rows, self._scanned = {}, set()
        keys = [self._shelf.key(text) for text in texts]
        try:
            path = self._shelf.write(keys, vectors)
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            path = self._shelf.write(keys, vectors)  # its folder was removed under it
        self._take_up(path, keys)


@contextmanager
def _while_there(path: Path) -> Iterator[None]:
    """Take a shard that cannot be read for damaged only where it was not removed."""
    try:
        yield
    except ArtifactError:
        if path.exists():
            raise


def _in_order(parts: list[_Part], places: dict[bytes, list[int]], n: int) -> Vectors:
    """Return the vectors at the places where their texts stood, repetitions included."""
    if any(is_sparse(vectors) for _, vectors in parts):
        keys = [key for held, _ in parts for key in held]
        row_of = np.empty(n, np.int64)
        for row, key in enumerate(keys):
            row_of[places[key]] = row
        ordered: Vectors = stack([vectors for _, vectors in parts])[row_of]
        return ordered
    out = np.empty((n, parts[0][1].shape[1]), dtype=np.float32)
    for held, vectors in parts:
        targets = [(i, row) for row, key in enumerate(held) for i in places[key]]
        out[[i for i, _ in targets]] = vectors[[row for _, row in targets]]
    return out


class _CachedWhiteBoxEncoder(CachedEncoder):
    """Names what is open, since structural checks do not look through __getattr__."""

    n_layers = property(lambda self: self._encoder.n_layers)
    tokens = property(lambda self: self._encoder.tokens)
    token_vectors = property(lambda self: self._encoder.token_vectors)
    encode_layer = property(lambda self: self._encoder.encode_layer)
    embed_token_vectors = property(lambda self: self._encoder.embed_token_vectors)


def _blocks(keys: list[bytes], size: int) -> Iterator[list[bytes]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
