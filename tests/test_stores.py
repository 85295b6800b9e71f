"""Tables that other tools export are read for their texts, and every remedy that is given works."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope.core.corpora import Columns, load_corpus
from leakscope.core.corpora.files import read_texts
from leakscope.core.corpora.guess import inspect_file
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.nested import get_leaf, leaf_names, set_leaf
from leakscope.core.corpora.readers.tables import TABLE_TYPES, table_format
from leakscope.core.corpora.readers.vector_columns import vector_columns
from leakscope.core.corpora.uploads import inspect_upload, read_upload
from leakscope.core.errors import InvalidInputError
from leakscope.core.projection.points import upload_points

CASES = Path(__file__).parent / "cases"
STORES = {
    "chroma_get.json": ("documents", ("embeddings",)),
    "lance_f16.parquet": ("text", ("vector",)),
    "pgvector_copy.csv": ("content", ("embedding",)),
    "qdrant_scroll.jsonl": ("payload.text", ("vector",)),
    "struct.parquet": ("payload.text", ("vector",)),
}
FIRST = "The patient was given insulin on Monday."
TEXTS = ["The garden lies by the river.", "The harbour master counted ships."]
VECTOR = [0.25, -1e-05, 3.0, 4.0, 5.5, 6.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize("name", STORES)
def test_an_export_of_a_store_is_read_from_disk_and_in_an_upload(name: str) -> None:
    path = CASES / "stores" / name
    text, vectors = STORES[name]
    upload = MemoryFile(name, path.read_bytes())
    for facts in (inspect_file(path), inspect_upload(upload)):
        assert facts.columns.text == text and facts.vectors == vectors == vector_columns(path)
    rows, is_cut, n_empty = read_upload(upload, text=text)
    texts = [row.text for row in rows]
    assert texts == read_texts(path) == [d.text for d in load_corpus(path).documents]
    assert len(texts) == 32 and texts[0] == FIRST and not is_cut and not n_empty
    assert read_texts(path, columns=Columns(text=text)) == texts
    others = tuple(n for n in facts.names if n not in (text, *vectors))
    assert set(upload_points(upload, 9, text=text, others=others).columns) == {*others, "words"}


def test_the_separator_line_of_excel_is_no_header() -> None:
    path = CASES / "texts" / "sep_line.csv"
    facts = inspect_file(path)
    assert facts.names == ("id", "author", "text") and facts.columns.text == "text"
    assert facts.notes[-1].endswith("not doubled; they are treated as part of the text")
    texts = read_texts(path, columns=Columns(label="author"))
    assert len(texts) == 60 and texts[0].endswith(
        'of Lincoln: "In his company, I was never '
        "reminded of my humble origin, or of my "
        'unpopular color".'
    )
    assert texts[11].startswith('"The issues are') and texts[11].endswith('one," Mr Dickie said.')


@pytest.mark.parametrize(
    ("head", "mark"), [("sep=,", ","), ('"sep=|"', "|"), ("SEP=\t", "\t"), ("\ufeffsep=;", ";")]
)
def test_any_separator_may_be_told(head: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [["n", "body"], ["1", TEXTS[0]], ["2", TEXTS[1]]]
    path.write_text("\r\n".join([head, *map(mark.join, rows), ""]), newline="")
    assert inspect_file(path).names == ("n", "body") and read_texts(path) == TEXTS


QUOTES = {
    '1;"He said "no", and left."': 'He said "no", and left.',
    '1;""Yes," she said."': '"Yes," she said.',
    '1;"two\nlines "in" one"': 'two\nlines "in" one',
    '1;"Ada ""wrote"" and "sang"."': 'Ada "wrote" and "sang".',
}


@pytest.mark.parametrize("row", QUOTES)
def test_a_plain_double_quote_in_a_quoted_text_is_read(row: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"n;text\n{row}\n2;{TEXTS[0]}\n")
    assert read_texts(path) == [QUOTES[row], TEXTS[0]]
    (_, note) = inspect_file(path).notes
    assert "line 2" in note or "line 3" in note


@pytest.mark.parametrize("row", ['1;"He said "no"; then left."', '1;"open', '1;"a"b', '1;"a" ;b'])
def test_a_row_whose_cells_are_not_certain_is_refused(row: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"n;text\n{row}\n2;{TEXTS[0]}\n")
    with pytest.raises(InvalidInputError, match=r"is not a row of CSV.*a double quote within"):
        read_texts(path)
    path.write_text('n;text\n1;"He said ""no""; then left."\n')  # the remedy
    assert read_texts(path) == ['He said "no"; then left.']


ROWS = [{"id": i, "payload": {"text": text, "tags": ["a"]}} for i, text in enumerate(TEXTS)]
COLUMNS = {"ids": ["a", "b"], "documents": TEXTS, "included": ["documents"], "uris": None}
NESTED = {"result": {"points": ROWS, "next_page_offset": None}, "status": "ok", "time": 0.1}
FRAME = pd.DataFrame({"n": [1, 2], "text": TEXTS})
DOCUMENTS = {
    "rows": json.dumps(ROWS),
    "rows over lines": json.dumps(ROWS, indent=1),
    "columns": json.dumps(COLUMNS),
    "columns over lines": json.dumps(COLUMNS, indent=2),
    "answer of a store": json.dumps(NESTED),
    "answer to two queries": json.dumps({"ids": [["a"], ["b"]], "documents": [[t] for t in TEXTS]}),
    "hits": json.dumps(
        {
            "took": 1,
            "hits": {
                "total": {"value": 2},
                "hits": [{"_id": "1", "_source": {"body": t}} for t in TEXTS],
            },
        }
    ),
    "pandas": FRAME.to_json(),
    "pandas split": FRAME.to_json(orient="split"),
    "pandas index": FRAME.to_json(orient="index"),
    "pandas records": FRAME.to_json(orient="records"),
    "pandas lines": FRAME.to_json(orient="records", lines=True),
    "one record": json.dumps({"text": TEXTS[0], "tags": ["a", "b"], "sub": [{"n": 1}]}),
    "one nested record": json.dumps({"payload": {"text": TEXTS[0]}, "vector": VECTOR}),
    "later field": '{"id": 1, "note": null}\n' + json.dumps({"id": 2, "body": TEXTS[0]}),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("case", DOCUMENTS)
def test_json_of_any_layout_is_read(case: str, encoding: str) -> None:
    file = MemoryFile("t.json", DOCUMENTS[case].encode(encoding))
    rows, _, _ = read_upload(file)
    n = 1 if case in ("one record", "one nested record", "later field") else 2
    assert [row.text for row in rows] == TEXTS[:n]


def test_a_long_document_is_read_at_once_or_sent_to_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"documents": ["word " * 1000 + str(i) for i in range(2000)]}))
    assert path.stat().st_size > 8 * 10**6 and len(read_texts(path)) == 2000
    monkeypatch.setattr("leakscope.core.corpora.readers.raw_files._MAX_WHOLE_BYTES", 2**20)
    with pytest.raises(InvalidInputError, match=r"Write one object per line \(JSONL\)"):
        read_texts(path)
    lines = path.with_suffix(".jsonl")
    lines.write_text("\n".join(json.dumps({"document": f"word {i}"}) for i in range(2000)))
    assert len(read_texts(lines)) == 2000


def test_lists_without_number_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakscope.core.corpora.readers.json_table._MOST_PARTS", 1000)
    file = MemoryFile("t.json", b"[" + b"[]," * 2000 + b"[]]")
    with pytest.raises(InvalidInputError, match=r"more than 1,000 lists\. Write one object per"):
        inspect_upload(file)


def test_fields_of_objects_are_columns() -> None:
    record: dict[str, Any] = {"a.b": 1, "a": {"b": 2, "c": {"d": "x"}}, "e": {}}
    assert list(leaf_names(record)) == ["a.b", "a.b", "a.c.d", "e"]
    assert get_leaf(record, "a.b") == 1 and get_leaf(record, "a.c.d") == "x"
    assert get_leaf(record, "a.c.x") is None and get_leaf({"a": 3}, "a.b") is None
    set_leaf(record, "a.c.d", "y")
    assert record["a"]["c"]["d"] == "y"
    with pytest.raises(KeyError):
        set_leaf(record, "a.x", 1)


def written(table: dict[str, Any] | pa.Table, **options: Any) -> MemoryFile:
    out = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), out, **options)
    return MemoryFile("t.parquet", out.getvalue())


def test_structs_and_dictionaries_of_arrow_are_read() -> None:
    words = pa.array(TEXTS).dictionary_encode()
    struct = pa.StructArray.from_arrays([words, pa.array([1, 2])], ["body", "page"])
    deep = pa.StructArray.from_arrays([struct], ["inner"])
    for column, name in ((words, "x"), (struct, "x.body"), (deep, "x.inner.body")):
        file = written({"x": column, "v": pa.array([VECTOR] * 2, pa.list_(pa.float16()))})
        facts = inspect_upload(file)
        assert facts.columns.text == name and facts.vectors == ("v",)
        assert [row.text for row in read_upload(file)[0]] == TEXTS
    large = pa.array(TEXTS, pa.large_string()).dictionary_encode()
    assert [row.text for row in read_upload(written({"x": large}))[0]] == TEXTS


def test_an_empty_struct_is_an_empty_cell() -> None:
    file = written({"p": pa.array([{"text": TEXTS[0]}, None, {"text": None}])})
    rows, _, n_empty = read_upload(file)
    assert [row.text for row in rows] == [TEXTS[0]] and n_empty == 2


def test_a_text_repeated_in_a_struct_fills_no_memory() -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * 900_000])
    struct = pa.StructArray.from_arrays([repeated], ["text"])
    file = written({"p": struct}, compression="zstd", store_schema=False)
    assert len(file.content) < 10**6
    with pytest.raises(InvalidInputError, match="characters together"):
        read_upload(file)
    assert pa.total_allocated_bytes() < 200 * 10**6


def test_lists_of_words_colour_a_map_and_are_no_vectors() -> None:
    records = [{"text": t, "tags": ["a", "b"], "more": [{"deep": 1}]} for t in TEXTS]
    file = MemoryFile("t.jsonl", "\n".join(map(json.dumps, records)).encode())
    points = upload_points(file, 9, text="text", others=("tags", "more"))
    assert points.columns["tags"] == ("a, b", "a, b") and points.columns["more"] == (None, None)


# Remedies: each is given by a message, and followed ------------------------------------------


def refusal_of(name: str, content: bytes, column: str | None = None) -> str:
    with pytest.raises(InvalidInputError) as refused:
        file = MemoryFile(name, content)
        inspect_upload(file)
        read_upload(file, text=column)
    return str(refused.value)


def json_lines(*records: Any) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def wide(n: int) -> bytes:
    return ",".join(f"c{i}" for i in range(n)).encode() + b"\n" + b"a b," * (n - 1) + b"a b\n"


SECOND = json_lines({"text": TEXTS[0]})


class Remedy(NamedTuple):
    """A file that is refused, what the message tells to do, and the file when it is done."""

    name: str
    content: bytes
    says: str
    mended: bytes
    column: str | None = None
    chosen: str | None = None
    then: str | None = None


REMEDIES = {
    "field of an object": Remedy(
        "t.jsonl",
        json_lines(*ROWS),
        "Its field 'payload.text' is one",
        json_lines(*ROWS),
        column="payload",
        chosen="payload.text",
    ),
    "misspelt": Remedy(
        "t.jsonl",
        json_lines(*ROWS),
        "Did you mean 'payload.text'",
        json_lines(*ROWS),
        column="payload.txt",
        chosen="payload.text",
    ),
    "no texts": Remedy(
        "t.jsonl",
        json_lines({"a": 1, "b": 2}),
        "Add a column of texts.",
        json_lines({"a": 1, "b": 2, "c": TEXTS[0]}),
    ),
    "numbers alone": Remedy(
        "t.csv",
        b"a,b\n1,2\n",
        "or name the column to use as texts",
        b"a,b\n1,2\n",
        chosen="b",
    ),
    "not text": Remedy(
        "t.jsonl",
        json_lines({"text": 1, "b": TEXTS[0]}),
        "name another column",
        json_lines({"text": 1, "b": TEXTS[0]}),
        column="text",
        chosen="b",
    ),
    "not text, written": Remedy("t.jsonl", json_lines({"text": 1}), "Write texts in it", SECOND),
    "no header": Remedy(
        "t.csv",
        f'1,{TEXTS[0]},"{VECTOR}"\n'.encode(),
        "Export the table with a header",
        f'id,body,emb\n1,{TEXTS[0]},"{VECTOR}"\n'.encode(),
    ),
    "list of texts": Remedy(
        "t.json",
        json.dumps(TEXTS).encode(),
        'Write a list of objects: [{"text": "…"}]',
        json.dumps([{"text": t} for t in TEXTS]).encode(),
    ),
    "list a line": Remedy("t.jsonl", b'["a b"]\n["c d"]\n', "or write one object per line", SECOND),
    "broken document": Remedy(
        "t.json", b'{\n "documents": ["a b",]\n}', "write one object per line", SECOND
    ),
    "uneven": Remedy(
        "t.json",
        b'{"ids": ["a", "b"], "documents": ["a b"]}',
        "Make them equally long",
        b'{"ids": ["a"], "documents": ["a b"]}',
    ),
    "twice in an object": Remedy(
        "t.jsonl",
        b'{"text": "a b", "text": "c d"}',
        "Rename one or take it out",
        b'{"text": "a b", "text2": "c d"}',
    ),
    "twice": Remedy(
        "t.csv",
        b"text,text\na b,c d\n",
        "Rename one",
        b"text,other\na b,c d\n",
        column="text",
        chosen="text",
    ),
    "cells": Remedy(
        "t.csv", b"text,n\na, b,1\n", "Put texts that contain commas", b'text,n\n"a, b",1\n'
    ),
    "open quote": Remedy("t.csv", b'text\n"a b\n', "Close every double quote", b'text\n"a b"\n'),
    "too many columns": Remedy("t.csv", wide(300), "Remove columns that are not needed", wide(200)),
    "Parquet under another name": Remedy(
        "t.csv",
        written({"text": TEXTS}).content,
        "give it the ending .parquet",
        written({"text": TEXTS}).content,
        then="t.parquet",
    ),
    "not Parquet": Remedy(
        "t.parquet", b"text\na b\n", "give it the right file ending", b"text\na b\n", then="t.csv"
    ),
    "null byte": Remedy("t.csv", b"text\na\0b\n", "Save it as UTF-8", b"text\na b\n"),
    "surrogate": Remedy(
        "t.jsonl", b'{"text": "a \\ud800"}', "Write it again as UTF-8", '{"text": "a é"}'.encode()
    ),
    "returns": Remedy("t.csv", b"text\ra b\r", "Save it with LF", b"text\na b\n"),
    "no texts at all": Remedy("t.csv", b"text\n", "Give at least one", b"text\na\n"),
    "too long": Remedy("t.txt", b"a " * 500_001, "Write one text per row", b"a \na \n"),
}


@pytest.mark.parametrize("case", REMEDIES)
def test_a_remedy_works_when_it_is_followed(case: str) -> None:
    given = REMEDIES[case]
    assert given.says in refusal_of(given.name, given.content, given.column)
    mended = MemoryFile(given.then or given.name, given.mended)
    rows, _, _ = read_upload(mended, text=given.chosen)
    assert rows and all(isinstance(row.text, str) for row in rows)


def test_file_choosers_take_every_kind_of_table() -> None:
    assert {"csv", "tsv", "json", "jsonl", "parquet"} <= {*TABLE_TYPES}
    assert all(table_format(Path(f"t.{ending}")) for ending in TABLE_TYPES)
    pages = Path(__file__).parent.parent / "dashboard"
    choosers = [p for p in pages.rglob("*.py") if "with a column of texts" in p.read_text("utf-8")]
    assert len(choosers) >= 4
    assert all("TABLE_TYPES" in path.read_text("utf-8") for path in choosers)


@pytest.mark.parametrize("name", [*STORES, "sep_line.csv"])
def test_commands_read_an_export(core: Any, trained: Path, tiny_bert: Path, name: str) -> None:
    path = CASES / ("texts" if name.startswith("sep") else "stores") / name
    given = shlex.split(
        f"evaluate --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        f"--texts {path} --json"
    )
    found = core(*given)
    assert found.status == 0, found.err
    column = STORES.get(name, ("text",))[0]
    again = core(*given, "--text-column", column)
    assert again.status == 0, again.err
    texts = "n", "token_set_f1"
    assert [found.json()[key] for key in texts] == [again.json()[key] for key in texts]


@pytest.mark.parametrize("name", [*STORES, "sep_line.csv"])
def test_an_export_is_privatised_and_keeps_all_else(
    core: Any, tiny_bert: Path, tmp_path: Path, name: str
) -> None:
    path = CASES / ("texts" if name.startswith("sep") else "stores") / name
    column, vectors = STORES.get(name, ("text", ()))
    given = ("privatize", "--encoder", f"mlm:{tiny_bert}", "--in", path, "--json")
    out = tmp_path / name
    told = core(*given, "--eta", "60", "--out", out).json()
    before, after = inspect_file(path), inspect_file(out)
    assert before.names == after.names and after.columns.text == column
    assert told["passed_through"]["columns"] == [n for n in before.names if n != column]
    assert told["passed_through"]["vectors"] == list(vectors)
    for other in before.names:
        cells = [_cells(file, other) for file in (path, out)]
        assert (cells[0] == cells[1]) == (other != column)
    if name.startswith("sep"):
        assert out.read_bytes().startswith(b"sep=;")
    to = tmp_path / "vectors.parquet"
    way = ("--mechanism", "sequence_representation", "--eta", "60", "--out")
    if "vector" in vectors:
        refused = core(*given, *way, to)
        assert "Rename or remove it" in refused.refusal()
        return
    assert core(*given, *way, to).status == 0
    found = pd.read_parquet(to)
    assert np.stack(found["vector"]).shape == (len(_cells(path, column)), 32)
    assert column not in found and len(found.columns) == len(before.names)
    assert list(found[before.names[0]]) == [str(cell) for cell in _cells(path, before.names[0])]


def _cells(path: Path, column: str) -> list[Any]:
    from leakscope.core.corpora.readers.tables import open_table

    table = open_table(path)
    assert table is not None
    return [cells[0] for _, cells in table.rows([column])]
