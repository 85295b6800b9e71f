"""The study of names on the command line, on a small collection with invented people."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.studies.names import study as names
from leakscope.core.studies.names.tables import load_rows

PEOPLE = ("Ada Quell", "Tom Orrin", "Eve Lind", "Max Tarrow", "Ida Fenn", "Ugo Marl")
DEEDS = (
    "said on Monday that {} would sell the old harbour to the city of Vienna",
    "was told in the market by {} that the winter garden needs another doctor",
    "wrote to the museum because {} had borrowed the silver candle from London",
)


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Ninety documents of two sections, each naming one of six people twice and another once."""
    path = tmp_path / "news.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label_name"])
        for i in range(90):
            name, other = PEOPLE[i % 6], PEOPLE[(i + 1) % 6].split()[1]
            lines = [
                f"Report {i + j}: the teacher {name if j else name.split()[1]} "
                + DEEDS[(i + j) % 3].format(other)
                + f" with {i * 3 + j} boats."
                for j in range(3)
            ]
            writer.writerow([" ".join(lines), ("port", "town")[i % 2]])
    return path


def given(news: Path, out: Path, *more: object) -> list[object]:
    return [
        *shlex.split(
            f"study names --target {news} --other {news} --encoders hashing "
            f"--attacks probe --domains in --n-targets 30 --near-duplicates 1 --out {out}"
        ),
        *more,
    ]


def test_names_are_recovered_from_a_bag_of_words_and_nobody_is_named(
    core: Any, news: Path, tmp_path: Path, leakscope_home: Path
) -> None:
    people = tmp_path / "people.txt"
    people.write_text("\n".join(PEOPLE), encoding="utf-8")
    out = tmp_path / "names.json"
    rows = core(*given(news, out, "--names", people, "--sizes", "2", "3", "--json")).json()["rows"]
    matrices = [row for row in rows if row["kind"] == "substitution"]
    assert [(row["n_names"], row["n_added"]) for row in matrices] == [
        (2, 0),
        (3, 0),
        (2, 4000),
        (3, 4000),
    ]
    first = matrices[0]
    assert first["diagonal"]["value"] == 100 and first["wrongly_said"]["value"] < 5
    assert first["prior"]["value"] in (0, 100) and first["people"] == ["name 1", "name 2"]
    assert first["n_sentences"] == [15, 15] or min(first["n_sentences"]) >= 3
    assert all(len(line) == 2 for line in first["found"]) and min(first["training"]) > 20
    assert {"same_section", "other_section"} <= first.keys()
    probes = [row for row in rows if row["kind"] == "probing"]
    assert [row["knows"] for row in probes[:3]] == ["sentence", "recovered", "alone"]
    assert probes[0]["hits_1"]["value"] == 100 and probes[0]["n_candidates"] == 3
    written = out.read_text() + out.with_suffix(".md").read_text()
    assert not any(part in written for name in PEOPLE for part in name.split())
    assert "How often the surname is recovered" in written
    assert len(load_rows(out)) == len(rows)
    cells = list((leakscope_home / "studies" / "names" / "cells").glob("*.json"))
    assert len(cells) == 6


def test_names_are_found_and_written_and_no_training_text_holds_one_that_is_probed_for(
    core: Any, news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught, probed = list[str](), list[str]()
    fit, probe = names._fitted_attack, names.probing_rows

    def fitted(cell: Any, encoder: Any, texts: Sequence[str], folder: Path) -> Any:
        taught.extend(texts)
        return fit(cell, encoder, texts, folder)

    def rows(attack: Any, encoder: Any, targets: Any, seen: Any, unseen: Any, cell: Any) -> Any:
        probed.extend(name.surname for name in unseen)
        return probe(attack, encoder, targets, seen, unseen, cell)

    monkeypatch.setattr(names, "_fitted_attack", fitted)
    monkeypatch.setattr(names, "probing_rows", rows)
    out = tmp_path / "names.json"
    found = core(*given(news, out, "--sizes", "2", "--no-anonymous", "--json")).json()["rows"]
    assert set(found[0]["people"]) <= set(PEOPLE)
    assert json.loads(out.read_text())["study"] == "names"
    assert taught and probed
    assert not any(surname in text for surname in probed for text in taught)


def test_too_few_names_are_told(core: Any, news: Path, tmp_path: Path) -> None:
    out = tmp_path / "names.json"
    outcome = core(*given(news, out, "--sizes", "2", "--names", "Zoe Nobody", "Ada Quell"))
    assert outcome.status == 2 and "4 of 4 cells failed" in outcome.err
    assert "Nobody" not in outcome.out and not out.exists()
    outcome = core(*given(news, out, "--names", "Ada Quell", "Ida Quell"))
    assert outcome.status == 2
