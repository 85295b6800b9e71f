"""Cases that give damaged input to readers of texts, stored data and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tools.fuzz.damage import bytes_from, json_from
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case

_PHRASE = "a phrase for the tests"
_TEXTS = ["The minister met the doctor.", "A letter from the river."]


def _pick(case: Case, read: Callable[[Path], object]) -> Case:
    """Return a case with another reader."""
    return replace(case, read=read)


@st.composite
def corpora(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a damaged text file, read from disk or as an upload."""
    content = draw(bytes_from(kit.files[name]))
    column = draw(st.sampled_from([None, None, "text", "label", "nope"]))
    as_upload = draw(st.booleans())

    def read(folder: Path) -> object:
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
    """Draw a damaged table of pairs, labels or searches."""
    content = draw(bytes_from(kit.files[name]))

    def read(folder: Path) -> object:
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
    """Return strategies for damaged stored data: cells, rows, vectors, trials."""
    return {
        "cell": _jsons("cell", _cell, _ROWS),
        "rows of a study": _jsons("rows of a study", _rows, _ROWS),
        "distances of tokens": _jsons("distances of tokens", _geometry, _GEOMETRY),
        "clock of a training": _jsons("clock of a training", _clock, _CLOCK),
        "story": _jsons("story", _story, STORY),
        "vectors": _torn("vectors", _shard, "name"),
        "encrypted vectors": _torn("encrypted vectors", _locked, "key"),
        "search for settings": _torn("search for settings", _search, "none"),
        "key file": st.builds(
            lambda content: Case("key file", read=_key, files={"key": content}),
            bytes_from(_PHRASE.encode()),
        ),
    }


@st.composite
def _jsons(
    draw: Callable[..., Any], target: str, read: Callable[[Path, Any], object], right: Any
) -> Case:
    """Draw damaged JSON and a reader for it."""
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


def _geometry(folder: Path, given: Any) -> object:
    """Load token distances."""
    from leakscope.core.defences.deniability.geometry import load_geometry

    (folder / "a.json").write_bytes(given[0])
    return load_geometry(folder / "a.json").neighbours_within(20.0)


def _story(folder: Path, given: Any) -> object:
    """Load a story, save and reload it, and render it as HTML."""
    from leakscope.core.story.deck import make_deck
    from leakscope.core.story.html import html_report
    from leakscope.core.story.reading import read_story

    (folder / "a.json").write_bytes(given[0])
    story = read_story(folder / "a.json")
    again = read_story(_written(folder / "b.json", story.to_dict()))
    html_report(make_deck(story, "2026-03-01"))
    return _same(again, story)


def _written(path: Path, data: Any) -> Path:
    """Write JSON to a path and return the path."""
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def _clock(folder: Path, given: Any) -> object:
    """Load a training clock."""
    from leakscope.core.protocols import no_progress
    from leakscope.core.training.record import WorkClock

    (folder / "a.json").write_bytes(given[0])
    return WorkClock(folder / "a.json", {"attack": "mlc"}, no_progress).seconds


def _measured(cell: Any, folder: Path) -> Any:
    """Return a fixed row for a cell."""
    from leakscope.core.results import Interval, Score
    from leakscope.core.results.rows import Row

    return [Row(cell, {"token_set_f1": Score(3.0, Interval(2.0, 4.0), 10)})]


def _cell(folder: Path, given: Any) -> object:
    """Damage a finished study cell, and check that rerunning restores it."""
    from leakscope.core.studies.runner import run_cells

    before = run_cells([{"a": 1}], _measured, folder)
    (path,) = (folder / "cells").glob("*.json")
    content, edit = given
    if edit % 2:  # the cell's own, of which a word is another
        told = json.loads(path.read_bytes())
        told[sorted(told)[edit % len(told)]] = json.loads(json.dumps(edit))
        content = json.dumps(told).encode()
    path.write_bytes(content)
    return _same(run_cells([{"a": 1}], _measured, folder), before)


def _rows(folder: Path, given: Any) -> object:
    """Load a study's rows."""
    from leakscope.core.results.tables import read_rows

    (folder / "a.json").write_bytes(given[0])
    return [row.to_dict() for row in read_rows(folder / "a.json", "encoders")]


def _same(found: Any, before: Any) -> Any:
    """Return a value; raise AssertionError if it differs from the one before damage."""
    if repr(found) != repr(before):
        raise AssertionError(f"it gave {found!r:.300}, and kept was {before!r:.300}")
    return found


@st.composite
def _torn(draw: Callable[..., Any], target: str, make: Callable[[Path], Any], seal: str) -> Case:
    """Draw random damage to a file that `make` writes, and reread it.

    What is read must be as before or refused, if the file has a seal: its name, unless it is given
    a new one, or a key, without which nobody seals it again.
    """
    data = draw(st.randoms(use_true_random=False))
    is_sealed = draw(st.booleans())

    def read(folder: Path) -> object:
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
            _seal_again(path, bytes(content))
        found = reader()
        return (
            _same(found, before) if seal == "key" or (seal == "name" and not is_sealed) else found
        )

    return Case(target, read=read)


def _seal_again(path: Path, content: bytes) -> None:
    """Rename a shard to the name of its new content, so that the content itself is checked."""
    from leakscope.core.encoders.shards import shard_name

    if path.name.startswith("shard-"):
        path.rename(path.with_name(shard_name(content, path.suffix)))


class _Lengths:
    """An encoder that returns text lengths."""

    name, dimension, fingerprint, precision = "lengths", 2, "e" * 64, "float32"

    def encode(self, texts: Any, on_progress: Any = None) -> Any:
        """Return the length of each text, and 1."""
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def _shard(folder: Path) -> Any:
    """Write an embedding shard; return its path and a reader."""
    from leakscope.core.encoders.cache import CachedEncoder

    cached = CachedEncoder(_Lengths(), folder)
    cached.encode(_TEXTS)
    (path,) = cached.folder.glob("shard-*")
    return path, lambda: CachedEncoder(_Lengths(), folder).encode(_TEXTS)


def _locked(folder: Path) -> Any:
    """Write an encrypted shard; return its path and a reader."""
    from leakscope.core.encoders.encrypted_shards import EncryptedShards
    from leakscope.core.storage.encryption import Lock

    shelf = EncryptedShards(folder, "a", 2, "lengths", Lock(b"a" * 32, b"b" * 32))
    path = shelf.write([shelf.key(text) for text in _TEXTS], _Lengths().encode(_TEXTS))

    def read() -> Any:
        return [(shelf.keys(each), shelf.vectors(each)) for each in shelf.shards()]

    return path, read


def _search(folder: Path) -> Any:
    """Create a trials database; return its path and a reader."""
    from leakscope.core.studies.inversion.tuning import open_trials

    def read() -> Any:
        with open_trials(folder, {}, 0) as trials:
            return trials

    read()
    return folder / "trials.sqlite", read


def _key(folder: Path) -> object:
    """Derive the cache's lock from a damaged key file."""
    import os
    from unittest.mock import patch

    from leakscope.core.storage.encryption import KEY_FILE, find_lock

    is_cheap = patch(
        "leakscope.core.storage.encryption.COST", 2**10
    )  # each damaged key is another one to derive
    with is_cheap, patch.dict(os.environ, {KEY_FILE: str(folder / "key")}):
        return find_lock(folder / "a")
