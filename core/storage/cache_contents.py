"""List and remove the contents of the cache folder.

Embeddings are vectors of texts; layouts are maps of them; representations are encoders and attacks
that pages fitted; studies are finished cells of studies and what their cells share. The rest holds
nothing of any text. Only what is ours is touched: folders that
`leakscope.core.storage.cache_folder` marked, and in them names that this program gives.
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

from leakscope.core.encoders.encrypted_shards import list_locked, n_locked, name_locked
from leakscope.core.encoders.shards import facts_of_shard, list_shards
from leakscope.core.errors import ArtifactError
from leakscope.core.storage.artifacts import META, read_json, storage_errors
from leakscope.core.storage.atomic_files import atomic_write, is_own
from leakscope.core.storage.cache_folder import CACHED, ON_REQUEST, cache_dir, is_ours
from leakscope.core.storage.encryption import LOCK_FILE, Lock, find_lock

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
"""Name pattern of temporary files."""


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """One entry of the cache: a file or folder, with its kind, encoders and size."""

    kind: str
    name: str
    encoders: tuple[str, ...]
    """Names of the encoders it belongs to; empty if unknown."""
    n_vectors: int
    n_files: int
    n_bytes: int
    hours: float
    """Hours since it was last added to."""
    is_encrypted: bool
    path: Path

    @property
    def encoder(self) -> str:
        """The names of its encoders, comma-separated; empty if unknown."""
        return ", ".join(self.encoders)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as a JSON-able dict, without its path."""
        told = asdict(self) | {"encoder": self.encoder, "hours": round(self.hours, 2)}
        del told["path"], told["encoders"]
        return told


@dataclass(frozen=True)
class Removal:
    """Cache entries that were removed, and those left because their encoder is unknown."""

    removed: list[CacheEntry]
    unknown: list[CacheEntry]


def list_cache() -> list[CacheEntry]:
    """Read the folders of the cache; return all entries, ordered by kind.

    Raises
    ------
    InvalidInputError
        A key was given, and it is not that of the cache.
    """
    lock = find_lock(is_made=False)
    return _list_entries(lock)


def _list_entries(lock: Lock | None) -> list[CacheEntry]:
    """Read the folders of the cache and describe each entry; encrypted names need the lock."""
    return [_describe_entry(kind, path, lock) for kind in CACHED for path in _entry_paths(kind)]


def _entry_paths(kind: str) -> list[Path]:
    """Return the paths of a kind's entries; none if its folder may hold files of others."""
    return [path for path in _list_children(kind) if _is_entry(kind, path)] if is_ours(kind) else []


def _list_children(kind: str) -> list[Path]:
    """Return the paths in a kind's cache folder, sorted; none if the folder is missing."""
    with suppress(OSError):
        return sorted(cache_dir(kind).iterdir())
    return []


def _is_entry(kind: str, path: Path) -> bool:
    """Return whether a path has a name that this program gives to cache entries."""
    with suppress(OSError):  # it has just gone
        return bool(re.fullmatch(f"{_NAMES[kind]}|{_BEGUN}", path.name)) and is_own(path)
    return False


def _describe_entry(kind: str, path: Path, lock: Lock | None) -> CacheEntry:
    """Read the files of a cache entry; return its encoders, vectors, size and age."""
    files = list(_iterate_files(path)) if path.is_dir() else [path]
    stats = []
    for file in files:
        with suppress(OSError):  # it has just gone
            stats.append(file.lstat())
    newest = max((stat.st_mtime for stat in stats), default=time.time())
    names, n_vectors, is_encrypted = (
        _describe_embeddings(path, lock)
        if kind == "embeddings"
        else ({_read_encoder_name(path)}, 0, False)
    )
    return CacheEntry(
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


def _iterate_files(folder: Path) -> Iterator[Path]:
    """Yield the path of each file below a folder, links included."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path


def _describe_embeddings(folder: Path, lock: Lock | None) -> tuple[set[str], int, bool]:
    """Read an embeddings folder; return encoder names, vector count and whether it is encrypted."""
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


def _read_encoder_name(folder: Path) -> str:
    """Read an artifact's metadata; return the encoder name that it gives, or ""."""
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
    """Delete cache entries by kind, encoder, age or encryption; return those removed and left.

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
        for each in (
            list_cache() if encoder else _list_entries(None)
        )  # who removes all needs no key
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
    """Delete a file or folder, retrying while another process writes to it."""
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
    """Delete the encryption lock file if nothing encrypted is left in the cache."""
    lock = cache_dir("embeddings") / LOCK_FILE
    with storage_errors(lock), suppress(FileNotFoundError):
        record = lock.read_bytes()
        if not _is_anything_locked():
            lock.unlink()
            if _is_anything_locked():  # a writer was faster: its vectors open with this one alone
                atomic_write(lock, record)


def _is_anything_locked() -> bool:
    """Return whether any encrypted shard is left in the cache."""
    return any(list_locked(folder) for folder in _list_children("embeddings"))
