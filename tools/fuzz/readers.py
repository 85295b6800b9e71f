"""Cases that give damaged input to readers of texts, vectors, uploads, stored data and results."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tools.fuzz.damage import bytes_from, json_from
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case

_PHRASE = "a phrase for the tests"
_TEXTS = ["The minister met the doctor.", "A letter from the river."]


@st.composite
def corpora(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a case: a damaged file of texts, read from disk or as an upload."""
    content = draw(bytes_from(kit.files[name]))
    column = draw(st.sampled_from([None, None, "text", "label", "nope"]))
    as_upload = draw(st.booleans())

    def read(folder: Path) -> object:
        """Read the texts of the damaged file."""
        from leakscope.core.corpora import Columns
        from leakscope.core.corpora.files import load_file
        from leakscope.core.corpora.readers.memory_file import MemoryFile
        from leakscope.core.corpora.uploads import inspect_upload, read_upload

        if as_upload:
            inspect_upload(MemoryFile(name, content))
            return read_upload(MemoryFile(name, content), text=column)
        return load_file(folder / name, columns=Columns(text=column)).sentences().texts

    return Case(f"reader {name.partition('.')[2]}", read=read, files={name: content})


@st.composite
def tables(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a case: a damaged table of pairs, searches or labels, and its reader."""
    content = draw(bytes_from(kit.files[name]))

    def read(folder: Path) -> object:
        """Read the damaged table by the reader of its kind."""
        from leakscope.core.tasks.labelled import read_labelled
        from leakscope.core.tasks.pairs import read_pairs
        from leakscope.core.tasks.searches import read_searches

        if name == "pairs.csv":
            return read_pairs("pairs", folder / name)
        if name == "searches.csv":
            return read_searches("searches", folder / name, "style", "natural")
        return read_labelled("news", folder / name, label="label")

    return Case(f"reader {Path(name).stem}", read=read, files={name: content})


def stored(kit: Kit) -> dict[str, st.SearchStrategy[Case]]:
    """Return a strategy for damaged stored data of each kind: cells, rows, vectors, trials."""
    return {
        "cell": _damaged_json("cell", _rerun_cell, _ROWS),
        "rows of a study": _damaged_json("rows of a study", _read_rows, _ROWS),
        "distances of tokens": _damaged_json("distances of tokens", _read_geometry, _GEOMETRY),
        "clock of a training": _damaged_json("clock of a training", _read_clock, _CLOCK),
        "story": _damaged_json("story", _read_story, STORY),
        "vectors": _damaged_file("vectors", _write_shard, "name"),
        "encrypted vectors": _damaged_file("encrypted vectors", _write_encrypted_shard, "key"),
        "search for settings": _damaged_file("search for settings", _create_trials, "none"),
        "key file": st.builds(
            lambda content: Case("key file", read=_read_key, files={"key": content}),
            bytes_from(_PHRASE.encode()),
        ),
    }


@st.composite
def _damaged_json(
    draw: Callable[..., Any], target: str, read: Callable[[Path, Any], object], right: Any
) -> Case:
    """Draw a case: a damaged copy of valid JSON, and a reader for it."""
    edit = draw(st.integers(0, 10_000))
    value = draw(json_from(right))
    whole = draw(st.sampled_from([True, True, False]))
    content = json.dumps(value).encode() if whole else draw(bytes_from(json.dumps(right).encode()))
    return Case(target, read=lambda folder: read(folder, (content, edit)))


_SCORE = {"value": 3.0, "ci95": [2.0, 4.0], "n": 10, "chance": 1.0}
_ROWS = {
    "study": "encoders",
    "seconds": 1.0,
    "rows": [
        {
            "cell": {"encoder": "tfidf", "n": 3},
            "scores": {"token_set_f1": _SCORE},
            "facts": {"a": 1},
            "seconds": 2.0,
            "error": "",
        }
    ],
}


_GEOMETRY = {
    "encoder": "a",
    "fingerprint": "f",
    "dimension": 3,
    "n_tokens": 4,
    "neighbours": [1, 2],
    "mean_distance": [0.5, 1.0],
    "sd_distance": [0.1, 0.1],
}
STORY = {
    "kind": "leakscope-story",
    "version": 1,
    "title": "A story",
    "audience": "a board",
    "minutes": 10,
    "pins": [
        {
            "page": "inversion",
            "parameters": [["attack", "msp"]],
            "heading": "Mine",
            "remark": "A remark",
            "notes": "Breathe",
            "slide": {
                "title": "Read",
                "body": "By **one** attack.",
                "alt": "bars",
                "sentence": [["Berlin", "recovered"], [" ", "between words"]],
                "figure": {
                    "data": [{"type": "bar", "x": [1.5], "y": ["a"]}],
                    "layout": {"title": {"text": "t"}},
                },
                "table": {"columns": ["Attack", "F1"], "rows": [["msp", "45"]]},
                "facts": [["n", "500"]],
                "caveat": "One.",
                "commands": ["leakscope list"],
            },
        },
        {"page": "overview", "shows": "pages"},
    ],
}
"""A pin that holds what was seen, and one that names a view."""
_CLOCK = {"identity": {"attack": "mlc"}, "seconds": 3.5}


def _read_geometry(folder: Path, given: Any) -> object:
    """Write damaged token distances, load them and look up neighbours."""
    from leakscope.core.defences.deniability.geometry import load_geometry

    (folder / "a.json").write_bytes(given[0])
    return load_geometry(folder / "a.json").neighbours_within(20.0)


def _read_story(folder: Path, given: Any) -> object:
    """Write a damaged story, load it, save and reload it, and render it as HTML."""
    from leakscope.core.story.deck import make_deck
    from leakscope.core.story.html import html_report
    from leakscope.core.story.reading import read_story

    (folder / "a.json").write_bytes(given[0])
    story = read_story(folder / "a.json")
    again = read_story(_write_json(folder / "b.json", story.to_dict()))
    html_report(make_deck(story, "2026-03-01"))
    return _check_unchanged(again, story)


def _write_json(path: Path, data: Any) -> Path:
    """Write data as JSON to a path and return the path."""
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def _read_clock(folder: Path, given: Any) -> object:
    """Write a damaged training clock, load it and return its seconds."""
    from leakscope.core.protocols import no_progress
    from leakscope.core.training.record import WorkClock

    (folder / "a.json").write_bytes(given[0])
    return WorkClock(folder / "a.json", {"attack": "mlc"}, no_progress).seconds


def _measure_cell(cell: Any, folder: Path) -> Any:
    """Return a fixed row for a study cell; stands in for its measurement."""
    from leakscope.core.results import Interval, Score
    from leakscope.core.results.rows import Row

    return [Row(cell, {"token_set_f1": Score(3.0, Interval(2.0, 4.0), 10)})]


def _rerun_cell(folder: Path, given: Any) -> object:
    """Damage a finished study cell, rerun the study and check that the cell is restored."""
    from leakscope.core.studies.runner import run_cells

    before = run_cells([{"a": 1}], _measure_cell, folder)
    (path,) = (folder / "cells").glob("*.json")
    content, edit = given
    if edit % 2:  # the cell's own, of which a word is another
        told = json.loads(path.read_bytes())
        told[sorted(told)[edit % len(told)]] = json.loads(json.dumps(edit))
        content = json.dumps(told).encode()
    path.write_bytes(content)
    return _check_unchanged(run_cells([{"a": 1}], _measure_cell, folder), before)


def _read_rows(folder: Path, given: Any) -> object:
    """Write a study's damaged rows, load them and return them as dicts."""
    from leakscope.core.results.tables import read_rows

    (folder / "a.json").write_bytes(given[0])
    return [row.to_dict() for row in read_rows(folder / "a.json", "encoders")]


def _check_unchanged(found: Any, before: Any) -> Any:
    """Return a value unchanged; raise AssertionError if it differs from the one before damage."""
    if repr(found) != repr(before):
        raise AssertionError(f"it gave {found!r:.300}, and kept was {before!r:.300}")
    return found


@st.composite
def _damaged_file(
    draw: Callable[..., Any], target: str, make: Callable[[Path], Any], seal: str
) -> Case:
    """Draw a case: random damage to a file that `make` writes, which is then reread.

    What is read must be as before or refused, if the file has a seal: its name, unless it is given
    a new one, or a key, without which nobody seals it again.
    """
    data = draw(st.randoms(use_true_random=False))
    is_sealed = draw(st.booleans())

    def read(folder: Path) -> object:
        """Write the file, damage it and read it again; what a seal protects must be unchanged."""
        path, reader = make(folder / "kept")
        before = reader()
        content = bytearray(path.read_bytes())
        at = data.randrange(len(content) + 1)
        new = data.randbytes(data.randrange(4))  # as long as the old in half of the cases
        content[at : at + (len(new) if data.randrange(2) else data.randrange(3))] = new
        if data.randrange(4) == 0:
            del content[at:]
        path.write_bytes(content)
        if is_sealed:
            _rename_to_content(path, bytes(content))
        found = reader()
        return (
            _check_unchanged(found, before)
            if seal == "key" or (seal == "name" and not is_sealed)
            else found
        )

    return Case(target, read=read)


def _rename_to_content(path: Path, content: bytes) -> None:
    """Rename a shard to the name of its new content, so that the content itself is checked."""
    from leakscope.core.encoders.shards import shard_name

    if path.name.startswith("shard-"):
        path.rename(path.with_name(shard_name(content, path.suffix)))


class _LengthEncoder:
    """An encoder that returns text lengths."""

    name, dimension, fingerprint, precision = "lengths", 2, "e" * 64, "float32"

    def encode(self, texts: Any, on_progress: Any = None) -> Any:
        """Encode each text as its length and 1, float32 (n, 2)."""
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def _write_shard(folder: Path) -> Any:
    """Write a shard of embeddings; return its path and a function that reads it."""
    from leakscope.core.encoders.cache import CachedEncoder

    cached = CachedEncoder(_LengthEncoder(), folder)
    cached.encode(_TEXTS)
    (path,) = cached.folder.glob("shard-*")
    return path, lambda: CachedEncoder(_LengthEncoder(), folder).encode(_TEXTS)


def _write_encrypted_shard(folder: Path) -> Any:
    """Write an encrypted shard of embeddings; return its path and a function that reads it."""
    from leakscope.core.encoders.encrypted_shards import EncryptedShards
    from leakscope.core.storage.encryption import Lock

    shelf = EncryptedShards(folder, "a", 2, "lengths", Lock(b"a" * 32, b"b" * 32))
    path = shelf.write([shelf.key(text) for text in _TEXTS], _LengthEncoder().encode(_TEXTS))

    def read() -> Any:
        """Read the keys and vectors of all shards."""
        return [(shelf.keys(each), shelf.vectors(each)) for each in shelf.shards()]

    return path, read


def _create_trials(folder: Path) -> Any:
    """Create a database of trials; return its path and a function that reads it."""
    from leakscope.core.studies.inversion.tuning import open_trials

    def read() -> Any:
        """Open the database and return its trials."""
        with open_trials(folder, {}, 0) as trials:
            return trials

    read()
    return folder / "trials.sqlite", read


def _read_key(folder: Path) -> object:
    """Derive the cache's encryption keys from a damaged key file."""
    import os
    from unittest.mock import patch

    from leakscope.core.storage.encryption import KEY_FILE, find_lock

    is_cheap = patch(
        "leakscope.core.storage.encryption.COST", 2**10
    )  # each damaged key is another one to derive
    with is_cheap, patch.dict(os.environ, {KEY_FILE: str(folder / "key")}):
        return find_lock(folder / "a")


# Vector files of each kind that an audit reads


def sources(vectors: NDArray[np.float32]) -> dict[str, st.SearchStrategy[Case]]:
    """Return a strategy for damaged vector files of each kind, by target name."""
    files = _make_vector_files(vectors)
    return {
        f"source {Path(name).suffix[1:]}": _damaged_vectors(name, files[name]) for name in files
    }


def _make_vector_files(vectors: NDArray[np.float32]) -> dict[str, bytes]:
    """Write the vectors in every format; return the bytes by file name."""
    import pandas as pd
    from safetensors.numpy import save

    plain, packed, table = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(plain, vectors)
    np.savez(packed, vectors=vectors, other=np.zeros(3))
    rows = pd.DataFrame({"text": [f"letter {i}" for i in range(len(vectors))]})
    rows.assign(vector=list(vectors)).to_parquet(table, index=False)
    told = rows.assign(vector=[str(vector.tolist()) for vector in vectors])
    lines = [json.dumps({"text": "a letter", "vector": vector.tolist()}) for vector in vectors]
    found = {
        "rows.npy": plain.getvalue(),
        "rows.npz": packed.getvalue(),
        "rows.safetensors": save({"vectors": vectors}),
        "rows.parquet": table.getvalue(),
        "rows.csv": told.to_csv(index=False).encode(),
        "rows.jsonl": "\n".join(lines).encode(),
    }
    if find_spec("faiss") is not None:
        import faiss

        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        found["rows.faiss"] = faiss.serialize_index(index).tobytes()
    return found


@st.composite
def _damaged_vectors(draw: Callable[..., Any], name: str, whole: bytes) -> Case:
    """Draw a case: a damaged vector file, of which a sample is read."""
    content = draw(bytes_from(whole))

    def read(folder: Path) -> object:
        """Read a sample of five rows of the damaged file."""
        from leakscope.core.audit.sources import open_source, read_sample

        return read_sample(open_source(str(folder / name)), 5)

    return Case(f"source {Path(name).suffix[1:]}", read=read, files={name: content})


# Hostile uploads: small files that expand to much data

_MOST = 2**30
"""Bytes that reading may take here; half of what it may on a server."""

_LARGEST = 10_000_000
"""Characters of what is sent."""

_LENGTHS = st.sampled_from([0, 1, 40, 5_000, 100_000, 999_000, 1_000_001])
_COUNTS = st.sampled_from([0, 1, 30, 1_500, 4_000])


def hostile_uploads() -> dict[str, st.SearchStrategy[Case]]:
    """Return a strategy for hostile uploads (small files of much data) of each kind, by target."""
    made = {
        "parquet": _extreme_parquet(),
        "jsonl": _extreme_json_lines(),
        "json": _extreme_json(),
        "csv": _extreme_table(","),
        "tsv": _extreme_table("\t"),
        "txt": _extreme_text_file(),
    }
    cases = {
        f"upload {kind}": st.builds(_table_upload, st.just(kind), content, st.booleans())
        for kind, content in made.items()
    }
    return {
        **cases,
        "upload of answers": st.builds(
            _answers_upload, _extreme_probabilities() | _extreme_table(",")
        ),
    }


def _table_upload(kind: str, content: bytes, reads_others: bool) -> Case:
    """Build a case that reads a hostile upload as texts with columns."""

    def read(_: Path) -> object:
        """Inspect the upload and read its texts, with other columns if asked for."""
        from leakscope.core.corpora.readers.memory_file import MemoryFile
        from leakscope.core.corpora.uploads import inspect_upload, read_upload

        file = MemoryFile(f"sent.{kind}", content)
        facts = inspect_upload(file)
        return read_upload(file, others=tuple(facts.names[:12]) if reads_others else ())

    return Case(f"upload {kind}", read=lambda folder: _run_bounded(read, folder))


def _answers_upload(content: bytes) -> Case:
    """Build a case that reads a hostile upload of classifier answers and attacks them."""

    def read(_: Path) -> object:
        """Run the membership attacks on the uploaded answers."""
        from leakscope.core.attacks.membership.classifiers.own_file import attack_upload
        from leakscope.core.corpora.readers.memory_file import MemoryFile

        return attack_upload(MemoryFile("sent.csv", content))

    return Case("upload of answers", read=lambda folder: _run_bounded(read, folder))


def _run_bounded(read: Callable[[Path], object], folder: Path) -> object:
    """Run a reader in bounded memory, as the server does; raise InvalidInputError beyond."""
    from leakscope.core.corpora.readers.bounded_reading import reading
    from leakscope.core.errors import InvalidInputError

    try:
        with reading(_MOST):
            return read(folder)
    except MemoryError:
        raise InvalidInputError("It takes too much memory.") from None


@st.composite
def _extreme_parquet(draw: Callable[..., Any]) -> bytes:
    """Draw the bytes of a Parquet file of few but extreme columns."""
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
def _extreme_record(draw: Callable[..., Any]) -> str:
    """Draw the text of an extreme JSON record: deep, long, wide or with repeated keys."""
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
def _extreme_json_lines(draw: Callable[..., Any]) -> bytes:
    """Draw the bytes of extreme JSON Lines."""
    records = draw(st.lists(_extreme_record(), min_size=1, max_size=3))
    return "\n".join(records * draw(st.sampled_from([1, 3, 40]))).encode()


@st.composite
def _extreme_json(draw: Callable[..., Any]) -> bytes:
    """Draw the bytes of an extreme JSON list."""
    return f"[{','.join(draw(st.lists(_extreme_record(), min_size=1, max_size=4)))}]".encode()


@st.composite
def _extreme_table(draw: Callable[..., Any], separator: str) -> bytes:
    """Draw the bytes of an extreme CSV or TSV table."""
    n_columns = draw(st.sampled_from([1, 2, 30, 3_000]))
    head = separator.join(["text", *(f"p_{i}" for i in range(n_columns))])
    cell = draw(st.sampled_from(["a b", '"', '"a\n', "0.5", "x" * 100_000, "=1+1", "1e999"]))
    row = separator.join([cell] * draw(st.sampled_from([1, n_columns + 1, 5_000])))[:_LARGEST]
    n_rows = min(draw(st.sampled_from([0, 1, 30, 400])), 1 + _LARGEST // len(row))
    return "\n".join([head, *[row] * n_rows])[:_LARGEST].encode()


@st.composite
def _extreme_probabilities(draw: Callable[..., Any]) -> bytes:
    """Draw the bytes of a CSV table of classifier probabilities, mostly valid."""
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
def _extreme_text_file(draw: Callable[..., Any]) -> bytes:
    """Draw the bytes of an extreme text file in some encoding."""
    line = "word " * 300 + "\n"
    part = draw(st.sampled_from(["a b\n", "x" * 2_000_000, "\r", "\u2028", line, "\0"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1"]))
    n = min(draw(st.sampled_from([1, 400, 20_000])), 1 + _LARGEST // len(part))
    return (part * n).encode(encoding, "replace")
