from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope.core.corpora import uploads
from leakscope.core.corpora.readers import json_table
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import inspect_upload, read_upload
from leakscope.core.errors import InvalidInputError
from leakscope.core.projection import ProjectionSpec, project
from leakscope.core.projection.points import upload_points
from leakscope.core.projection.selection import matching_rows, search_form, selection_rows
from leakscope.core.spreadsheets import table_csv

ROWS = [
    {"sentence": f"The clerk filed form {i}.", "class": "ab"[i % 2], "score": i} for i in range(12)
]


def parquet(table: dict[str, object], **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(table), out, **options)
    return out.getvalue()


def as_csv(rows: list[dict[str, object]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


FILES = {
    "table.csv": as_csv(ROWS),
    "semicolons.csv": as_csv(ROWS, ";"),
    "table.tsv": as_csv(ROWS, "\t"),
    "table.jsonl": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "table.parquet": parquet({name: [row[name] for row in ROWS] for name in ROWS[0]}),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_table_gives_texts_and_columns(name: str) -> None:
    file = MemoryFile(name, FILES[name])
    facts = inspect_upload(file)
    assert facts.names == ("sentence", "class", "score")
    assert facts.is_guessed and facts.columns.text == "sentence"
    points = upload_points(file, 100, text="sentence", others=("class", "score"))
    assert points.texts == tuple(row["sentence"] for row in ROWS) and points.is_private
    assert points.columns["class"] == tuple(row["class"] for row in ROWS)
    assert points.columns["score"] == tuple(str(row["score"]) for row in ROWS)
    assert points.description == "All 12 rows"


def test_one_text_a_line() -> None:
    file = MemoryFile("notes.txt", "\ufeffFirst line.\n\nSecond líne, with = signs.\n".encode())
    assert inspect_upload(file).names == ()
    points = upload_points(file, 100)
    assert points.texts == ("First line.", "Second líne, with = signs.")
    assert points.unit == "line" and points.columns["words"] == ("2", "5")


def test_a_sample_is_drawn_by_seed_and_told() -> None:
    file = MemoryFile("table.csv", FILES["table.csv"])
    one, two = (upload_points(file, 5, text="sentence", seed=s) for s in (0, 1))
    again = upload_points(file, 5, text="sentence")
    assert one.texts == again.texts != two.texts
    assert one.description == "5 of 12 rows, chosen at random (seed 0)"


@pytest.mark.slow
def test_a_parquet_file_that_unpacks_too_far_is_refused_unread() -> None:
    bomb = parquet({"text": ["x" * 20_000_000] * 60}, compression="zstd", use_dictionary=False)
    assert len(bomb) < 10**6
    with pytest.raises(InvalidInputError, match=r"unpacks to 1\.2 GB; at most 1 GB"):
        inspect_upload(MemoryFile("bomb.parquet", bomb))


def test_a_text_repeated_by_a_dictionary_fills_no_memory() -> None:
    import tracemalloc

    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * 900_000])
    content = parquet({"text": repeated}, compression="zstd", store_schema=False)
    assert len(content) < 10**6
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match="characters together"):
            read_upload(MemoryFile("bomb.parquet", content))
        assert tracemalloc.get_traced_memory()[1] < 50 * 10**6
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() < 200 * 10**6


def test_too_large_a_file_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 2**20)
    with pytest.raises(InvalidInputError, match=r"big\.csv: has 2\.0 MB; at most 1 MB"):
        inspect_upload(MemoryFile("big.csv", b"text\n" + b"a" * 2**21))


def test_rows_beyond_the_limit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_ROWS", 7)
    points = upload_points(MemoryFile("t.csv", FILES["table.csv"]), 7, text="sentence")
    assert len(points) == 7 and points.is_cut
    assert points.description == "All 7 rows (the first 7 rows of a longer file)"


def test_too_many_columns_are_refused() -> None:
    header = ",".join(f"c{i}" for i in range(300)).encode()
    with pytest.raises(InvalidInputError, match="300 columns"):
        inspect_upload(MemoryFile("wide.csv", header + b"\n"))


def test_nothing_of_an_upload_is_written(leakscope_home, monkeypatch: pytest.MonkeyPatch) -> None:
    file = MemoryFile("t.parquet", FILES["table.parquet"])
    points = upload_points(file, 100, text="sentence")
    vectors = np.random.default_rng(0).normal(size=(len(points), 6)).astype(np.float32)
    project(vectors, ProjectionSpec(method="pca"))
    assert list(leakscope_home.rglob("*")) == []


def test_a_memory_file_is_read_only() -> None:
    with pytest.raises(ValueError, match="only be read as bytes"):
        MemoryFile("a.txt", b"a").open("w")
    assert "secret" not in repr(MemoryFile("a.txt", b"secret"))


def test_a_selection_holds_no_formula() -> None:
    rows = b'text,=cmd()\n"=HYPERLINK(""http://x"")",@SUM(A1)\n' + b"+1 two,plain\n" * 11
    file = MemoryFile("formulas.csv", rows)
    points = upload_points(file, 100, others=("=cmd()",))
    places = np.arange(24, dtype=np.float32).reshape(12, 2) - 5
    table = list(csv.reader(io.StringIO(table_csv(selection_rows(points, places, [0, 1], {})))))
    assert table[0] == ["text", "column =cmd()", "column words", "map 1", "map 2"]
    assert table[1][:2] == ['\'=HYPERLINK("http://x")', "'@SUM(A1)"]
    assert table[2][0] == "'+1 two" and table[1][3:] == ["-5.0", "-4.0"], "numbers stay numbers"


def test_searching_ignores_case_and_width() -> None:
    texts = [search_form(t) for t in ("The STRASSE", "straße", "ｆｕｌｌ width", "nothing")]
    assert matching_rows(texts, "strasse").tolist() == [0, 1]
    assert matching_rows(texts, " FULL ").tolist() == [2]
    assert matching_rows(texts, "  ").size == 0 and matching_rows(texts, "\\d+").size == 0


def test_a_name_that_stands_twice_is_found_without_comparing_all_with_all() -> None:
    class Name(str):
        n_compared = 0
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            Name.n_compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs = [(Name(i), i) for i in range(2000)]
    with pytest.raises(json_table._DuplicateKeyError, match="1999"):
        json_table._unique_keys([*pairs, (Name(1999), 0)])
    assert Name.n_compared < 4 * len(pairs)
