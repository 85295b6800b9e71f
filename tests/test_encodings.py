from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from leakscope.core.corpora import Columns, load_corpus
from leakscope.core.corpora.files import read_texts
from leakscope.core.corpora.guess import inspect_file
from leakscope.core.corpora.readers import encodings
from leakscope.core.corpora.readers.encodings import (
    CP1252,
    UTF_8,
    UTF_16,
    decode_cp1252,
    encoding_of,
)
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import read_upload
from leakscope.core.errors import InvalidInputError

TEXT = "“Grüße” – said the café’s owner…"


def held(content: bytes, name: str = "t.txt") -> MemoryFile:
    return MemoryFile(name, content)


def test_cp1252_is_read_as_windows_reads_it() -> None:
    every = bytes(range(256))
    undefined = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
    for byte, sign in zip(every, decode_cp1252(every), strict=True):
        expected = "latin-1" if byte in undefined else "cp1252"
        assert sign == bytes([byte]).decode(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"plain", UTF_8),
        (TEXT.encode(), UTF_8),
        (codecs.BOM_UTF8 + TEXT.encode(), UTF_8),
        (TEXT.encode("utf-16"), UTF_16),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), UTF_16),
        (TEXT.encode("cp1252"), CP1252),
        ("café".encode("latin-1"), CP1252),
        ("CAFÉ» ÉTÉ» Noël".encode("cp1252"), CP1252),
        ("é è à ù".encode() + b" \xe9", UTF_8),
    ],
    ids=[
        "ascii",
        "utf-8",
        "mark",
        "utf-16",
        "utf-16-be",
        "cp1252",
        "latin-1",
        "cp1252 with pairs that are UTF-8 too",
        "damaged utf-8",
    ],
)
def test_the_encoding_of_a_file_is_found(content: bytes, expected: str) -> None:
    assert encoding_of(held(content)) == expected


def test_a_character_cut_between_two_chunks_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 3, 5):
        monkeypatch.setattr(encodings, "_CHUNK_BYTES", size)
        assert encoding_of(held("aé日本🙂b".encode())) == UTF_8
        assert encoding_of(held("aé日本🙂b".encode() + b"\xe9 ")) == UTF_8, "one damaged place"
        assert encoding_of(held("aébc\xe0d".encode("cp1252"))) == CP1252


def test_a_character_at_the_boundary_of_a_real_chunk(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    for n_before in (2**20 - 1, 2**20 - 2):
        path.write_bytes(b"a" * (n_before - 1) + b"\n" + "日本".encode())
        assert encoding_of(path) == UTF_8
    path.write_bytes(b"a" * 2**20 + b"\ncaf\xe9\n")
    assert encoding_of(path) == CP1252, "the only letter that tells stands in the second chunk"


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_every_kind_is_read_in_every_encoding(ending: str, encoding: str, tmp_path: Path) -> None:
    content = {
        "csv": f'id;said\r\n1;"{TEXT}"\r\n2;Ünder\r\n',
        "tsv": f"id\tsaid\n1\t{TEXT}\n2\tÜnder\n",
        "txt": f"{TEXT}\r\nÜnder\n",
        "jsonl": "\n".join(
            json.dumps({"id": i, "said": t}, ensure_ascii=False)
            for i, t in ((1, TEXT), (2, "Ünder"))
        ),
    }[ending]
    path = tmp_path / f"t.{ending}"
    path.write_bytes(content.encode(encoding))
    assert read_texts(path) == [TEXT, "Ünder"]
    rows, _, _ = read_upload(MemoryFile(path.name, path.read_bytes()))
    assert [row.text for row in rows] == [TEXT, "Ünder"]
    notes = " ".join(inspect_file(path).notes)
    assert ("not UTF-8 and was decoded as cp1252" in notes) == (encoding == "cp1252")
    assert load_corpus(path).notes == inspect_file(path).notes


def test_a_note_changes_nothing_of_a_corpus(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "t.txt", tmp_path / "two" / "t.txt"
    for path, encoding in ((one, "cp1252"), (two, "utf-8")):
        path.parent.mkdir()
        path.write_bytes(f"{TEXT}\n".encode(encoding))
    first, second = load_corpus(one), load_corpus(two)
    assert first.notes and not second.notes
    assert first == second and first.content_hash == second.content_hash


def test_undefined_bytes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"one \x93quoted\x94 and one \x81 left\n")
    assert read_texts(path) == ["one “quoted” and one \x81 left"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"text\n\xe9\0\n", "is binary"),
        (bytes(range(128, 256)) + bytes(range(1, 32)) * 3, "is binary"),
        (b"text\na\0b\n", "line 2: holds a null byte"),
        ("text\na".encode("utf-16-le"), "line 1: holds a null byte"),
        ("text\na\0b\n".encode("utf-16"), "line 2: holds a null byte"),
        (b"\xff\xfe\x00\xd8a", "is not UTF-16"),
        ("text\nnaïve\né".encode() + b"\xe9\n", "line 3: is not UTF-8"),
        (b"id,text\n1,one\n\xed\xa0\x80,two\n", "line 3: is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=told) as caught:
        load_corpus(path)
    assert str(caught.value).startswith(f"{path}")


def test_a_large_file_is_looked_at_in_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.write(b"id,said\n")
        for _ in range(40):
            file.write(b"1,the clerk filed the form again\n" * 2**15)
        file.write(b"2,caf\xe9\n")
    tracemalloc.start()
    try:
        facts = inspect_file(path, Columns())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert facts.encoding == CP1252 and facts.columns.text == "said"
    assert path.stat().st_size > 40e6 and peak < 12e6
