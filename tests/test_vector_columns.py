"""Vectors in a file are told apart from its texts."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from leakscope.core.corpora.guess import inspect_file
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.vector_columns import looks_like_vector, vector_columns
from leakscope.core.errors import InvalidInputError
from leakscope.core.projection.grouping import most_informative_column

VECTOR = [0.25, -1e-05, 3.0, 4.0, 5.5, 6.0, 7.0, 8.0, 9.0]
TEXTS = ["The garden lies by the river.", "The harbour master counted ships."]


def parquet() -> MemoryFile:
    out = io.BytesIO()
    pd.DataFrame({"id": [1, 2], "body": TEXTS, "emb": [VECTOR, VECTOR]}).to_parquet(out)
    return MemoryFile("a.parquet", out.getvalue())


def jsonl(**more: object) -> MemoryFile:
    rows = [json.dumps({"emb": VECTOR, **(more or {"body": text})}) for text in TEXTS]
    return MemoryFile("a.jsonl", "\n".join(rows).encode())


def written() -> MemoryFile:
    long = str(VECTOR * 40)
    frame = pd.DataFrame({"emb": [long, long], "body": TEXTS})
    return MemoryFile("a.csv", frame.to_csv(index=False).encode())


@pytest.mark.parametrize("file", [parquet(), jsonl(), written()], ids=lambda f: f.name)
def test_vectors_are_found_and_are_not_taken_for_the_longest_texts(file: MemoryFile) -> None:
    assert vector_columns(file) == ("emb",)
    assert inspect_file(file).columns.text == "body"


def test_plain_text_and_tables_without_vectors_have_none() -> None:
    assert vector_columns(MemoryFile("a.txt", b"[1, 2, 3]\n")) == ()
    assert vector_columns(MemoryFile("a.csv", b"a,b\n1,the garden\n")) == ()
    assert not looks_like_vector("[1, 2, 3]") and not looks_like_vector("(see above)")
    assert looks_like_vector(np.round(np.arange(9) / 7, 3).tolist())


def test_a_file_of_vectors_alone_has_no_texts() -> None:
    file = jsonl(n=1)
    assert vector_columns(file) == ("emb",)
    with pytest.raises(InvalidInputError, match=re.escape("none of its 2 columns holds texts")):
        inspect_file(file)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["1", "2", "3", "4"], "words": ["5", "7", "5", "6"]}, "words"),
        ({"id": [str(i) for i in range(40)], "kind": ["a", "b"] * 20}, "kind"),
        ({"same": ["a"] * 40, "words": [str(i % 9) for i in range(40)]}, "words"),
        ({"rare": ["x", "y", *[None] * 38], "day": [str(i % 5) for i in range(40)]}, "day"),
        ({"user": [f"u{i % 9}" for i in range(40)], "id": [str(i) for i in range(40)]}, "user"),
    ],
)
def test_a_map_is_coloured_by_what_comes_again(columns: dict, told: str) -> None:
    assert most_informative_column(columns) == told
