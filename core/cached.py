"""What lies below the cache folder: listed, and removed where that is asked for.

Embeddings are vectors of texts; layouts are maps of them; representations are encoders and attacks
that pages fitted; studies are finished cells of studies and what their cells share. The rest holds
nothing of any text. Only what is ours is touched: folders that `core.cache_folder` marked, and in
them names that this program gives.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.cache_folder import CACHED, ON_REQUEST, cache_dir, is_ours
from core.durable import is_own, write_whole
from core.encoders.locked import list_locked, n_locked, name_locked
from core.encoders.shards import facts_of_shard, list_shards
from core.errors import ArtifactError
from core.store import META, read_json, storage_errors
from core.vault import LOCK_FILE, Lock, find_lock

__all__ = ["Kept", "Removal", "kept", "remove"]

_HOUR = 3600.0

_NAMES = {
    "embeddings": r"[0-9a-f]{1,32}-[\w.-]+|locked-[0-9a-f]{32}",
    "layouts": r"[0-9a-f]{64}",
    "representations": r".+-[0-9a-f]{24}",
    "deniability": r"[0-9a-f]{1,32}",
    "backends": r"[0-9a-f]{32}\.json",
    "compiled": r"[0-9a-f]{16}",
    "studies": r"[a-z][a-z0-9_-]*",
}
_BEGUN = r"\..+\.unfinished"
"""What writers call what lies in each folder, whole or not."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something in the cache."""

    kind: str
    name: str
    encoders: tuple[str, ...]
    """Of which encoder it is, by all names that it was given; empty where that is not known."""
    n_vectors: int
    n_files: int
    n_bytes: int
    hours: float
    """Since it was last added to."""
    is_encrypted: bool
    path: Path

    @property
    def encoder(self) -> str:
        """Of which encoder it is, in words; empty where that is not known."""
        return ", ".join(self.encoders)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON has it, without where it lies."""
        told = asdict(self) | {"encoder": self.encoder, "hours": round(self.hours, 2)}
        del told["path"], told["encoders"]
        return told


@dataclass(frozen=True)
class Removal:
    """What was removed, and what was left because nobody can say of which encoder it is."""

    removed: list[Kept]
    unknown: list[Kept]


def kept() -> list[Kept]:
    """Return all that is in the cache, kind by kind.

    Raises
    ------
    InvalidInputError
        A key was given, and it is not that of the cache.
    """
    lock = find_lock(is_made=False)
    return _all_kept(lock)


def _all_kept(lock: Lock | None) -> list[Kept]:
    return [_kept(kind, path, lock) for kind in CACHED for path in _places(kind)]


def _places(kind: str) -> list[Path]:
    return [path for path in _all_in(kind) if _is_place(kind, path)] if is_ours(kind) else []


def _all_in(kind: str) -> list[Path]:
    with suppress(OSError):
        return sorted(cache_dir(kind).iterdir())
    return []


def _is_place(kind: str, path: Path) -> bool:
    """Return whether a writer of ours gave a file or a folder its name."""
    with suppress(OSError):  # it has just gone
        return bool(re.fullmatch(f"{_NAMES[kind]}|{_BEGUN}", path.name)) and is_own(path)
    return False


def _kept(kind: str, path: Path, lock: Lock | None) -> Kept:
    files = list(_files(path)) if path.is_dir() else [path]
    stats = []
    for file in files:
        with suppress(OSError):  # it has just gone
            stats.append(file.lstat())
    newest = max((stat.st_mtime for stat in stats), default=time.time())
    names, n_vectors, is_encrypted = _of_embeddings(path, lock) if kind == "embeddings" else (
        {_encoder_of(path)}, 0, False
    )  # fmt: skip
    return Kept(
        kind=kind,
        name=path.name,
        encoders=tuple(sorted(names - {""})),
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


def _of_embeddings(folder: Path, lock: Lock | None) -> tuple[set[str], int, bool]:
    """Return the encoder's names, the number of vectors, and whether they are encrypted."""
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
    return names, n_vectors, bool(locked)


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
) -> Removal:
    """Remove what is in the cache, and return what that was.

    Parameters
    ----------
    kinds : sequence of str
        All but those of `ON_REQUEST` by default.
    encoder : str, optional
        Only what is of the encoder of this name; what may be, as nobody can say, is left.
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
        for each in (kept() if encoder else _all_kept(None))  # who removes all needs no key
        if each.kind in chosen
        and each.hours >= older_than_hours
        and not (is_unencrypted and (each.is_encrypted or each.kind != "embeddings"))
    ]
    gone = [each for each in found if encoder is None or encoder in each.encoders]
    for each in gone:
        with storage_errors(each.path):
            _remove(each.path)
    is_whole = encoder is None and not older_than_hours and not is_unencrypted
    if is_whole and "embeddings" in chosen and is_ours("embeddings"):
        _remove_lock()
    of_texts = ("embeddings", "layouts", "representations")
    left = [each for each in found if encoder and not each.encoders and each.kind in of_texts]
    return Removal(gone, left)


def _remove(path: Path) -> None:
    """Remove a file or a folder; another process may be removing it, or writing to it."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for n_left in reversed(range(5)):
        try:
            shutil.rmtree(path)
        except OSError:
            if not path.exists():
                return
            if not n_left:
                raise


def _remove_lock() -> None:
    """Remove a lock that locks nothing any more: the next key may be another."""
    lock = cache_dir("embeddings") / LOCK_FILE
    with storage_errors(lock), suppress(FileNotFoundError):
        record = lock.read_bytes()
        if not _is_anything_locked():
            lock.unlink()
            if _is_anything_locked():  # a writer was faster: its vectors open with this one alone
                write_whole(lock, record)


def _is_anything_locked() -> bool:
    return any(list_locked(folder) for folder in _all_in("embeddings"))
