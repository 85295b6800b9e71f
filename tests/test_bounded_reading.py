"""A visitor's file is read by a process of its own: what it unpacks to costs the server nothing."""

from __future__ import annotations

import gc
import io
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope.core.corpora.readers import bounded_reading
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import inspect_upload, read_upload
from leakscope.core.errors import InvalidInputError
from leakscope.core.jobs.running import Patience
from leakscope.core.protocols import no_progress
from leakscope.dashboard.server import reader_processes as parsing
from leakscope.dashboard.server.reader_processes import run_reader

LONG = "x" * 900_000
"""Just short of the longest text that is read."""


def sleep(seconds: float) -> None:
    """What never ends by itself."""
    time.sleep(seconds)


def hoard(n_bytes: int) -> int:
    return len(bytearray(n_bytes))


def process(_: MemoryFile) -> int:
    return os.getpid()


def parquet(**columns: pa.Array) -> MemoryFile:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd", store_schema=False)
    return MemoryFile("small.parquet", out.getvalue())


def repeated(kind: pa.DataType, value: Any, n: int = 3000) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([value], kind))


HOSTILE = {
    "a string": lambda: {"text": repeated(pa.string(), LONG)},
    "a large string": lambda: {"text": repeated(pa.large_string(), LONG)},
    "bytes": lambda: {"text": pa.array(["word"] * 3000), "b": repeated(pa.binary(), LONG.encode())},
    "strings in a struct": lambda: {
        "s": pa.StructArray.from_arrays([repeated(pa.string(), LONG)], ["text"])
    },
    "strings in lists": lambda: {
        "text": pa.array(["word"] * 3000),
        "l": pa.ListArray.from_arrays(list(range(3001)), repeated(pa.string(), LONG)),
    },
}


@pytest.fixture(autouse=True)
def first_reading() -> None:
    """Count from here: other tests have made this process larger."""
    bounded_reading._initial_memory.cache_clear()


@pytest.fixture
def queue() -> Iterator[None]:
    yield
    parsing.readers().close()
    parsing.readers.clear()  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_file_that_unpacks_to_gigabytes_costs_the_server_nothing(
    queue: None, kind: str
) -> None:
    file = parquet(**HOSTILE[kind]())
    assert len(file.content) < 2**20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    others = tuple(name for name in ("b", "l") if name in HOSTILE[kind]())
    for read, options in ((inspect_upload, {}), (read_upload, {"others": others})):
        try:
            run_reader(read, file, **options)
        except InvalidInputError as error:
            assert "bug in Leakscope" not in str(error) and "damaged" not in str(error)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 300 * 2**10, "kilobytes"


@pytest.mark.slow
def test_another_process_reads_and_what_is_wrong_is_told_in_our_words(queue: None) -> None:
    file = MemoryFile("a.csv", b"text,label\nthe river,a\nthe garden,b\n")
    assert run_reader(process, file) != os.getpid()
    assert run_reader(inspect_upload, file) == inspect_upload(file)
    with pytest.raises(InvalidInputError) as told:
        inspect_upload(MemoryFile("a.parquet", b"none"))
    with pytest.raises(InvalidInputError) as apart_told:
        run_reader(inspect_upload, MemoryFile("a.parquet", b"none"))
    assert str(apart_told.value) == str(told.value)


@pytest.mark.slow
def test_what_takes_too_much_memory_is_refused_and_the_next_is_read(queue: None) -> None:
    with pytest.raises(InvalidInputError, match="memory"):
        run_reader(hoard, 3 * 2**30)
    assert run_reader(hoard, 2**20) == 2**20


@pytest.mark.slow
def test_reading_has_a_longest_time(queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    patience = Patience(longest_seconds=1.0, crowded_longest_seconds=1.0)
    monkeypatch.setattr(parsing.readers(), "patience", patience)
    with pytest.raises(InvalidInputError, match="the limit of one job"):
        run_reader(sleep, 60.0)
    monkeypatch.undo()
    assert run_reader(process, MemoryFile("a.txt", b"x")) != os.getpid(), (
        "others are served after it"
    )


def test_the_bound_is_on_what_comes_on_top_and_ends_with_the_reading() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_reading.bounded_memory(2**28):
        assert len(bytearray(2**26)) == 2**26
        with pytest.raises(MemoryError):
            bytearray(2**29)
        outer = resource.getrlimit(resource.RLIMIT_DATA)
        with bounded_reading.bounded_memory():
            assert resource.getrlimit(resource.RLIMIT_DATA) == outer, "never more than before"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_what_one_reading_leaves_is_no_room_for_the_next() -> None:
    bounds, left = [], []
    for _ in range(2):
        with bounded_reading.reading(2**30):
            bounds.append(resource.getrlimit(resource.RLIMIT_DATA)[0])
            left.append(bytearray(2**26))
    assert bounds[0] == bounds[1]


def test_no_garbage_is_looked_for_while_a_file_is_read() -> None:
    """It takes most of the time where a line holds 60,000 lists."""
    with pytest.raises(ZeroDivisionError), bounded_reading.reading():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled() and bounded_reading.call(gc.isenabled, (), {}, no_progress) is False


@pytest.mark.slow
def test_no_more_is_handed_to_the_server_than_a_visitor_may_have(queue: None) -> None:
    text = pa.array(["word"] * 1500)
    file = parquet(text=text, tag=repeated(pa.string(), LONG, 1500))
    with pytest.raises(InvalidInputError, match="and the other columns have more than"):
        run_reader(read_upload, file, text="text", others=("tag",))
