"""Hostile uploads: small files that expand to much data."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tools.fuzz.play import Case

_MOST = 2**30
"""Bytes that reading may take here; half of what it may on a server."""

_LARGEST = 10_000_000
"""Characters of what is sent."""

_LENGTHS = st.sampled_from([0, 1, 40, 5_000, 100_000, 999_000, 1_000_001])
_COUNTS = st.sampled_from([0, 1, 30, 1_500, 4_000])


def hostile_uploads() -> dict[str, st.SearchStrategy[Case]]:
    """Return strategies for hostile uploads, by target name."""
    made = {
        "parquet": _parquet(),
        "jsonl": _lines(),
        "json": _document(),
        "csv": _table(","),
        "tsv": _table("\t"),
        "txt": _texts(),
    }
    cases = {
        f"upload {kind}": st.builds(_case, st.just(kind), content, st.booleans())
        for kind, content in made.items()
    }
    return {**cases, "upload of answers": st.builds(_answers, _probabilities() | _table(","))}


def _case(kind: str, content: bytes, reads_others: bool) -> Case:
    """Build a case that reads an upload as a table."""

    def read(_: Path) -> object:
        from leakscope.core.corpora.readers.memory_file import MemoryFile
        from leakscope.core.corpora.uploads import inspect_upload, read_upload

        file = MemoryFile(f"sent.{kind}", content)
        facts = inspect_upload(file)
        return read_upload(file, others=tuple(facts.names[:12]) if reads_others else ())

    return Case(f"upload {kind}", read=lambda folder: _bounded(read, folder))


def _answers(content: bytes) -> Case:
    """Build a case that reads an upload of classifier answers."""

    def read(_: Path) -> object:
        from leakscope.core.attacks.membership.classifiers.own_file import attack_upload
        from leakscope.core.corpora.readers.memory_file import MemoryFile

        return attack_upload(MemoryFile("sent.csv", content))

    return Case("upload of answers", read=lambda folder: _bounded(read, folder))


def _bounded(read: Callable[[Path], object], folder: Path) -> object:
    """Run a reader in bounded memory, as the server does."""
    from leakscope.core.corpora.readers.bounded_reading import reading
    from leakscope.core.errors import InvalidInputError

    try:
        with reading(_MOST):
            return read(folder)
    except MemoryError:
        raise InvalidInputError("It takes too much memory.") from None


@st.composite
def _parquet(draw: Callable[..., Any]) -> bytes:
    """Draw a Parquet file with extreme columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = draw(_COUNTS)
    columns = {}
    for i in range(draw(st.integers(1, 3))):
        long = "x" * draw(_LENGTHS)
        kind, value = draw(
            st.sampled_from(
                [
                    (pa.string(), long),
                    (pa.large_string(), long),
                    (pa.binary(), long.encode()),
                    (pa.list_(pa.string()), [long[:5_000]] * 20),
                    (pa.list_(pa.float32()), [0.5] * 384),
                    (pa.int64(), 3),
                    (pa.float64(), float("nan")),
                ]
            )
        )
        array = pa.DictionaryArray.from_arrays(
            pa.array([0] * n, pa.int32()), pa.array([value], kind)
        )
        if draw(st.booleans()):
            array = pa.StructArray.from_arrays([array], ["text"])
        columns[draw(st.sampled_from(["text", "label", f"c{i}"]))] = array
    out = io.BytesIO()
    try:
        pq.write_table(
            pa.table(columns),
            out,
            compression=draw(st.sampled_from(["zstd", "none"])),
            store_schema=draw(st.booleans()),
        )
    except pa.ArrowException:  # a kind that Parquet has no dictionary for
        return b"PAR1"
    return out.getvalue()


@st.composite
def _record(draw: Callable[..., Any]) -> str:
    """Draw an extreme JSON record."""
    how = draw(st.sampled_from(["twice", "deep", "lists", "long", "wide", "number", "plain"]))
    n = draw(st.sampled_from([1, 50, 5_000, 60_000]))
    return {
        "twice": "{" + ",".join(['"text":"a b"'] * n) + "}",
        "deep": '{"text":' + "[" * n + "]" * n + "}",
        "lists": '{"text":"a b","l":[' + ",".join(["[]"] * n) + "]}",
        "long": json.dumps({"text": "word " * n}),
        "wide": json.dumps({f"c{i}": "a b" for i in range(min(n, 5_000))}),
        "number": '{"text":"a b","n":' + "9" * n + "}",
        "plain": '{"text":"The minister met the doctor.","label":"a"}',
    }[how]


@st.composite
def _lines(draw: Callable[..., Any]) -> bytes:
    """Draw extreme JSON Lines."""
    records = draw(st.lists(_record(), min_size=1, max_size=3))
    return "\n".join(records * draw(st.sampled_from([1, 3, 40]))).encode()


@st.composite
def _document(draw: Callable[..., Any]) -> bytes:
    """Draw an extreme JSON document."""
    return f"[{','.join(draw(st.lists(_record(), min_size=1, max_size=4)))}]".encode()


@st.composite
def _table(draw: Callable[..., Any], separator: str) -> bytes:
    """Draw an extreme CSV or TSV table."""
    n_columns = draw(st.sampled_from([1, 2, 30, 3_000]))
    head = separator.join(["text", *(f"p_{i}" for i in range(n_columns))])
    cell = draw(st.sampled_from(["a b", '"', '"a\n', "0.5", "x" * 100_000, "=1+1", "1e999"]))
    row = separator.join([cell] * draw(st.sampled_from([1, n_columns + 1, 5_000])))[:_LARGEST]
    n_rows = min(draw(st.sampled_from([0, 1, 30, 400])), 1 + _LARGEST // len(row))
    return "\n".join([head, *[row] * n_rows])[:_LARGEST].encode()


@st.composite
def _probabilities(draw: Callable[..., Any]) -> bytes:
    """Draw a table of classifier probabilities, mostly valid."""
    n_classes = draw(st.sampled_from([2, 30, 3_000]))
    names = [f"c{i}" for i in range(n_classes)]
    one = draw(st.sampled_from(["0", "1e-400", "1e999", "x" * 100_000, ""] + ["0"] * 5))
    answers = ",".join(["1", *["0"] * (n_classes - 2), one])
    rows = [f"{i % 2},{names[i % n_classes % 2]},{answers}" for i in range(4)]
    n_rows = min(draw(st.sampled_from([0, 1, 30, 400, 20_000])), 1 + _LARGEST // len(rows[0]))
    told = [
        ",".join(["member", "label", *(f"p_{name}" for name in names)]),
        *(rows[i % 4] for i in range(n_rows)),
    ]
    return "\n".join(told)[:_LARGEST].encode()


@st.composite
def _texts(draw: Callable[..., Any]) -> bytes:
    """Draw an extreme text file in some encoding."""
    line = "word " * 300 + "\n"
    part = draw(st.sampled_from(["a b\n", "x" * 2_000_000, "\r", "\u2028", line, "\0"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1"]))
    n = min(draw(st.sampled_from([1, 400, 20_000])), 1 + _LARGEST // len(part))
    return (part * n).encode(encoding, "replace")
