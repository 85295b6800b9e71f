"""Artifacts on disk: arrays as safetensors and metadata as JSON, with checksums, never pickled.

An artifact is a folder with `model.json` (what it is, and the SHA-256 of its arrays) and a
`model-<digest>.safetensors` that the JSON names. The JSON is replaced last and in one step, so a
kill at any moment leaves the old artifact or the new one, never a mixture. Each file is on disk
before it has its name (`leakscope.core.storage.atomic_files`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from leakscope.core.errors import ArtifactError, InvalidInputError, StorageError
from leakscope.core.storage.atomic_files import (
    atomic_write,
    make_folder,
    make_private,
    remove_leftovers,
    unfinished,
)
from leakscope.core.storage.cache_folder import CACHED, NOWHERE, cache_dir, is_ours, user_home

META = "model.json"
FORMAT = 1
MOST_JSON_BYTES = 256 * 2**20
"""Largest JSON file that is read; far larger than any written here."""

SEAL = "seal"
"""Key of the SHA-256 in a sealed JSON object."""

UNFIT = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Exceptions raised when restoring an object from arrays and settings that do not fit its class."""

_RESTORE = (
    "Restore it, or move it aside and run the command that made it: what else was finished is kept."
)

_REMEDIES = {
    errno.ENOSPC: "Free some disk space",
    errno.EDQUOT: "Free some of your share of the disk",
    errno.EFBIG: "Choose a disk that takes files of this size",
    errno.EACCES: "Choose a folder that you may write",
    errno.EPERM: "Choose a folder that you may write",
    errno.EROFS: "Choose a folder on a disk that can be written",
    errno.ENOENT: "Make the folder first, or choose another",
    errno.EEXIST: "A file stands where a folder should be: choose another folder",
    errno.ENOTDIR: "A file stands where a folder should be: choose another folder",
    errno.EISDIR: "A folder stands where a file should be: choose another name",
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.EMFILE: "Close other programs, or raise the limit of open files (ulimit -n)",
}

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR)


def secure_cache() -> None:
    """Revoke other users' permissions on cache folders that older releases made readable."""
    for kind in filter(is_ours, CACHED):
        make_private(cache_dir(kind))


def is_refused(error: StorageError) -> bool:
    """Return whether a StorageError means that a folder cannot be written at all."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _REFUSED


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError raised within the block into a StorageError that names the remedy."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "Check the disk, or choose another")
        setting = "set LEAKSCOPE_HOME to a folder that can be written"
        if path.is_relative_to(NOWHERE):
            raise StorageError(f"{_describe_missing_home()}: {setting}.") from error
        if path.is_relative_to(cache_dir()):
            remedy += f", or {setting}"
        raise StorageError(
            f"Could not write {path}: {error.strerror or error}. {remedy}; what was finished "
            "before is kept, and the same command goes on from there."
        ) from error


def _describe_missing_home() -> str:
    """Return a sentence that says why there is no usable cache folder."""
    if given := os.environ.get("LEAKSCOPE_HOME"):
        return f"LEAKSCOPE_HOME is {given}, which this user may not enter"
    home = user_home()
    return f"The cache in {home} is closed to this user" if home else "No home folder is known"


def check_folder(target: Path) -> None:
    """Raise InvalidInputError unless `target` can name a file in an existing folder.

    For long work: a mistyped name is reported before the work, not after it.
    """
    if not target.parent.is_dir():
        raise InvalidInputError(
            f"{target}: the folder {target.parent} does not exist. Make it, or name another."
        )
    _check_name(target)


def check_writable(folder: Path) -> None:
    """Raise StorageError unless files can be written in a folder, existing or not.

    For results to be saved: an unwritable folder is reported before the work, not after it.
    What had to be made is removed again.

    Raises
    ------
    StorageError
        Nothing can be written there.
    """
    with storage_errors(folder):
        try:
            _try_writing(folder)
        except FileNotFoundError:  # another process looked too, and removed what both had made
            _try_writing(folder)


def _try_writing(folder: Path) -> None:
    """Create and remove a temporary file in a folder, to test that it can be written."""
    with _remove_if_empty(folder), unfinished(folder):
        pass


@contextmanager
def _remove_if_empty(folder: Path) -> Iterator[None]:
    """On exit, remove folders of the path that were missing on entry and are still empty."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    finally:
        for each in missing:
            with suppress(OSError):  # something lies in it
                each.rmdir()


@contextmanager
def output_folder(target: Path) -> Iterator[None]:
    """Create an output's parent folder on entry; on exit, remove it if it was new and is empty.

    Where nothing came to lie in it, it is not left behind.

    Raises
    ------
    InvalidInputError
        Something else than a file has the name.
    StorageError
        The folder cannot be made.
    """
    _check_name(target)
    with _remove_if_empty(target.parent):
        with storage_errors(target):
            make_folder(target.parent, is_public=True)
        yield


def _check_name(target: Path) -> None:
    """Raise InvalidInputError if the target is a folder or a special file."""
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder. Name a file in it.")
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"{target} is not an ordinary file. Name another.")


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(arrays: Mapping[str, NDArray[Any]], meta: Any) -> str:
    """Return the SHA-256, in hexadecimal, of named arrays and JSON-serialisable metadata."""
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write_json(path: Path, data: Any, *, is_public: bool = False) -> None:
    """Write data as JSON atomically; only the owner can read it, unless it `is_public`.

    It is for its owner's eyes alone, unless it `is_public`.
    """
    content = json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace")
    with storage_errors(path):
        atomic_write(path, content, is_public=is_public)


_PIECE_BYTES = 2**24  # read at a time


def read_whole(path: Path, at_most: int) -> bytes:
    """Return the bytes of a regular file; raise ValueError if it has more than `at_most`.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is a folder, a pipe or a device, or has more than `at_most` bytes.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not an ordinary file")
    pieces, left = list[bytes](), at_most
    with path.open("rb") as file:  # piece by piece: memory for all that is allowed may not be there
        while left >= 0 and (piece := file.read(min(_PIECE_BYTES, left + 1))):
            pieces.append(piece)
            left -= len(piece)
    if left < 0:
        raise ValueError(f"it has more than {at_most:,} bytes")
    return b"".join(pieces)


def read_json(path: Path, remedy: str = _RESTORE) -> Any:
    """Read and parse a JSON file; raise ArtifactError, with the remedy, if that fails."""
    try:
        return json.loads(read_whole(path, MOST_JSON_BYTES))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} does not exist.") from error
    except (ValueError, OSError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ArtifactError(f"{path} is damaged or not JSON: {told}. {remedy}") from error


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON object to a file together with its SHA-256."""
    plain = json.loads(json.dumps(data))  # as it will be read
    write_json(path, {**plain, SEAL: digest_of({}, plain)})


def read_sealed(path: Path, remedy: str = _RESTORE) -> dict[str, Any]:
    """Read a JSON object that `write_sealed` wrote, and verify its SHA-256.

    Raises
    ------
    ArtifactError
        It is no object, has no seal, or was altered since it was written.
    """
    data = read_json(path, remedy)
    if not isinstance(data, dict):
        raise ArtifactError(f"{path} does not hold a JSON object. {remedy}")
    if SEAL not in data:
        raise ArtifactError(f"{path} has lost its seal, a SHA-256 of its content. {remedy}")
    if data.pop(SEAL) != digest_of({}, data):
        raise ArtifactError(
            f"{path} was altered: its content is not that of its seal, a SHA-256. {remedy}"
        )
    return data


def read_record(path: Path, **kinds: type) -> dict[str, Any]:
    """Read a JSON object and check the types of the named entries; raise ArtifactError if wrong.

    A whole number will do for a float; more entries may be there.
    """
    found = read_json(path)
    record: dict[str, Any] = found if isinstance(found, dict) else {}
    wrong = [
        f" no {name!r} of type {kind.__name__}"
        for name, kind in kinds.items()
        if not isinstance(record.get(name), (int, float) if kind is float else kind)
    ]
    if wrong or not isinstance(found, dict):
        raise ArtifactError(
            f"{path} holds{','.join(wrong) or ' no object'}: it is not what was written there. "
            + _RESTORE
        )
    return record


def save_artifact(folder: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Path:
    """Write arrays and metadata into `folder`, replacing an older artifact atomically.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    with storage_errors(folder):
        with unfinished(folder) as file:
            with file.path.open("wb") as out:
                write_arrays(out, arrays)
            digest = digest_file(file.path)
            sealed = file.seal(folder / f"model-{digest[:12]}.safetensors")
        seal = {"format": FORMAT, "arrays_file": sealed.name, "arrays_sha256": digest}
        write_json(folder / META, {**meta, **seal})
    _remove_arrays(folder, but=sealed.name)
    return folder


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files and unused arrays that killed runs left in an artifact's folder.

    Raises
    ------
    ArtifactError
        `model.json` is damaged: nothing says which arrays are whole, and none is removed.
    """
    remove_leftovers(folder)
    is_sealed = (folder / META).exists()
    _remove_arrays(folder, but=_read_arrays_name(folder / META) if is_sealed else "")


def _read_arrays_name(meta: Path) -> str:
    """Read a `model.json` and return the name of the arrays file that it refers to."""
    return str(read_record(meta, arrays_file=str)["arrays_file"])


def _remove_arrays(folder: Path, *, but: str) -> None:
    """Remove the folder's array files except `but`, ignoring errors."""
    for path in folder.glob("model-*.safetensors"):
        if path.name != but:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def load_artifact(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Load an artifact's arrays, by name, and its metadata, after verifying its checksum.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or of another format: the message names the file.
    """
    meta = read_json(folder / META)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ArtifactError(f"{folder / META} is not an artifact of format {FORMAT}.")
    path = folder / Path(str(meta.get("arrays_file"))).name
    if not path.is_file():
        raise ArtifactError(f"{path} is missing. Restore the file or train the model again.")
    try:
        if digest_file(path) != meta.get("arrays_sha256"):
            raise ArtifactError(
                f"{path} is truncated or was altered: its SHA-256 is not the one that {META} "
                "records. Restore the file or train the model again."
            )
        arrays = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a safetensors file: {error}.") from error
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ArtifactError(
                f"{path} cannot be used: {name!r} holds numbers that are not finite. Restore the "
                "file or train the model again."
            )
    return arrays, meta


_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
"""The format's type names, in its order: the widest types come first in a file."""

_ORDER = {name: i for i, name in enumerate(_TYPES)}


def write_arrays(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to an open file in safetensors format.

    Raises
    ------
    InvalidInputError
        An array of a type that the format does not have.
    """
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES:
            raise InvalidInputError(f"{name!r} is of type {array.dtype}, which cannot be stored.")
    names = sorted(arrays, key=lambda name: (-_ORDER[arrays[name].dtype.name], name))
    header, at = {}, 0
    for name in names:
        array = arrays[name]
        header[name] = {
            "dtype": _TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at := at + array.nbytes],
        }
    told = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    told += b" " * (-len(told) % 8)
    file.write(len(told).to_bytes(8, "little") + told)
    for name in names:
        little = arrays[name].dtype.newbyteorder("<")
        whole = np.ascontiguousarray(arrays[name], dtype=little)
        file.write(whole.reshape(-1).view(np.uint8).data)
