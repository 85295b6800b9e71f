"""What lies below the cache folder: listed, and removed where that is asked for.

Embeddings are vectors of texts; layouts are maps of them; representations are encoders and attacks
that pages fitted; studies are finished cells of studies and what their cells share. The rest holds
nothing of any text.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.encoders.locked import list_locked, n_locked, name_locked
from core.encoders.shards import facts_of_shard, list_shards
from core.errors import ArtifactError
from core.store import CACHED, META, ON_REQUEST, cache_dir, read_json, storage_errors
from core.vault import LOCK_FILE, Lock, find_lock

__all__ = ["Kept", "kept", "remove"]

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something in the cache."""

    kind: str
    name: str
    encoder: str
    """Of which encoder it is; empty where that is not known."""
    n_vectors: int
    n_files: int
    n_bytes: int
    hours: float
    """Since it was last added to."""
    is_encrypted: bool
    path: Path

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON has it, without where it lies."""
        told = asdict(self) | {"hours": round(self.hours, 2)}
        del told["path"]
        return told


def kept() -> list[Kept]:
    """Return all that is in the cache, kind by kind.

    Raises
    ------
    InvalidInputError
        A key was given, and it is not that of the cache.
    """
    lock = find_lock(is_made=False)
    return [found for kind in CACHED for path in _places(kind) for found in _kept(kind, path, lock)]


def _places(kind: str) -> list[Path]:
    with suppress(OSError):
        return sorted(cache_dir(kind).iterdir())
    return []


def _kept(kind: str, path: Path, lock: Lock | None) -> Iterator[Kept]:
    if path.name == LOCK_FILE:
        return
    files = [path] if path.is_symlink() or not path.is_dir() else list(_files(path))
    stats = []
    for file in files:
        with suppress(OSError):  # it has just gone
            stats.append(file.lstat())
    newest = max((stat.st_mtime for stat in stats), default=time.time())
    encoder, n_vectors, is_encrypted = _of_embeddings(path, lock) if kind == "embeddings" else (
        _encoder_of(path), 0, False
    )  # fmt: skip
    yield Kept(
        kind=kind,
        name=path.name,
        encoder=encoder,
        n_vectors=n_vectors,
        n_files=len(stats),
        n_bytes=sum(stat.st_size for stat in stats),
        hours=max(0.0, time.time() - newest) / _HOUR,
        is_encrypted=is_encrypted,
        path=path,
    )


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path


def _of_embeddings(folder: Path, lock: Lock | None) -> tuple[str, int, bool]:
    """Return the encoder, the number of vectors, and whether they are encrypted."""
    names, n_vectors, locked = {""}, 0, list_locked(folder)
    for path in list_shards(folder):
        with suppress(ArtifactError):
            name, n = facts_of_shard(path)
            names.add(name)
            n_vectors += n
    for path in locked:
        with suppress(ArtifactError):
            n_vectors += n_locked(path)
            names.add(name_locked(path, lock) if lock else "")
    return ", ".join(sorted(names - {""})), n_vectors, bool(locked)


def _encoder_of(folder: Path) -> str:
    """Return the encoder that an artefact names."""
    with suppress(ArtifactError):
        found = read_json(folder / META)
        told = found.get("encoder", found.get("encoder_name")) if isinstance(found, dict) else None
        return told if isinstance(told, str) else ""
    return ""


def remove(
    kinds: Sequence[str] = (),
    *,
    encoder: str | None = None,
    older_than_hours: float = 0.0,
    is_unencrypted: bool = False,
) -> list[Kept]:
    """Remove what is in the cache, and return what that was.

    Parameters
    ----------
    kinds : sequence of str
        All but those of `ON_REQUEST` by default.
    encoder : str, optional
        Only what is of the encoder of this name.
    older_than_hours : float
        Only what was last added to so long ago.
    is_unencrypted : bool
        Only vectors that are not encrypted.

    Raises
    ------
    StorageError
        Something cannot be removed.
    """
    chosen = kinds or [kind for kind in CACHED if kind not in ON_REQUEST]
    found = [
        each
        for each in (kept() if encoder else _without_key())
        if each.kind in chosen
        and each.hours >= older_than_hours
        and (encoder is None or each.encoder == encoder)
        and not (is_unencrypted and (each.is_encrypted or each.kind != "embeddings"))
    ]
    for each in found:
        with storage_errors(each.path):
            _remove(each.path)
    _remove_lock()
    return found


def _without_key() -> list[Kept]:
    """Return all that is in the cache, whether or not it can be read."""
    return [found for kind in CACHED for path in _places(kind) for found in _kept(kind, path, None)]


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def _remove_lock() -> None:
    """Remove a lock that locks nothing any more: the next key may be another."""
    if not any(list_locked(folder) for folder in _places("embeddings")):
        lock = cache_dir("embeddings") / LOCK_FILE
        with storage_errors(lock):
            lock.unlink(missing_ok=True)
