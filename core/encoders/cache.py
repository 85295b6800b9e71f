"""Embeddings on disk, so that no corpus is encoded twice and a kill loses one block at most.

Corpora alone go through this cache. Typed and uploaded texts never do: their vectors would stay
on disk, and a vector tells much about its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.encoders.shards import list_shards, read_keys, read_vectors, text_key, write_shard
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.store import cache_dir
from core.text import check_texts

__all__ = ["CachedEncoder"]


class CachedEncoder:
    """An encoder that remembers on disk what it has encoded; in all else the encoder it wraps.

    Vectors are kept as the float32 that the encoder returned, per encoder fingerprint and
    precision, and found again by a 128-bit digest of the text. Only `encode` is remembered;
    `encode_layer` and gradients pass through.

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
        On encoding, when the disk is full; the blocks before are kept.
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
        precision = getattr(encoder, "precision", "float32")
        root = cache_dir("embeddings") if folder is None else Path(folder)
        self.folder = root / f"{encoder.fingerprint[:32]}-{precision}"
        self._rows: dict[bytes, tuple[Path, int]] = {}
        self._scanned: set[Path] = set()

    def __getattr__(self, name: str) -> Any:
        """Pass every other attribute through to the encoder."""
        if name.startswith("_"):  # not while this object is being built or copied
            raise AttributeError(name)
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) float32 embeddings of n texts, encoding the new ones only."""
        texts = check_texts(texts)
        keys = [text_key(text) for text in texts]
        self._scan()
        new = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._rows}
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        known = np.array([i for i, k in enumerate(keys) if k in self._rows], dtype=np.int64)
        out[known] = self._look_up([keys[i] for i in known])
        found = self._encode_new(new, on_progress)
        for i, key in enumerate(keys):
            if key in found:
                out[i] = found[key]
        if texts and not new:
            on_progress(1.0, f"All {len(texts):,} texts were encoded before")
        return out

    def _scan(self) -> None:
        """Take up the shards that appeared since the last call, other processes' included."""
        for path in list_shards(self.folder):
            if path not in self._scanned:
                self._rows.update((k, (path, i)) for i, k in enumerate(read_keys(path)))
                self._scanned.add(path)

    def _look_up(self, keys: list[bytes]) -> Vectors:
        """Return the vectors of known keys, reading each shard once."""
        out = np.empty((len(keys), self.dimension), dtype=np.float32)
        by_shard: dict[Path, list[tuple[int, int]]] = {}
        for position, key in enumerate(keys):
            path, row = self._rows[key]
            by_shard.setdefault(path, []).append((position, row))
        for path, pairs in by_shard.items():
            positions, rows = np.array(pairs).T
            out[positions] = read_vectors(path, self.dimension)[rows]
        return out

    def _encode_new(self, new: dict[bytes, str], on_progress: OnProgress) -> dict[bytes, Vectors]:
        """Encode texts that are not on disk, longest first, and write every block at once."""
        found: dict[bytes, Vectors] = {}
        ranked = sorted(new, key=lambda k: len(new[k]), reverse=True)
        for block in _blocks(ranked, self.block_size):
            done = len(found)

            def scaled(fraction: float, _: str, done: int = done, n: int = len(block)) -> None:
                now = done + round(fraction * n)
                on_progress(now / len(new), f"Encoded {now:,} of {len(new):,} new texts")

            vectors = self._encoder.encode([new[k] for k in block], scaled)
            path = write_shard(self.folder, block, vectors)
            self._scanned.add(path)
            self._rows.update((k, (path, i)) for i, k in enumerate(block))
            found.update(zip(block, vectors, strict=True))
        return found


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
