"""The key of the cache, and whether there is to be a cache at all: from the environment.

`LEAKSCOPE_NO_CACHE=1` keeps no vectors of texts on disk, and reads none. `LEAKSCOPE_KEY`, a phrase,
or `LEAKSCOPE_KEY_FILE`, a file that holds one, encrypt what is kept: by AES-256 in Galois/Counter
Mode, which tells a changed byte from the one that was written. Names are made with the key, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.durable import unfinished
from core.errors import ArtifactError, InvalidInputError, MissingDependencyError, install
from core.store import cache_dir, read_json, read_whole, storage_errors

__all__ = [
    "KEY",
    "KEY_FILE",
    "LOCK_FILE",
    "NO_CACHE",
    "Lock",
    "find_lock",
    "is_cache_off",
    "keep_lock",
    "secret",
]

NO_CACHE = "LEAKSCOPE_NO_CACHE"
KEY = "LEAKSCOPE_KEY"
KEY_FILE = "LEAKSCOPE_KEY_FILE"

LOCK_FILE = "lock.json"
"""Beside what is encrypted: the salt of its key, and what tells the key from others."""

LEAST_CHARACTERS = 12
COST = 2**17
"""Of scrypt, for a new lock: 128 MiB of work for each guess. A lock says what it took."""

_COSTS = tuple(2**k for k in range(10, 21))
_MOST_BYTES = 4096
_NONCE_BYTES = 12
_FORMAT = 1


def is_cache_off() -> bool:
    """Return whether vectors of texts are to be kept in memory alone."""
    return os.environ.get(NO_CACHE, "").strip().lower() not in ("", "0", "false", "no", "off")


def secret() -> bytes | None:
    """Return what the user gave as a key; None where nothing was given.

    Raises
    ------
    InvalidInputError
        It is too short, the file cannot be read, or both were given.
    """
    phrase, file = os.environ.get(KEY), os.environ.get(KEY_FILE)
    if phrase is None and file is None:
        return None
    if phrase is not None and file is not None:
        raise InvalidInputError(f"Give {KEY} or {KEY_FILE}, not both: unset one.")
    name = KEY if phrase is not None else KEY_FILE
    given = os.fsencode(phrase) if phrase is not None else _read(file or "")
    n_characters = len(given.decode(errors="surrogateescape"))
    if n_characters < LEAST_CHARACTERS:
        raise InvalidInputError(
            f"{name} must give at least {LEAST_CHARACTERS} characters, got {n_characters}. Give a "
            "longer key, or unset it to keep the cache unencrypted."
        )
    return given


def _read(file: str) -> bytes:
    try:
        return read_whole(Path(file), _MOST_BYTES).rstrip(b"\r\n")
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise InvalidInputError(
            f"{KEY_FILE}: {file!r} cannot be read: {told}. Name a file that holds the key."
        ) from error


@dataclass(frozen=True)
class Lock:
    """What encrypts and names things by a key.

    Parameters
    ----------
    sealing, naming : bytes
        Keys of 32 bytes: of the encryption, and of names.
    record : bytes
        What the file of the lock holds, to write it back; empty for one without a file.
    """

    sealing: bytes = field(repr=False)
    naming: bytes = field(repr=False)
    record: bytes = field(default=b"", repr=False)

    def name(self, content: bytes, n_bytes: int) -> bytes:
        """Return a digest that says nothing of the content to whoever lacks the key."""
        return hashlib.blake2b(content, digest_size=n_bytes, key=self.naming).digest()

    def seal(self, content: bytes, context: bytes) -> bytes:
        """Return content encrypted, to be opened in the same context alone."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed: bytes = self._cipher().encrypt(nonce, content, context)
        return nonce + sealed

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Return what was sealed.

        Raises
        ------
        ValueError
            Another key or context, or bytes that were changed.
        """
        from cryptography.exceptions import InvalidTag

        try:
            content: bytes = self._cipher().decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context
            )
        except InvalidTag as error:
            raise ValueError("it does not open with this key") from error
        return content

    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.sealing)


def find_lock(folder: Path | None = None, *, is_made: bool = True) -> Lock | None:
    """Return the lock of a folder by the key of the environment; None where there is no key.

    Parameters
    ----------
    folder : Path or None
        `cache_dir("embeddings")` by default.
    is_made : bool
        Make the lock where the folder has none yet; else there is none.

    Raises
    ------
    InvalidInputError
        The folder is encrypted by another key, or what was given is no key.
    MissingDependencyError
        A key was given, and nothing that encrypts is installed.
    ArtifactError
        The lock of the folder is damaged.
    StorageError
        It cannot be written.
    """
    given = secret()
    if given is None:
        return None
    if find_spec("cryptography") is None:
        raise MissingDependencyError(
            f"{KEY} asks for an encrypted cache, which needs the `cryptography` package: "
            f"{install('cryptography')}. Nothing was written unencrypted."
        )
    place = (cache_dir("embeddings") if folder is None else folder) / LOCK_FILE
    if not place.exists():
        if not is_made:
            return None
        _make(place, given)
    told, salt, check = _stored(place)
    sealing, naming, found = _derive(given, salt, told["n"])
    if not secrets.compare_digest(found, check):
        raise InvalidInputError(
            f"The key of {KEY} or {KEY_FILE} is not the one that encrypts {place.parent}. Give "
            "that one; nothing was changed. Without it, --no-cache goes on without the cache, and "
            "`python -m core cache clear --kind embeddings` removes the vectors, which are "
            "encoded anew when they are needed."
        )
    return Lock(sealing, naming, _record(told))


def keep_lock(folder: Path, lock: Lock) -> bool:
    """Return whether the lock of a folder is this one; where it was removed, it is written back.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    place = folder / LOCK_FILE
    if not lock.record:
        return True
    if not place.exists():
        _write(place, lock.record)
    try:
        return _record(read_json(place)) == lock.record
    except ArtifactError:
        return False


def _make(place: Path, given: bytes) -> None:
    salt = secrets.token_bytes(16)
    check = _derive(given, salt, COST)[2]
    told = {"format": _FORMAT, "kdf": "scrypt", "n": COST, "salt": salt.hex(), "check": check.hex()}
    _write(place, _record(told))


def _record(told: Any) -> bytes:
    return json.dumps(told).encode()


def _write(place: Path, record: bytes) -> None:
    with storage_errors(place), unfinished(place.parent) as file:
        file.path.write_bytes(record)
        with suppress(FileExistsError):  # another process was faster, and its salt is the one
            file.seal(place, is_new=True)


def _stored(place: Path) -> tuple[dict[str, Any], bytes, bytes]:
    told = read_json(place)
    try:
        salt, check = bytes.fromhex(told["salt"]), bytes.fromhex(told["check"])
        is_known = told["format"] == _FORMAT and len(salt) == 16 and len(check) == 32
        is_known = is_known and told["n"] in _COSTS
    except (KeyError, TypeError, ValueError):
        is_known = False
    if not is_known:
        raise ArtifactError(
            f"{place} is damaged, and what is encrypted beside it opens with it alone. Restore it; "
            "or `python -m core cache clear --kind embeddings` removes the vectors, which are "
            "encoded anew when they are needed."
        )
    return told, salt, check


@lru_cache(maxsize=4)
def _derive(given: bytes, salt: bytes, n: int) -> tuple[bytes, bytes, bytes]:
    """Return the two keys, and what tells this key from others: n KiB of work for each guess."""
    long = hashlib.scrypt(given, salt=salt, n=n, r=8, p=1, dklen=96, maxmem=2**11 * n)
    return long[:32], long[32:64], hashlib.sha256(long[64:]).digest()
