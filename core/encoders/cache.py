"""Embeddings cached on disk: no corpus text is encoded twice; a kill loses at most one block.

Only corpora use this cache. Typed and uploaded texts never do: their vectors would stay on disk,
and a vector reveals much about its text. `leakscope.core.storage.encryption` describes how to turn
the cache off and how to encrypt it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.encoders.encrypted_shards import EncryptedShards
from leakscope.core.encoders.shards import ShardFolder
from leakscope.core.errors import ArtifactError, StorageError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.storage.artifacts import is_refused
from leakscope.core.storage.cache_folder import cache_dir
from leakscope.core.storage.encryption import find_lock, is_cache_off
from leakscope.core.text import check_texts
from leakscope.core.vectors import is_sparse, stack

_LOG = logging.getLogger(__name__)

_Part = tuple[list[bytes], Vectors]


class CachedEncoder:
    """An encoder that caches on disk the vectors that the wrapped encoder returns.

    Vectors are stored as float32, as the encoder returned them, per encoder fingerprint and
    arithmetic (its precision and, except in float32, the library), under a 128-bit digest of the
    text. Only `encode` is cached; `encode_layer` and gradients pass through. LEAKSCOPE_NO_CACHE
    turns the cache off; LEAKSCOPE_KEY encrypts it.

    Parameters
    ----------
    encoder : Encoder
        The encoder to wrap; all its attributes are available on the cached encoder.
    folder : Path or None
        The folder of the shards; `cache_dir("embeddings")` by default.
    block_size : int
        Texts encoded between two writes. A multiple of the encoder's batch size, so that batches
        are the same as without the cache.

    Raises
    ------
    ArtifactError
        On encoding, when a shard is truncated or altered; the message names it.
    StorageError
        On encoding, when the disk is full; blocks written before remain. If the folder is not
        writable at all, nothing is cached and a warning is logged.
    InvalidInputError
        On encoding, when the key is not the one that encrypts the folder.
    """

    def __new__(cls, encoder: Encoder, *_: Any, **__: Any) -> CachedEncoder:
        """Create a white-box cached encoder if the wrapped encoder is a white box."""
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
        """Return the wrapped encoder as `__new__`'s argument on copying and unpickling."""
        return (self._encoder,)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the open cache: each process reads the key itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_shards"}

    def __getattr__(self, name: str) -> Any:
        """Return the wrapped encoder's attribute of this name."""
        if name.startswith("_"):  # may be missing while this object is being built or copied
            raise AttributeError(name)
        return getattr(self._encoder, name)

    @property
    def folder(self) -> Path:
        """The folder of this encoder's shards, one for each arithmetic."""
        return self._shards.folder

    @cached_property
    def _shards(self) -> ShardFolder:
        """The folder of this encoder's shards, encrypted if the cache has a lock."""
        precision = getattr(self._encoder, "precision", "float32")
        name = f"{self.fingerprint[:32]}-{getattr(self._encoder, 'arithmetic', precision)}"
        lock = find_lock(self._root)
        if lock is None:
            return ShardFolder(self._root / name, self.dimension, self.name)
        return EncryptedShards(self._root, name, self.dimension, self.name, lock)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode texts not yet cached; return the (n, dimension) float32 vectors of all n texts."""
        texts = check_texts(texts)
        if hasattr(self._encoder, "choose_backend"):
            self._encoder.choose_backend(on_progress)
        if is_cache_off() or not self._is_usable():
            return self._encoder.encode(texts, on_progress)
        key_of = self._shards.key
        keys = [key_of(text) for text in texts]
        self._index_new_shards()
        if not texts:
            return self._encoder.encode([])
        places: dict[bytes, list[int]] = {}
        for i, key in enumerate(keys):
            places.setdefault(key, []).append(i)
        parts = list(self._look_up([key for key in places if key in self._rows]))
        new = {k: texts[at[0]] for k, at in places.items() if k not in self._rows}
        parts += self._encode_new(new, on_progress)
        if not new:
            on_progress(1.0, f"All {len(texts):,} texts were already encoded")
        return _merge_parts(parts, places, len(texts))

    def _is_usable(self) -> bool:
        """Return whether the cache can be used; if not, warn. May write the encryption lock."""
        if not self._has_place:
            return False
        try:
            return bool(self._shards)
        except StorageError as error:
            self._warn_not_cached(error)
            self._has_place = False  # each try is as expensive as guessing a key
            return False

    def _warn_not_cached(self, error: StorageError) -> None:
        """Warn, the first time only, that vectors cannot be cached.

        Raises
        ------
        StorageError
            The disk is full; the work can resume once there is space.
        """
        if not is_refused(error):
            raise error
        if not self._is_told:
            _LOG.warning(
                "Vectors cannot be cached, so texts are encoded again each time: %s", error
            )
        self._is_told = True

    def _index_new_shards(self) -> None:
        """Index shards that appeared since the last call, also those of other processes."""
        for path in self._shards.shards():
            if path not in self._scanned:
                with _ignore_removed(path):
                    self._index_shard(path, self._shards.keys(path))

    def _index_shard(self, path: Path, keys: Sequence[bytes]) -> None:
        """Record for each text key the shard and row of its vector."""
        self._rows.update((key, (path, i)) for i, key in enumerate(keys))
        self._scanned.add(path)

    def _drop_shard(self, path: Path) -> None:
        """Remove from the index the keys of a shard that no longer exists."""
        self._rows = {key: place for key, place in self._rows.items() if place[0] != path}
        self._scanned.discard(path)

    def _look_up(self, keys: list[bytes]) -> Iterator[_Part]:
        """Read the vectors of text keys, shard by shard; yield keys with vectors.

        Keys of shards that were removed meanwhile are dropped from the index.
        """
        by_shard: dict[Path, list[bytes]] = {}
        for key in keys:
            by_shard.setdefault(self._rows[key][0], []).append(key)
        for path, held in by_shard.items():
            rows = [self._rows[key][1] for key in held]
            vectors = None
            with _ignore_removed(path):
                vectors = self._shards.vectors(path)
            if vectors is None:
                self._drop_shard(path)
            else:
                yield held, vectors[rows]

    def _encode_new(self, new: dict[bytes, str], on_progress: OnProgress) -> Iterator[_Part]:
        """Encode uncached texts in blocks, longest first; write and yield each block's vectors."""
        done = 0
        ranked = sorted(new, key=lambda k: len(new[k]), reverse=True)
        for block in _blocks(ranked, self.block_size):

            def scaled(fraction: float, _: str, done: int = done, n: int = len(block)) -> None:
                """Report a block's progress as a share of all new texts."""
                now = done + round(fraction * n)
                on_progress(now / len(new), f"Encoded {now:,} of {len(new):,} new texts")

            vectors = self._encoder.encode([new[k] for k in block], scaled)
            self._try_write([new[k] for k in block], vectors)
            done += len(block)
            yield block, vectors

    def _try_write(self, texts: list[str], vectors: Vectors) -> None:
        """Write texts' vectors to the cache, or warn if that is impossible."""
        try:
            self._write(texts, vectors)
        except StorageError as error:
            self._warn_not_cached(error)

    def _write(self, texts: list[str], vectors: Vectors) -> None:
        """Write vectors as a new shard, even if another process clears the cache meanwhile."""
        if not self._shards.is_current():  # it was cleared and has a new lock
            self.__dict__.pop("_shards", None)
            self._rows, self._scanned = {}, set()
        keys = [self._shards.key(text) for text in texts]
        try:
            path = self._shards.write(keys, vectors)
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            path = self._shards.write(keys, vectors)  # its folder was removed meanwhile
        self._index_shard(path, keys)


@contextmanager
def _ignore_removed(path: Path) -> Iterator[None]:
    """Suppress a shard's ArtifactError if the shard was removed meanwhile."""
    try:
        yield
    except ArtifactError:
        if path.exists():
            raise


def _merge_parts(parts: list[_Part], places: dict[bytes, list[int]], n: int) -> Vectors:
    """Merge the vectors of distinct texts into one array with a row for each of n texts."""
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
    """A cached encoder with the white-box attributes that structural checks look for."""

    n_layers = property(lambda self: self._encoder.n_layers)
    tokens = property(lambda self: self._encoder.tokens)
    token_vectors = property(lambda self: self._encoder.token_vectors)
    encode_layer = property(lambda self: self._encoder.encode_layer)
    embed_token_vectors = property(lambda self: self._encoder.embed_token_vectors)


def _blocks(keys: list[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield consecutive slices of a list of keys."""
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
