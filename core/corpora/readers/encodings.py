"""Detect a text file's encoding from all of its bytes, a chunk at a time.

UTF-8 and UTF-16 announce themselves or prove themselves. What is neither is read as Windows-1252
(cp1252), which holds Latin-1: the one encoding that tables of western languages still come in. A
guess that would spoil most of a file is not made: damaged UTF-8 and binary files are refused.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.errors import InvalidInputError

UTF_8 = "utf-8"
UTF_16 = "utf-16"
CP1252 = "cp1252"

_CHUNK_BYTES = 2**20
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes(i for i in range(32) if i not in b"\t\n\v\f\r\x1b") + b"\x7f"
_MOST_CONTROLS = 0.05
"""Share of control characters above which bytes are not text; random bytes have a tenth."""


def _cp1252_signs() -> dict[int, str]:
    """Return a dict from each byte in 0x80–0x9F to the character that cp1252 assigns to it."""
    found = {i: bytes([i]).decode("cp1252", "ignore") for i in range(0x80, 0xA0)}
    return {i: sign for i, sign in found.items() if sign}


_SIGNS = _cp1252_signs()


def decode_cp1252(line: bytes) -> str:
    r"""Decode cp1252 bytes; its five undefined bytes are decoded as Latin-1.

    Examples
    --------
    >>> decode_cp1252(b"\x93caf\xe9\x94")
    '“café”'
    """
    return line.decode("latin-1").translate(_SIGNS)


def encoding_note(file: File, encoding: str) -> str:
    """Return a note that a file was decoded as cp1252, or "" for any other encoding."""
    if encoding != CP1252:
        return ""
    return f"{file} is not UTF-8 and was decoded as cp1252. Save it as UTF-8 if letters look wrong."


def encoding_of(file: File) -> str:
    """Read a whole file and detect its encoding: UTF_8, UTF_16 or CP1252.

    A file in which more characters are UTF-8 than are not is UTF_8 with a damaged place, which
    whoever reads it has to refuse.

    Raises
    ------
    InvalidInputError
        The file is binary: neither Unicode nor without null bytes and control characters.
    """
    with file.open("rb") as raw:
        head = raw.read(4)
        if head.startswith(_UTF_16_MARKS):
            return UTF_16
        if head.startswith(codecs.BOM_UTF8) or _is_utf8(raw):
            return UTF_8
        return _encoding_by_counts(file, raw)


def _chunks(raw: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a file in chunks, from its start."""
    raw.seek(0)
    return iter(partial(raw.read, _CHUNK_BYTES), b"")


def _is_utf8(raw: BinaryIO) -> bool:
    """Read an open file and return whether all bytes are UTF-8, encoded surrogates included.

    Whoever reads the file refuses them.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    try:
        for chunk in _chunks(raw):
            # ASCII needs no decoder, unless the chunk before ended within a character.
            if decoder.getstate()[0] or not chunk.isascii():
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _encoding_by_counts(file: File, raw: BinaryIO) -> str:
    """Choose UTF_8 or CP1252 by counting invalid characters; refuse a binary file."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    n_bytes = n_controls = n_good = n_bad = 0
    for chunk in _chunks(raw):
        n_bytes += len(chunk)
        n_controls += len(chunk) - len(chunk.translate(None, _CONTROLS))
        is_null = b"\0" in chunk
        if is_null or (n_controls > 1 and n_controls > _MOST_CONTROLS * n_bytes):
            raise InvalidInputError(
                f"{file}: is binary or has an unknown encoding; it is not plain text. Save it as "
                "UTF-8."
            )
        text = decoder.decode(chunk)
        bad = text.count("\ufffd")
        n_bad += bad
        n_good += len(text) - len(text.encode("ascii", "ignore")) - bad
    return UTF_8 if n_good > n_bad else CP1252
