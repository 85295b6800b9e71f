"""Every command that reads a table names its columns alike and checks it before all else."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import run_python

from leakscope.core.cli import COMMANDS, build_parser

READS_NO_TABLE = {
    "invert",
    "deniability",
    "audit-mechanism",
    "membership",
    "report",
    "cache",
    "list",
}
"""Every other command has --text-column. One that reads no table of texts is added here."""

READS = ("evaluate", "train", "fit", "defend", "train-private", "privatize", "memorise", "tune")
READS += ("study",)

OF_FILES = {"--texts", "--corpus", "--in", "--target"}


def parsers(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield every command that has none below it, with its options."""
    if hasattr(parser, "declare"):  # a study's, as it does when it is asked for
        parser.declare()
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in below:
        for part, child in action.choices.items():
            yield from parsers(child, f"{name} {part}".strip())
    if not below:
        yield name, {option for a in parser._actions for option in a.option_strings}


def test_every_command_that_reads_a_table_takes_a_text_column() -> None:
    found = dict(parsers(build_parser(), ""))
    assert {name.split()[0] for name in found} == set(COMMANDS)
    for name, options in found.items():
        reads = name.split()[0] not in READS_NO_TABLE
        assert ("--text-column" in options) == reads, name
        assert reads or not options & OF_FILES, f"{name} reads a file of texts"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "news.csv"
    rows = [
        [f"Item {i}", f"The minister “met” the lawyer near the market, number {i}.", "x"]
        for i in range(30)
    ]
    with path.open("w", encoding="cp1252", newline="") as file:
        csv.writer(file).writerows([["head", "body", "kind"], *rows])
    return path


def commands(path: Path) -> dict[str, list[object]]:
    out = path.parent / "out"
    return {
        "evaluate": ["evaluate", "--attack", "prior", "--texts", path],
        "train": ["train", "--attack", "prior", "--corpus", path, "--out", out],
        "fit": ["fit", "--encoder", "tfidf", "--corpus", path, "--out", out],
        "defend": ["defend", "--texts", path, "--out", out],
        "train-private": ["train-private", "--texts", path, "--out", out],
        "memorise": ["memorise", "--canary", "pin {digits:4}", "--corpus", path],
        "privatize": ["privatize", "--eta", "75", "--in", path, "--out", f"{out}{path.suffix}"],
        "tune": ["tune", "--attack", "prior", "--target", path, "--out", out],
        "study": ["study", "encoders", "--target", path, "--out", out],
    }


MISTAKES: dict[str, tuple[str, bytes, list[str], str]] = {
    "column": ("t.csv", b"head,body\na,b\n", ["--text-column", "boddy"], "Did you mean 'body'?"),
    "empty column": (
        "t.csv",
        b"head,body\na,\nb,\n",
        ["--text-column", "body"],
        "column 'body' holds no text",
    ),
    "no texts": ("t.csv", b"a,b\n1,2\n", [], "none of its 2 columns holds texts"),
    "binary": ("t.csv", bytes(range(1, 256)) * 9, [], "is binary"),
    "null byte": ("t.txt", b"a\0b\n", [], "null byte"),
    "archive": ("t.csv", b"PK\x03\x04rest", [], "ZIP"),
    "Parquet": ("t.parquet", b"PAR1rest", [], "is truncated, damaged or not Parquet"),
    "plain text": ("t.txt", b"a text\n", ["--text-column", "body"], "Leave the column out"),
}


@pytest.mark.parametrize("command", READS)
def test_a_mistake_is_told_before_a_model_is_loaded(
    core: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*_: object) -> None:
        raise AssertionError("an encoder was loaded")

    monkeypatch.setattr("leakscope.core.encoders.load_encoder", loaded)
    for name, content, more, said in MISTAKES.values():
        path = tmp_path / name
        path.write_bytes(content)
        assert said in core(*commands(path)[command], *more).refusal()
    assert "exist" in core(*commands(tmp_path / "none.csv")[command]).refusal()


_CHECKED = """
import sys
from leakscope.core.cli import main
status = main(sys.argv[1:])
heavy = {"torch", "transformers", "sklearn", "gensim"} & set(sys.modules)
print(status, sorted(heavy), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("case", ["missing", "column", "parquet"])
def test_nothing_heavy_is_imported_for_a_mistake(command: str, case: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.parquet" if case == "parquet" else "t.csv")
    if case == "column":
        path.write_text("head,body\na,b\n")
    if case == "parquet":
        pd.DataFrame({"head": ["a"], "body": ["b"]}).to_parquet(path)
    more = [] if case == "missing" else ["--text-column", "boddy"]
    done = run_python(_CHECKED, *commands(path)[command], *more, check=True)
    error, told = done.stderr.splitlines()
    assert error.startswith("error: ") and ("boddy" in error or "exist" in error)
    assert told == "2 []", told


def test_the_guess_and_the_encoding_are_told_and_nothing_else_changes(
    core: Any, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a"
    done = core("fit", "--encoder", "tfidf", "--corpus", table, "--out", out, "--json")
    fitted = done.json()
    assert fitted["n_texts"] == 30
    guessed = "using column `body`, which has the longest texts; choose another with --text-column"
    assert guessed in done.err
    assert "news.csv is not UTF-8 and was decoded as cp1252" in done.err
    named = core(
        f"fit --encoder tfidf --corpus {table} --out {tmp_path / 'b'} --text-column body --json"
    )
    assert "using column" not in named.err
    assert named.json()["corpus_hash"] == fitted["corpus_hash"]
    same = core(f"fit --encoder tfidf --corpus {table}#body --out {tmp_path / 'c'} --json")
    assert same.json()["corpus_hash"] == fitted["corpus_hash"]


def test_columns_of_a_corpus_without_any_are_refused(core: Any, tmp_path: Path) -> None:
    given = ["--corpus", "lee", "--text-column", "body", "--out", tmp_path / "out"]
    for command in (["fit", "--encoder", "tfidf"], ["train", "--attack", "prior"]):
        assert "columns are for files" in core(*command, *given).refusal()


def test_a_classification_needs_its_columns(core: Any, table: Path, tmp_path: Path) -> None:
    given = ["study", "classification", "--target", table, "--out", tmp_path / "t.json"]
    assert "no column 'title'" in core(*given).refusal()
    more = ["--title-column", "head", "--label-column", "kid"]
    assert "no column 'kid'. Did you mean 'kind'?" in core(*given, *more).refusal()


def test_privatising_writes_utf8_and_keeps_other_columns(
    core: Any, table: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    given = ["privatize", "--encoder", f"mlm:{tiny_bert}", "--eta", "1e6", "--in", table]
    done = core(*given, "--out", out, "--json")
    assert done.json()["rows"] == 30 and "using column `body`" in done.err
    with table.open(encoding="cp1252", newline="") as file:
        before = list(csv.reader(file))
    with out.open(encoding="utf-8", newline="") as file:
        after = list(csv.reader(file))
    assert [(r[0], r[2]) for r in after] == [(r[0], r[2]) for r in before]
    assert all(new[1] != old[1] for new, old in zip(after[1:], before[1:], strict=True))
    again = core(*given, "--out", tmp_path / "heads.csv", "--text-column", "head")
    assert again.status == 0
    with (tmp_path / "heads.csv").open(encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))
    assert [r[1] for r in kept] == [r[1] for r in before], "typographic quotes come through"
