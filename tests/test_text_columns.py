"""Which column of a table is read: the one named, or the longest, told and the same everywhere."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.corpora.files import read_texts
from leakscope.core.corpora.guess import SAMPLE_ROWS, inspect_file, longest_text_column
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import inspect_upload
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.domains import open_corpus

ROWS = [
    ("a headline", "The whole story, told at length.", 12345678901234567890123456789012345678),
    ("b", "Short.", 2),
]


def table(ending: str) -> bytes:
    names = ("title", "body", "number")
    if ending == "parquet":
        out = io.BytesIO()
        cells = zip(*((title, body, str(n)) for title, body, n in ROWS), strict=True)
        pq.write_table(pa.table(dict(zip(names, map(list, cells), strict=True))), out)
        return out.getvalue()
    if ending == "jsonl":
        rows = [dict(zip(names, row, strict=True)) for row in ROWS]
        return "\n".join(map(json.dumps, rows)).encode()
    mark = "\t" if ending == "tsv" else ";"
    return "\n".join(mark.join(map(str, row)) for row in [names, *ROWS]).encode()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_the_longest_texts_are_read_on_disk_and_in_an_upload(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(table(ending))
    found = [inspect_file(path), inspect_upload(MemoryFile(path.name, table(ending)))]
    for facts in found:
        assert facts.is_guessed and facts.columns.text == "body"
        assert facts.names == ("title", "body", "number")
        assert "using column `body`" in facts.notes[0]
    bodies = [body for _, body, _ in ROWS]
    assert read_texts(path) == bodies == [d.text for d in load_corpus(path).documents]
    assert [d.text for d in open_corpus(str(path)).documents] == bodies
    assert read_texts(path, columns=Columns(text="title")) == ["a headline", "b"]
    named = inspect_file(path, Columns(text="title"))
    assert not named.is_guessed and named.notes == ()


def test_the_mean_counts_not_the_longest_cell() -> None:
    rows = [["word " * 3, ""]] * 9 + [["word", "word " * 20]]
    assert longest_text_column(["steady", "rare"], rows) == "steady"


def test_of_equals_the_first_and_numbers_are_no_texts() -> None:
    assert longest_text_column(["b", "a"], [["same", "size"]]) == "b"
    assert longest_text_column(["n", "t"], [["1234567890", "ab"], [None, None], [3.5, "c"]]) == "t"
    assert longest_text_column(["n"], [["12"], [""]]) is None
    assert longest_text_column([], []) is None


def test_only_the_first_rows_decide() -> None:
    seen = []

    def rows():
        for i in range(10 * SAMPLE_ROWS):
            seen.append(i)
            yield ["longer text", "short"] if i < SAMPLE_ROWS else ["", "a very long text indeed"]

    assert longest_text_column(["a", "b"], rows()) == "a" and len(seen) == SAMPLE_ROWS
    late = [["", 1]] * (2 * SAMPLE_ROWS) + [["here", 1]]
    assert longest_text_column(["a", "b"], late) == "a", "rows are read until there is a text"


def test_one_column_is_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("words\nfine words\n")
    facts = inspect_file(path)
    assert facts.columns.text == "words" and not facts.is_guessed and facts.notes == ()


def test_a_broken_row_beyond_the_limit_hinders_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,said\n1,first words\n2,second,third\n")
    assert read_texts(path, limit=1) == ["first words"]
    with pytest.raises(InvalidInputError, match="line 3: has 3 cells"):
        read_texts(path)


def test_a_label_that_is_read_as_text_is_no_label_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,label\n1,a label of many words\n")
    (document,) = load_corpus(path).documents
    assert document.text == "a label of many words" and document.label is None


def test_a_reference_names_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(table("csv"))
    titles = ["a headline", "b"]
    assert [d.text for d in load_corpus(f"{path}#title").documents] == titles
    assert [d.text for d in open_corpus(f"{path}#title").documents] == titles
    with pytest.raises(InvalidInputError, match=r"no column 'titel'\. Did you mean 'title'"):
        load_corpus(f"{path}#titel")
    with pytest.raises(InvalidInputError, match="columns are for files"):
        load_corpus("lee#title")
    sharp = tmp_path / "notes #2"
    sharp.write_text("one text\n")
    assert split_reference(str(sharp)) == (str(sharp), None)
    assert [d.text for d in load_corpus(str(sharp)).documents] == ["one text"]
