"""What cannot be used is refused by name: a line with the remedy, status 2, no traceback."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ROOT

from leakscope.core.corpora import Columns
from leakscope.core.corpora.files import load_file, read_texts
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results.rows import Row
from leakscope.core.storage.artifacts import (
    load_artifact,
    read_json,
    read_record,
    save_artifact,
    write_json,
)
from leakscope.core.studies.runner import cell_key, run_cells

DEEP = "[" * 100_000 + "]" * 100_000
MANY = "9" * 20


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A FIFO that nobody writes: to open it would wait for ever."""
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_device_is_no_specification(core: Any, tmp_path: Path, device: str) -> None:
    given = ["study", "encoders", "--spec", device, "--out", tmp_path / "out.json"]
    assert "not an ordinary file" in core(*given).refusal()


@pytest.mark.parametrize(
    "command",
    [
        ["study", "encoders", "--spec", "{pipe}", "--out", "{out}"],
        ["study", "encoders", "--target", "{pipe}", "--out", "{out}"],
        ["evaluate", "--attack", "probe", "--texts", "{pipe}"],
        ["fit", "--encoder", "tfidf", "--corpus", "{pipe}", "--out", "{out}"],
        ["fit", "--encoder", "sbert", "--pairs", "{pipe}", "--out", "{out}"],
        ["privatize", "--eta", "1", "--in", "{pipe}", "--out", "{out}"],
    ],
    ids=["spec", "target", "texts", "corpus", "pairs", "in"],
)
def test_a_pipe_is_refused_and_not_waited_for(
    core: Any, pipe: Path, tmp_path: Path, command: list[str]
) -> None:
    given = [word.format(pipe=pipe, out=tmp_path / "out") for word in command]
    assert "ordinary file" in core(*given).refusal()


def test_a_model_may_be_no_pipe_and_no_endless_file(
    pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArtifactError, match="not an ordinary file"):
        read_json(pipe)
    monkeypatch.setattr("leakscope.core.storage.artifacts.MOST_JSON_BYTES", 100)
    write_json(tmp_path / "long.json", "x" * 100)
    with pytest.raises(ArtifactError, match="more than 100 bytes"):
        read_json(tmp_path / "long.json")


def test_a_long_specification_is_refused(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"study": "' + "x" * 2**20 + '"}')
    assert "more than 1,048,576 bytes" in core("study", "--spec", path).refusal()


def test_deep_json_is_refused(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(DEEP)
    assert "nested too deeply" in core("study", "--spec", path).refusal()
    with pytest.raises(ArtifactError, match="nested too deeply"):
        read_json(path)
    lines = path.rename(tmp_path / "a.jsonl")
    with pytest.raises(InvalidInputError, match="line 1: is not JSON"):
        read_texts(lines)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, bad: float) -> None:
    save_artifact(tmp_path, {"w": np.array([1.0, bad], np.float32), "n": np.arange(3)}, {})
    with pytest.raises(ArtifactError, match="'w' holds numbers that are not finite"):
        load_artifact(tmp_path)


@pytest.mark.parametrize("content", ["{}", "[]", "3", '{"seconds": 1, "rows": [[]]}', "{"])
def test_a_cell_that_holds_no_rows_is_refused_and_the_others_are_kept(
    tmp_path: Path, content: str
) -> None:
    cells = [{"i": 0}, {"i": 1}]

    def measure(cell: dict[str, Any], folder: Path) -> list[Row]:
        return [Row(cell, facts={"n": cell["i"]})]

    run_cells(cells, measure, tmp_path)
    bad = tmp_path / "cells" / f"{cell_key(cells[0])}.json"
    bad.write_text(content)
    with pytest.raises(ArtifactError, match=rf"{bad.name}.*ove it a.*") as told:
        run_cells(cells, measure, tmp_path)
    assert "elete" not in str(told.value)
    bad.rename(tmp_path / "aside.json")
    assert [row.facts["n"] for row in run_cells(cells, measure, tmp_path)] == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("text,label\rOne text here,a\rAnother text,b\r", "CR alone"),
        ("text,text\nOne text,another text\n", "'text' twice"),
        ('text\n"never closed\n' + "a line\n" * 2_000_000, "Close every double quote"),
    ],
    ids=["returns", "twice", "open"],
)
def test_csv_that_would_be_misread_is_refused(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, newline="")
    with pytest.raises(InvalidInputError, match=told):
        load_file(path)


def test_plain_text_with_returns_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for encoding in ("utf-8", "utf-16"):
        path.write_bytes("One text.\rAnother text.".encode(encoding))
        with pytest.raises(InvalidInputError, match="CR alone"):
            read_texts(path)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ('{"text": "One text", "text": "Another text"}', "'text' twice"),
        ('{"text": {}}', "'text' is not text but dict"),
        ('{"text": []}', "'text' is not text but list"),
        ('{"text": "One text", "label": {}}', "a label is an object, not a word"),
        ('{"text": "One text", "label": []}', "a label is a list, not a word"),
        ('{"text": "A \\ud800 text"}', "lone surrogate"),
        ('{"text": "One text", "label": "\\udfff"}', "lone surrogate"),
        ('{"text": "One text", "author": "\\udfff"}', "lone surrogate"),
        ('{"text": "One text", "kind": "\\udfff"}', "lone surrogate"),
    ],
)
def test_a_cell_that_is_no_word_is_refused_in_any_column(
    tmp_path: Path, record: str, told: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(record + "\n")
    others = ("kind",) if "kind" in record else ()
    with pytest.raises(InvalidInputError, match=f"line 1: .*{told}"):
        load_file(path, columns=Columns(text="text", others=others))


def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = pa.array(["One text here", "Another text"])
    pq.write_table(pa.Table.from_arrays([texts, texts], ["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="'text' twice"):
        load_file(tmp_path / "a.parquet")


NUMBERS = [
    ["evaluate", "--attack", "probe", "--texts", "{corpus}", "--seed=-1"],
    ["train", "--attack", "prior", "--corpus", "{corpus}", "--out", "{out}", "--seed=-1"],
    ["tune", "--attack", "probe", "--target", "{corpus}", "--out", "{out}", "--seed=-1"],
    ["privatize", "--eta", "1", "--in", "{corpus}", "--out", "{out}", "--seed=-1"],
    ["deniability", "--text", "A doctor", "--eta", "1", "--seed=-1"],
    ["study", "encoders", "--target", "{corpus}", "--out", "{out}", "--seeds=-1"],
    ["evaluate", "--attack", "probe", "--texts", "{corpus}", "--limit", MANY],
    ["evaluate", "--attack", "probe", "--texts", "{corpus}", "--seed", MANY],
    ["fit", "--encoder", "tfidf", "--corpus", "{corpus}", "--out", "{out}", "--limit", MANY],
    *(
        f"fit --encoder lsa_tfidf --corpus {{corpus}} --out {{out}} --set seed={seed}".split()
        for seed in (MANY, -1)
    ),
    ["study", "encoders", "--target", "{corpus}", "--out", "{out}", "--n-targets", MANY],
]


@pytest.mark.parametrize("command", NUMBERS, ids=[f"{c[0]} {c[-1]}" for c in NUMBERS])
def test_numbers_that_cannot_be_counted_with_are_refused(
    core: Any, corpus: Path, tmp_path: Path, command: list[str]
) -> None:
    given = [word.format(corpus=corpus, out=tmp_path / "out") for word in command]
    assert "must lie in [" in core(*given).refusal()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seed", [MANY, "-1", f"-{MANY}"])
@pytest.mark.parametrize(
    "command", [["tune", "--attack", "mlc", "--seed"], ["study", "encoders", "--seeds"]]
)
def test_the_range_of_a_seed_is_told_whichever_end_is_passed(
    core: Any, corpus: Path, tmp_path: Path, command: list[str], seed: str
) -> None:
    *words, option = command
    given = [*words, "--target", corpus, "--out", tmp_path / "out.json", f"{option}={seed}"]
    assert f"must lie in [0, 4294967295], got '{seed}'" in core(*given).refusal()


@pytest.mark.parametrize("out", ["no/such/folder/private.txt", "."])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    core: Any, corpus: Path, tmp_path: Path, out: str
) -> None:
    outcome = core("privatize", "--eta", "1", "--in", corpus, "--out", tmp_path / out)
    assert "exist" in outcome.refusal() and "LEAKSCOPE_HOME" not in outcome.err


def test_a_result_that_cannot_lie_where_it_is_to_is_told_before_the_work(
    core: Any, corpus: Path, tmp_path: Path, pipe: Path
) -> None:
    given = ["study", "encoders", "--target", corpus, "--encoders", "tfidf", "--out"]
    assert "is a folder" in core(*given, tmp_path).refusal()
    assert "not an ordinary file" in core(*given, pipe).refusal()
    assert "choose another folder" in core(*given, corpus / "a.json").refusal()


def test_what_a_system_refuses_is_no_fault_of_ours(
    core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, told in [
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (RecursionError(), "nested too deeply"),
    ]:

        def fails(_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("leakscope.core.cli.listing.run", fails)
        assert told in core("list").refusal()


def test_no_remedy_tells_anyone_to_delete() -> None:
    root = Path(__file__).parent.parent / "core"
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "Delete " in line and ('"' in line or "'" in line) and '"""' not in line
    ]
    assert [line for line in found if "nltk" not in line] == []


def test_what_a_file_holds_is_looked_at_before_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for wrong in ("[]", "{}", "3", '{"seconds": "1"}', '{"seconds": null}'):
        path.write_text(wrong)
        with pytest.raises(ArtifactError, match=r"a\.json holds no .* not what was written"):
            read_record(path, seconds=float)
    path.write_text('{"seconds": 1, "more": 2}')
    assert read_record(path, seconds=float) == {"seconds": 1, "more": 2}


UNSEEN = re.compile(r"read_json\([^\n]*\)(\[|\.get)")


def test_no_entry_of_a_file_is_taken_unseen() -> None:
    sources = [p for part in ("core", "dashboard") for p in (ROOT / part).rglob("*.py")]
    assert [str(p) for p in sources if UNSEEN.search(p.read_text(encoding="utf-8"))] == []
    assert UNSEEN.search('dict(read_json(path / META)["training"])')
