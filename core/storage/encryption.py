"""Encryption of the cache, configured by environment variables.

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

from leakscope.core.errors import ArtifactError, InvalidInputError, MissingDependencyError, install
from leakscope.core.storage.artifacts import read_json, read_whole, storage_errors
from leakscope.core.storage.atomic_files import unfinished
from leakscope.core.storage.cache_folder import cache_dir

NO_CACHE = "LEAKSCOPE_NO_CACHE"
KEY = "LEAKSCOPE_KEY"
KEY_FILE = "LEAKSCOPE_KEY_FILE"

LOCK_FILE = "lock.json"
"""Name of the file beside encrypted data with the key's salt and a key check."""

LEAST_CHARACTERS = 12
COST = 2**17
"""scrypt cost of a new lock: 128 MiB of work per guess. Each lock records its own cost."""

_COSTS = tuple(2**k for k in range(10, 21))
_MOST_BYTES = 4096
_NONCE_BYTES = 12
_FORMAT = 1


def is_cache_off() -> bool:
    """Return whether $LEAKSCOPE_NO_CACHE turns the cache off."""
    return os.environ.get(NO_CACHE, "").strip().lower() not in ("", "0", "false", "no", "off")


def read_key() -> bytes | None:
    """Read the encryption key from the environment or from a key file; None if none is set.

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
    given = os.fsencode(phrase) if phrase is not None else _read_key_file(file or "")
    n_characters = len(given.decode(errors="surrogateescape"))
    if n_characters < LEAST_CHARACTERS:
        raise InvalidInputError(
            f"{name} must give at least {LEAST_CHARACTERS} characters, got {n_characters}. Give a "
            "longer key, or unset it to keep the cache unencrypted."
        )
    return given


def _read_key_file(file: str) -> bytes:
    """Read the encryption key from a file, without its final line end."""
    try:
        return read_whole(Path(file), _MOST_BYTES).rstrip(b"\r\n")
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise InvalidInputError(
            f"{KEY_FILE}: {file!r} cannot be read: {told}. Name a file that holds the key."
        ) from error


@dataclass(frozen=True)
class Lock:
    """Derived keys that encrypt cache contents and pseudonymise their names.

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
        """Return a keyed digest of content, `n_bytes` long; it reveals nothing without the key."""
        return hashlib.blake2b(content, digest_size=n_bytes, key=self.naming).digest()

    def seal(self, content: bytes, context: bytes) -> bytes:
        """Encrypt content (AES-GCM), bound to a context; return the nonce and the ciphertext."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed: bytes = self._build_cipher().encrypt(nonce, content, context)
        return nonce + sealed

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypt sealed content; raise ValueError for a wrong key, context or changed bytes.

        Raises
        ------
        ValueError
            Another key or context, or bytes that were changed.
        """
        from cryptography.exceptions import InvalidTag

        try:
            content: bytes = self._build_cipher().decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context
            )
        except InvalidTag as error:
            raise ValueError("it does not open with this key") from error
        return content

    def _build_cipher(self) -> Any:
        """Build the AES-GCM cipher from the key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.sealing)


def find_lock(folder: Path | None = None, *, is_made: bool = True) -> Lock | None:
    """Derive a folder's lock from the environment's key, creating its file; None without a key.

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
    given = read_key()
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
        _create_lock(place, given)
    told, salt, check = _read_record(place)
    sealing, naming, found = _derive(given, salt, told["n"])
    if not secrets.compare_digest(found, check):
        raise InvalidInputError(
            f"The key of {KEY} or {KEY_FILE} is not the one that encrypts {place.parent}. Give "
            "that one; nothing was changed. Without it, --no-cache goes on without the cache, and "
            "`leakscope cache clear --kind embeddings` removes the vectors, which are "
            "encoded anew when they are needed."
        )
    return Lock(sealing, naming, _encode_record(told))


def restore_lock(folder: Path, lock: Lock) -> bool:
    """Write a folder's lock file if it is missing; return whether its file is that of `lock`.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    place = folder / LOCK_FILE
    if not lock.record:
        return True
    if not place.exists():
        _write_record(place, lock.record)
    try:
        return _encode_record(read_json(place)) == lock.record
    except ArtifactError:
        return False


def _create_lock(place: Path, given: bytes) -> None:
    """Write a folder's lock file, with a new salt and a check of the key."""
    salt = secrets.token_bytes(16)
    check = _derive(given, salt, COST)[2]
    told = {"format": _FORMAT, "kdf": "scrypt", "n": COST, "salt": salt.hex(), "check": check.hex()}
    _write_record(place, _encode_record(told))


def _encode_record(told: Any) -> bytes:
    """Return a lock file's record as JSON bytes."""
    return json.dumps(told).encode()


def _write_record(place: Path, record: bytes) -> None:
    """Write a lock file unless there already is one."""
    with storage_errors(place), unfinished(place.parent) as file:
        file.path.write_bytes(record)
        with suppress(FileExistsError):  # another process was faster, and its salt is the one
            file.seal(place, is_new=True)


def _read_record(place: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """Read and check a lock file; return its record, salt and key check."""
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
            "or `leakscope cache clear --kind embeddings` removes the vectors, which are "
            "encoded anew when they are needed."
        )
    return told, salt, check


@lru_cache(maxsize=4)
def _derive(given: bytes, salt: bytes, n: int) -> tuple[bytes, bytes, bytes]:
    """Derive the encryption key, the naming key and a key check from a secret (scrypt)."""
    long = hashlib.scrypt(given, salt=salt, n=n, r=8, p=1, dklen=96, maxmem=2**11 * n)
    return long[:32], long[32:64], hashlib.sha256(long[64:]).digest()
