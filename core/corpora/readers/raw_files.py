"""Open a user's file: check that it is readable text of the expected kind, and read its lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from leakscope.core.corpora.readers.encodings import CP1252, UTF_16, decode_cp1252, encoding_of
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.errors import InvalidInputError

Source = File | str
"""A file, or the name of another source of rows, for messages."""

MAX_TEXT_CHARACTERS = 1_000_000
"""Longest text in a row; about the length of a novel."""

_MAX_LINE_BYTES = 8 * MAX_TEXT_CHARACTERS
_MAX_WHOLE_BYTES = 200 * 2**20
"""Largest file that is read at once, such as one JSON document."""

_KINDS = {
    b"PK\x03\x04": "a ZIP archive or an Excel or Word file; export it as CSV in UTF-8",
    b"PK\x05\x06": "an empty ZIP archive; give the text file itself",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file; export it as CSV in UTF-8",
    b"\x1f\x8b": "compressed by gzip; uncompress it first",
    b"BZh": "compressed by bzip2; uncompress it first",
    b"\xfd7zXZ": "compressed by xz; uncompress it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; uncompress it first",
    b"%PDF": "a PDF; copy its text into a text file",
    b"PAR1": "a Parquet file; give it the ending .parquet",
    b"\xff\xfe\0\0": "text in UTF-32; save it as UTF-8",
    b"\0\0\xfe\xff": "text in UTF-32; save it as UTF-8",
    b"\x89PNG": "a picture; only texts can be read",
    b"\xff\xd8\xff": "a picture; only texts can be read",
    b"\x93NUMPY": "a NumPy array; only texts can be read",
}
PICKLES = tuple(bytes([0x80, version]) for version in range(2, 6))
"""Leading bytes of Python pickles."""


def refusal(source: Source, place: str, problem: str) -> InvalidInputError:
    """Build, without raising it, the error that names a source, a place in it and the problem."""
    where = f"{source}, {place}" if place else f"{source}"
    return InvalidInputError(f"{where}: {problem}")


def check_file(path: File, *, is_parquet: bool = False) -> None:
    """Raise InvalidInputError unless a file can be opened and is text (or Parquet)."""
    head = _read_head(path)
    if not head:
        raise refusal(path, "", "is empty. Give a file with at least one text.")
    if is_parquet:
        if not head.startswith(b"PAR1"):
            raise refusal(
                path, "", "is not Parquet. Write it again, or give it the right file ending."
            )
        return
    if head.startswith(PICKLES):
        raise refusal(
            path,
            "",
            "looks like a Python pickle, which is never opened. Save the texts as CSV.",
        )
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            raise refusal(path, "", f"is {kind}.")


def _read_head(path: File) -> bytes:
    """Read and return a file's first 8 bytes; raise InvalidInputError if it cannot be read."""
    try:
        if path.is_dir():
            raise refusal(path, "", "is a folder. Name a file in it.")
        if not path.exists():
            raise refusal(path, "", "does not exist. Check the path.")
        if not path.is_file():
            raise refusal(
                path, "", "is not an ordinary file. Copy its content into an ordinary file."
            )
        with path.open("rb") as file:
            return file.read(8)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise refusal(path, "", f"cannot be read ({reason}). Check the path.") from error


def read_lines(path: File, encoding: str | None = None) -> Iterator[tuple[str, str]]:
    """Read a text file and yield ("line n", line) for each line, without a byte order mark.

    Parameters
    ----------
    encoding : str, optional
        As `encoding_of` returned it; detected if not given.

    Raises
    ------
    InvalidInputError
        A null byte, an endless line or a byte that is no text, with its number.
    """
    check_file(path)
    encoding = encoding or encoding_of(path)
    with path.open("rb") as file:
        if encoding == UTF_16:
            yield from _split_utf16_lines(path, file)
        else:
            yield from _split_lines(
                path, file, decode_cp1252 if encoding == CP1252 else bytes.decode
            )


def read_whole(path: File, encoding: str) -> str:
    """Read a file of at most 200 MB and return its text, without a byte order mark.

    Raises
    ------
    InvalidInputError
        It has more than 200 MB, a null byte, or bytes that are not of the encoding.
    """
    with path.open("rb") as file:
        content = file.read(_MAX_WHOLE_BYTES + 1)
    if len(content) > _MAX_WHOLE_BYTES:
        raise refusal(
            path,
            "",
            f"is one JSON document of more than {_MAX_WHOLE_BYTES // 2**20} MB. Write one object "
            "per line (JSONL) instead.",
        )
    try:
        text = decode_cp1252(content) if encoding == CP1252 else content.decode(encoding)
    except UnicodeDecodeError as error:
        raise refusal(
            path, f"byte {error.start + 1}", "is not UTF-8. Save the file as UTF-8."
        ) from error
    if "\0" in text:
        raise _null_byte_error(path, "the document")
    return text.removeprefix("\ufeff")


def _split_lines(
    path: File, file: BinaryIO, decode: Callable[[bytes], str]
) -> Iterator[tuple[str, str]]:
    """Yield ("line n", line) of an open file whose line feed is a single byte."""
    number = 0
    while line := file.readline(_MAX_LINE_BYTES + 1):
        number += 1
        place = f"line {number}"
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > _MAX_LINE_BYTES:
            raise refusal(
                path, place, f"has more than {_MAX_LINE_BYTES:,} bytes. Write one text per line."
            )
        if b"\0" in line:
            raise _null_byte_error(path, place)
        if number == 1 and b"\r" in line[:-1] and not line.endswith(b"\n"):
            raise _only_returns_error(path)
        try:
            yield place, decode(line)
        except UnicodeDecodeError as error:
            raise refusal(
                path,
                place,
                f"is not UTF-8 (byte {error.start + 1}), unlike the rest of the file. Save the "
                "file as UTF-8.",
            ) from error


def _null_byte_error(path: File, place: str) -> InvalidInputError:
    """Build, without raising it, the error for a file that contains a null byte."""
    return refusal(path, place, "holds a null byte, so it is not plain text. Save it as UTF-8.")


def _only_returns_error(path: File) -> InvalidInputError:
    """Build, without raising it, the error for a file with CR-only line ends."""
    return refusal(
        path,
        "",
        "ends its lines with CR alone, as old Macs did. Save it with LF or CRLF instead.",
    )


def _split_utf16_lines(path: File, file: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield ("line n", line) of an open UTF-16 file."""
    lines = io.TextIOWrapper(file, encoding=UTF_16, newline="\n")
    number = 0
    try:
        while line := lines.readline(_MAX_LINE_BYTES + 1):
            number += 1
            place = f"line {number}"
            if len(line) > _MAX_LINE_BYTES:
                raise refusal(
                    path,
                    place,
                    f"has more than {_MAX_LINE_BYTES:,} characters. Write one text per line.",
                )
            if "\0" in line:
                raise _null_byte_error(path, place)
            if number == 1 and "\r" in line[:-1] and not line.endswith("\n"):
                raise _only_returns_error(path)
            yield place, line
    except UnicodeError as error:
        raise refusal(
            path,
            f"after line {number}",
            "is not UTF-16, although the file declares it. Save the file as UTF-8.",
        ) from error
