"""Who knows sentences, or names, by heart reads no more in the study of names than who guesses."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memorising_models import (
    GuessingMemorisingAttack,
    MemorisingWordEncoder,
    entry_of,
    is_at_chance,
)

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies import decontaminate, domains
from leakscope.core.studies.names import study as names
from leakscope.core.studies.names.study import NameStudy

PEOPLE = tuple(f"{letter}an {letter}orrick" for letter in "BCDFGHJKLMNPRSTV")
N_DOCUMENTS, N_SEEN = 90, 3


@pytest.fixture
def news(tmp_path: Path, small_texts: list[str]) -> Path:
    """Ninety documents of three sentences that name somebody; each last one stands in the next."""
    path = tmp_path / "news.csv"
    told = [f"{text[:-1]} for {PEOPLE[i % 16]}." for i, text in enumerate(small_texts)]
    own, shared = told[: 2 * N_DOCUMENTS], told[2 * N_DOCUMENTS : 3 * N_DOCUMENTS]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        for i in range(N_DOCUMENTS):
            writer.writerow([" ".join([*own[2 * i : 2 * i + 2], shared[i], shared[i - 1]])])
    return path


@pytest.fixture
def measured(
    news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[Row]]:
    """Measure the study with an attack that knows its texts by heart, an encoder its words."""

    def opened(
        name: str, fit_on: Any, texts: Any, folder: Path, *, contents: Any
    ) -> MemorisingWordEncoder:
        return MemorisingWordEncoder(texts())

    monkeypatch.setattr(names, "open_encoder", opened)
    monkeypatch.setitem(INVERSION_ATTACKS, "memory", entry_of("memory", GuessingMemorisingAttack))
    domains.open_domain.cache_clear()
    study = NameStudy(
        target=str(news),
        other=str(news),
        names=PEOPLE,
        sizes=(N_SEEN,),
        name_sentences=(0,),
        attacks=("memory",),
        domains=("in",),
    )
    return lambda: [row for cell in study.cells() for row in names.measure(cell, tmp_path)]


def matrix(rows: Sequence[Row]) -> Row:
    (row,) = (row for row in rows if row["kind"] == "substitution")
    return row


def probes(rows: Sequence[Row]) -> list[Score]:
    """Return how often each probe finds the name, beside one of those that it may be."""
    found = [row for row in rows if row["kind"] == "probing"]
    assert {row["n_candidates"] for row in found} == {N_SEEN}
    return [replace(row.scores["hits_1"], chance=100 / N_SEEN) for row in found]


def test_who_knows_by_heart_reads_no_name(measured: Callable[[], list[Row]]) -> None:
    rows = measured()
    row = matrix(rows)
    assert row.scores["diagonal"].value == row.scores["prior"].value < 50
    assert row.facts["n_near_duplicates"] > 10, "there was what could have leaked"
    assert len(probes(rows)) == 3 and all(map(is_at_chance, probes(rows)))


def test_sentences_on_both_sides_would_be_found(
    measured: Callable[[], list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decontaminate, "near_duplicates", lambda texts, known, near: frozenset())
    row = matrix(measured())
    assert row.scores["diagonal"].value > row.scores["prior"].value + 20


def test_names_that_are_probed_for_and_trained_on_would_be_found(
    measured: Callable[[], list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "without_names", lambda texts, people: list(texts))
    assert min(score.value for score in probes(measured())) > 75
