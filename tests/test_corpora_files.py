from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope.core.corpora import Columns, Document, load_corpus
from leakscope.core.corpora.files import load_file, read_texts
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import inspect_upload, read_upload
from leakscope.core.errors import InvalidInputError

TEXTS = ["Ada wrote.", "Grüße, „Welt“!", "日本 – ok"]


def parquet(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(
    params=["txt", "none", "csv", "semicolons", "tsv", "jsonl", "parquet", "dictionary"]
)
def file_of_texts(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """TEXTS in every format."""
    if request.param == "parquet":
        return parquet(tmp_path / "t.parquet", text=TEXTS, n=[1, 2, 3])
    if request.param == "dictionary":
        return parquet(tmp_path / "t.pq", text=pa.array(TEXTS).dictionary_encode())
    content = {
        "txt": "Ada wrote.\n\n  Grüße, „Welt“!\r\n日本 – ok",
        "none": "\ufeffAda wrote.\nGrüße, „Welt“!\n日本 – ok\n",
        "csv": '\ufeffn,text\r\n1,Ada wrote.\r\n\r\n2,"Grüße, „Welt“!"\r\n3,日本 – ok\r\n',
        "semicolons": "n;text\n1;Ada wrote.\n2;Grüße, „Welt“!\n3;日本 – ok\n",
        "tsv": "n\ttext\n1\tAda wrote.\n2\tGrüße, „Welt“!\n3\t日本 – ok\n",
        "jsonl": "\n".join(json.dumps({"text": t, "n": 1}) for t in TEXTS),
    }[request.param]
    ending = {"none": "", "semicolons": ".csv"}.get(request.param, f".{request.param}")
    return written(tmp_path / f"t{ending}", content)


def test_every_format_gives_the_same_texts(file_of_texts: Path) -> None:
    assert read_texts(file_of_texts) == TEXTS
    assert read_texts(str(file_of_texts), limit=2) == TEXTS[:2]


def test_every_format_gives_the_same_corpus(file_of_texts: Path) -> None:
    corpus = load_corpus(file_of_texts)
    assert corpus.documents == tuple(Document(f"{i}", t) for i, t in enumerate(TEXTS, 1))
    assert corpus.name == "t"


LABELLED = [("a b", "x", "ada"), ("c d", None, "bob"), ("e f", "7", None)]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_labels_and_authors_are_read_where_they_are(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        written(path, "text,label,author\na b,x,ada\nc d,,bob\ne f,7,\n")
    elif ending == "jsonl":
        rows = [{"text": t, "label": c, "author": a} for t, c, a in LABELLED]
        rows[2] = {"text": "e f", "label": 7}  # type: ignore[dict-item]
        written(path, "\n".join(map(json.dumps, rows)))
    else:
        texts, labels, authors = map(list, zip(*LABELLED, strict=True))
        parquet(path, text=texts, label=labels, author=authors)
    found = [(d.text, d.label, d.author) for d in load_file(path).documents]
    assert found == LABELLED


def test_numbers_are_labels_and_nan_is_none(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", text=["a", "b", "c"], label=[1.0, float("nan"), None])
    assert [d.label for d in load_file(path).documents] == ["1.0", None, None]


def test_named_columns_are_used(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "text,body,class,label,who\nx,the body,news,y,ada\n")
    columns = Columns(text="body", label="class", author="who")
    assert load_corpus(path, columns=columns).documents == (
        Document("1", "the body", "news", "ada"),
    )
    assert read_texts(path, columns=columns) == ["the body"]


def test_rows_of_one_document_are_joined(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.csv", "text,doc,label\nOne.,a,x\nTwo.,b,y\nThree.,a,x\nFour.,b,y\n"
    )
    corpus = load_file(path, columns=Columns(document="doc"))
    assert corpus.documents == (
        Document("a", "One.\n\nThree.", "x"),
        Document("b", "Two.\n\nFour.", "y"),
    )


def test_a_document_has_one_label(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "text,doc,label\nOne.,a,x\nTwo.,a,y\n")
    with pytest.raises(InvalidInputError, match=r"line 3: document 'a' has two labels"):
        load_file(path, columns=Columns(document="doc"))


def test_a_row_without_its_document_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "text,doc\nOne.,a\nTwo.,\n")
    with pytest.raises(InvalidInputError, match="line 3: names no document"):
        load_file(path, columns=Columns(document="doc"))


def test_quoted_cells_hold_commas_quotes_and_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", 'text,n\n"He said ""no"",\nthen left.",1\nEnd.,2\n')
    assert read_texts(path) == ['He said "no",\nthen left.', "End."]


def test_blank_lines_do_not_change_the_hash(tmp_path: Path) -> None:
    one = load_file(written(tmp_path / "a.txt", "first\nsecond\n"))
    two = load_file(written(tmp_path / "b.txt", "\n first \n\n\nsecond"))
    assert one.content_hash == two.content_hash


def test_a_text_longer_than_the_csv_modules_own_limit_is_read(tmp_path: Path) -> None:
    text = "word " * 50_000 + "end."
    assert read_texts(written(tmp_path / "t.csv", f"text\n{text}\n")) == [text]


def test_only_the_rows_up_to_the_limit_are_read(tmp_path: Path) -> None:
    assert read_texts(written(tmp_path / "t.txt", b"good\n\xff\n"), limit=1) == ["good"]
    with pytest.raises(InvalidInputError, match="limit must be at least 1, got 0"):
        read_texts(tmp_path / "t.txt", limit=0)


def test_rows_are_numbered_over_batches(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(5000)]
    path = parquet(tmp_path / "t.parquet", text=texts)
    assert read_texts(path) == texts
    path = parquet(tmp_path / "t.parquet", text=[*texts, None])
    with pytest.raises(InvalidInputError, match="row 5001: has no 'text'"):
        read_texts(path)


def test_the_language_goes_to_the_splitter(tmp_path: Path) -> None:
    path = written(tmp_path / "t.txt", "Il dott. Rossi è arrivato.\n")
    assert len(load_file(path, language="it").sentences(1, 9)) == 1
    assert len(load_file(path).sentences(1, 9)) == 2


# Files that cannot be used ------------------------------------------------------------------

PICKLE = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n."

BAD: dict[str, tuple[str, bytes, str]] = {
    "empty text": ("t.txt", b"", "is empty. Give a file"),
    "empty csv": ("t.csv", b"", "is empty. Give a file"),
    "empty parquet": ("t.parquet", b"", "is empty. Give a file"),
    "blank text": ("t.txt", b"\n \n\t\n", "holds no text"),
    "byte order mark only": ("t.txt", b"\xef\xbb\xbf", "holds no text"),
    "blank csv": ("t.csv", b"\n\n", "holds no text"),
    "header only": ("t.csv", b"text,label\n", "holds no text"),
    "blank jsonl": ("t.jsonl", b"\n\n", "holds no text"),
    "utf-32": ("t.txt", "Ada".encode("utf-32"), "is text in UTF-32; save it as UTF-8"),
    "utf-16 without a mark": (
        "t.csv",
        "text\nAda".encode("utf-16-be"),
        "line 1: holds a null byte",
    ),
    "utf-16 cut": ("t.txt", "Ada\nwrote".encode("utf-16")[:-1], "after line 1: is not UTF-16"),
    "damaged utf-8": (
        "t.txt",
        b"f\xc3\xafne\nna\xc3\xafve\ncaf\xe9",
        r"line 3: is not UTF-8 \(byte 4\)",
    ),
    "damaged with a mark": ("t.csv", b"\xef\xbb\xbftext\ncaf\xe9\n", "line 2: is not UTF-8"),
    "binary": ("t.txt", bytes(range(1, 256)) * 9, "is binary or has an unknown encoding"),
    "binary jsonl": ("t.jsonl", b'{"text": "\xe9\0"}', "is binary or has an unknown encoding"),
    "picture": ("t.txt", b"\x89PNG\r\n", "is a picture"),
    "null byte": ("t.txt", b"one\ntwo\0three\n", "line 2: holds a null byte"),
    "null byte csv": ("t.csv", b"text\none\ntwo\0\n", "line 3: holds a null byte"),
    "null byte jsonl": ("t.jsonl", b'{"text": "a\\u0000b"}', "line 1: 'text' holds a null byte"),
    "surrogate jsonl": ("t.jsonl", b'{"text": "\\ud800"}', "line 1: 'text' holds a broken char"),
    "zip": ("t.csv", b"PK\x03\x04rest", "is a ZIP archive or an Excel"),
    "gzip": ("t.txt", b"\x1f\x8b\x08rest", "is compressed by gzip; uncompress"),
    "pdf": ("t.txt", b"%PDF-1.7", "is a PDF"),
    "pickle": ("t.csv", PICKLE, "looks like a Python pickle, which is never opened"),
    "pickle parquet": ("t.parquet", PICKLE, "is not Parquet"),
    "csv named parquet": ("t.parquet", b"text\nAda\n", "is not Parquet"),
    "parquet named csv": ("t.csv", b"PAR1xxxx", "is a Parquet file; give it the ending"),
    "no texts": (
        "t.csv",
        b"body,n\n1,2\n",
        "none of its 2 columns holds texts.*or name the column",
    ),
    "no texts jsonl": ("t.jsonl", b'{"a": 1, "b": null}', "none of its 2 columns holds texts"),
    "cells too many": ("t.csv", b"text,n\na,1\nb,c,2\n", "line 3: has 3 cells, but the header"),
    "cells too few": ("t.csv", b"text,n\na\n", "line 2: has 1 cells.*commas"),
    "open quote": ("t.csv", b'text\nok\n"never closed\nmore\n', "is not a row of CSV.*Close every"),
    "text after quote": ("t.csv", b'text\n"a"b\n', "line 2: is not a row of CSV"),
    "empty cell": ("t.csv", b"text,n\na,1\n,2\n", "line 3: 'text' is empty. Fill it in"),
    "space cell": ("t.tsv", "text\tn\n\u00a0\u200b\t1\n".encode(), "line 2: 'text' is empty"),
    "not json": ("t.jsonl", b'{"text": "a"}\n{text}\n', "line 2: is not JSON"),
    "half json": ("t.jsonl", b'{"text": "a"}\n{"text": "b', "line 2: is not JSON"),
    "json list of texts": ("t.json", b'["a", "b"]', "record 1: is not a JSON object. Write a list"),
    "broken json list": ("t.json", b'[\n {"text": "a"},\n {"text" "b"}]', "line 3: is not JSON"),
    "uneven columns": ("t.json", b'{"a": ["x"], "b": [1, 2]}', "unequal length .a 1, b 2."),
    "nested json": ("t.jsonl", b"[" * 100_000, "line 1: is not JSON"),
    "endless number": ("t.jsonl", b'{"text": ' + b"1" * 9000 + b"}", "line 1: is not JSON"),
    "null in jsonl": ("t.jsonl", b'{"text": null}', "line 1: has no 'text'. Fill"),
    "missing in jsonl": ("t.jsonl", b'{"text": "a"}\n{"b": 1}', "line 2: has no 'text'"),
    "nan in jsonl": ("t.jsonl", b'{"text": NaN}', "line 1: has no 'text'"),
    "number in jsonl": ("t.jsonl", b'{"text": 3}', "line 1: 'text' is not text but int"),
    "list in jsonl": ("t.jsonl", b'{"n": 1, "text": ["a"]}', "line 1: 'text' is not text but list"),
    "endless line": ("t.txt", b"a" * 8_000_002, "line 1: has more than 8,000,000 bytes"),
    "long text": ("t.txt", b"ok\n" + b"a" * 1_000_001, "line 2: 'text' has 1,000,001 characters"),
    "numpy": ("t.txt", b"\x93NUMPY\x01", "is a NumPy array"),
}


LEFT_OUT_OF_UPLOADS = {"empty cell", "missing in jsonl"}
"""Rows without a text are counted there, and passed over."""


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_name_place_and_remedy(case: str, tmp_path: Path) -> None:
    name, content, message = BAD[case]
    path = written(tmp_path / name, content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_texts(path)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInputError):
        load_corpus(path)
    if case not in LEFT_OUT_OF_UPLOADS:
        with pytest.raises(InvalidInputError) as caught:
            inspect_upload(MemoryFile(name, content))
            read_upload(MemoryFile(name, content))
        assert str(caught.value).startswith(name)


@pytest.mark.slow
def test_an_unclosed_quote_does_not_read_on_for_ever(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", 'text\n"open\n' + "more text here\n" * 100_000)
    with pytest.raises(InvalidInputError, match="is not a row of CSV"):
        read_texts(path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"is a folder\. Name a file"):
        load_corpus(tmp_path)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"none\.csv: does not exist"):
        read_texts(tmp_path / "none.csv")


def test_a_path_that_cannot_be_one_is_refused() -> None:
    for path in ("x" * 5000, "a\0b"):
        with pytest.raises(InvalidInputError):
            read_texts(path)


def test_what_is_no_ordinary_file_is_refused() -> None:
    if not Path(os.devnull).is_char_device():
        pytest.skip("no device file here")
    with pytest.raises(InvalidInputError, match="is not an ordinary file"):
        read_texts(os.devnull)


def test_a_file_one_may_not_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.txt", "secret")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_texts(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b[:-1],
        lambda b: b[:4],
        lambda b: b[:4] + b"\0" * (len(b) // 2) + b[4 + len(b) // 2 :],
        lambda b: b[:-30] + b"\xff" * 20 + b[-10:],
    ],
    ids=["half", "last byte", "head", "zeroed pages", "footer"],
)
def test_a_damaged_parquet_file_is_refused(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    texts = [f"text {i} {i * 7919 % 1000}" for i in range(3000)]
    path = parquet(tmp_path / "t.parquet", text=texts)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInputError, match="is truncated, damaged or not Parquet"):
        read_upload(MemoryFile(path.name, path.read_bytes()))
    with pytest.raises(InvalidInputError, match="is truncated, damaged or not Parquet") as caught:
        read_texts(path)
    assert str(caught.value).startswith(f"{path}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", None], "row 2: has no 'text'. Fill"),
        (["a", ""], "row 2: 'text' is empty"),
        (["a", "b\0"], "row 2: 'text' holds a null byte"),
        ([1, 2], "row 1: 'text' is not text but int"),
        ([1.5, float("nan")], "row 1: 'text' is not text but float"),
        ([float("nan"), 1.5], "row 1: has no 'text'"),
        ([b"a", b"b"], "row 1: 'text' is not text but bytes"),
        ([["a"], ["b"]], "row 1: 'text' is not text but list"),
    ],
)
def test_a_bad_row_of_parquet_is_named(values: list[object], message: str, tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", text=values)
    with pytest.raises(InvalidInputError, match=message):
        read_texts(path)


WRONG = {
    "csv": ("t.csv", b"body,label\na,b\n", "'boddy'. Did you mean 'body'.*'body', 'label'"),
    "tsv": ("t.tsv", b"body\tlabel\na\tb\n", "no column 'boddy'.*'body', 'label'"),
    "jsonl": ("t.jsonl", b'{"body": "a"}', "no column 'boddy'.*'body'"),
    "no header": ("t.csv", b"Ada wrote. And wrote.\nMore\n", "no column 'boddy'.*'Ada wrote. And"),
    "long header": ("t.csv", b"x" * 9000 + b"\na\n", r"no column 'boddy'.*'x{39}…'"),
    "plain text": ("t.txt", b"Ada wrote.\n", "is plain text.*Leave the column out"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_column_names_those_there(case: str, tmp_path: Path) -> None:
    name, content, message = WRONG[case]
    path = written(tmp_path / name, content)
    with pytest.raises(InvalidInputError, match=message):
        read_texts(path, columns=Columns(text="boddy"))


def test_parquet_text_that_is_not_utf8_names_the_row(tmp_path: Path) -> None:
    latin = pa.array([b"ok", b"caf\xe9"]).cast(pa.binary()).view(pa.string())
    path = parquet(tmp_path / "t.parquet", text=latin)
    with pytest.raises(InvalidInputError, match="row 2: is not UTF-8"):
        read_texts(path)
