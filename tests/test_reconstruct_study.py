"""The study of sentences read back: what it refuses, and what it measures behind defences."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from leakscope.core.attacks.inversion.reconstruct.baselines import (
    most_typical_sentence,
    sentences_between,
)
from leakscope.core.attacks.inversion.reconstruct.scores import (
    MEASURES,
    rouge_l,
    score_sentences,
    word_tokens,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.figures.reconstruct import reconstruct_figure
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.inversion import reconstruct
from leakscope.core.studies.inversion.reconstruct import (
    ReconstructStudy,
    draw_targets,
    measure,
    uses,
)
from leakscope.core.studies.inversion.reconstruct_tables import READERS, markdown, pooled_score
from leakscope.core.studies.runner import run_cells

CHAIN = "truncation:dimension=96+int8"
SENTENCES = [
    f"{who} {did} near the {where}."
    for who, did in (
        ("A postman", "lost his bag"),
        ("The nurse", "found a letter"),
        ("My uncle", "sold his violin"),
        ("Two farmers", "watched the rain"),
        ("A judge", "bought old maps"),
    )
    for where in ("harbour", "station", "museum", "bakery", "forest", "castle", "bridge", "school")
]


@pytest.fixture
def target(tmp_path: Path, minilm: TransformerEncoder, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(reconstruct, "_encoder", lambda precision: minilm)
    monkeypatch.setattr(reconstruct, "_N_PAIRS", 60)
    path = tmp_path / "target.txt"
    path.write_text("\n".join(SENTENCES), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_each_reader_answers_as_they_are_and_behind_a_chain(target: str, tmp_path: Path) -> None:
    study = ReconstructStudy(
        target=target, n=2, near=1.0, lengths=("4-8",), budgets=(0, 40), defences=("none", CHAIN)
    )
    rows = run_cells(study.cells(), measure, tmp_path)
    assert [row["guarded_by"] for row in rows] == ["none"] * 5 + [CHAIN] * 5
    assert {row["reader"] for row in rows} == set(READERS)
    for row in rows:
        assert row["n"] == 2 and row.scores["rouge_l"].n == 2
    sure = [row for row in rows if "calibration_words" in row.scores]
    told = [(r["guarded_by"], r["reader"], r["budget"]) for r in sure]
    assert told == [("none", "reconstruct", n) for n in (0, 40)], "behind a defence nothing is"
    assert sure[0].scores["calibration_sentences"].n == 2
    assert sure[0].scores["told_words"].value != sure[1].scores["told_words"].value
    assert "| none | 4-8 | 40 | sentences | 2 |" in markdown(rows)
    assert {row["words_outside"] for row in rows} == {0.0}
    assert all(
        row.scores["rouge_l_inside"] == replace(row.scores["rouge_l"], chance=math.nan)
        for row in rows
        if row["reader"] == "reconstruct"
    ), "of all words the attack can write each"
    read = {(r["guarded_by"], r["reader"], r["budget"]): r.scores["rouge_l"].value for r in rows}
    assert read["none", "reconstruct", 40] > read["none", "blind", rows[0]["budget"]]
    cosine = {
        r["budget"]: r.scores["cosine"].value
        for r in rows
        if r["guarded_by"] == "none" and r["reader"] == "reconstruct"
    }
    assert cosine[40] > 30 and math.isnan(cosine[0]), "of no query nothing is known"
    for row in (r for r in rows if r["reader"] == "reconstruct" and r["budget"]):
        found = row.scores["cosine"]
        assert found.ci95.low <= found.value <= found.ci95.high and found.n == 2
        assert 0 < row["n_asked"] <= 40
    assert CHAIN in markdown(rows)


def test_short_sentences_of_every_document_are_attacked(target: str) -> None:
    short = [f"{who} left early." for who in ("Anna", "Boris", "Chloe", "Dmitri", "Elena", "Farid")]
    Path(target).write_text("\n".join([*SENTENCES, *short]), encoding="utf-8")
    study = ReconstructStudy(target=target, n=100, near=1.0, lengths=("3-4", "4-8"))
    few, all_of_them = (
        draw_targets(cell, reconstruct._encoder("float32")).sentences.texts
        for cell in study.cells()
    )
    assert sorted(few) == sorted(short)
    assert sorted(all_of_them) == sorted(SENTENCES)
    (none,) = ReconstructStudy(target=target, lengths=("20-30",)).cells()
    with pytest.raises(InvalidInputError, match="20 to 30 words"):
        draw_targets(none, reconstruct._encoder("float32"))


def test_intervals_are_of_what_sentences_come_from(target: str, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    rows = [f'"{text}",{i // 8}' for i, text in enumerate(SENTENCES)]
    path.write_text("\n".join(["text,review", *rows]), encoding="utf-8")
    given = {"target": f"{path}#text", "n": 100, "near": 1.0, "lengths": ("4-8",)}
    for column, n_groups in (("review", 5), ("", None)):
        study = ReconstructStudy(**given, group_column=column)
        found = draw_targets(study.cells()[0], reconstruct._encoder("float32"))
        assert len(found.sentences.texts) == len(SENTENCES)
        documents = found.documents
        assert (None if documents is None else len(set(documents))) == n_groups
        assert study.columns == ((column,) if column else ())


@pytest.mark.slow
def test_without_the_vector_one_sentence_is_answered_for_all() -> None:
    short = sentences_between(4, 8, 500)
    assert {len(word_tokens(text)) for text in short} == {4, 5, 6, 7, 8}
    best = most_typical_sentence(tuple(short))
    others = [text for text in short[400:500] if text != best]

    def near(guess: str) -> float:
        return fmean(rouge_l(text, guess) for text in others)

    assert near(best) > fmean(near(guess) for guess in short[:40])
    with pytest.raises(InvalidInputError, match="60 to 70 words"):
        sentences_between(60, 70, 5)
    with pytest.raises(InvalidInputError, match="at least one sentence"):
        most_typical_sentence(())


def row_of(length: str, reader: str, budget: int, value: float, half: float, n: int) -> Row:
    """Return a row in which every measure and the cosine have the same score."""
    score = Score(value, Interval(value - half, value + half), n)
    cell = {"guarded_by": "none", "length": length}
    facts = {"reader": reader, "budget": budget, "n": n}
    return Row(cell, dict.fromkeys((*MEASURES, "cosine"), score), facts)


def test_lengths_are_told_together_up_to_16_and_up_to_32_words() -> None:
    short, middle, long = (
        row_of(length, "reconstruct", 100, value, 2, n)
        for length, n, value in (("4-8", 10, 80.0), ("9-16", 10, 40.0), ("17-32", 20, 20.0))
    )
    told = markdown([short, middle, long])
    assert "| up to 16, pooled | 20 | **60.0** [58.6, 61.4] |" in told
    assert "| up to 32, pooled | 40 | **40.0** [38.8, 41.2] |" in told
    assert told.count("pooled") == 2
    assert markdown([short, middle]).count("pooled") == 1


def test_its_key_names_every_stage_of_a_chain(target: str) -> None:
    (cell,) = ReconstructStudy(target=target, lengths=("4-8",), defences=(CHAIN,)).cells()
    assert uses(cell) == {"defence": "truncation+int8"}


def test_intervals_stay_where_scores_can_be() -> None:
    true = ["a b c d"] * 6
    read = score_sentences(true, ["a b c d", "x", "y", "z", "v", "w"], groups=[0, 0, 0, 1, 1, 1])
    assert read["exact"].value == pytest.approx(100 / 6)
    assert read["exact"].ci95.low == 0.0 and read["exact"].ci95.high <= 100.0
    tau = read["kendall_tau"]
    assert tau.n == 1 and not tau.has_interval, "of one sentence alone"
    rows = [
        Row({}, {"exact": Score(0.0, Interval(0.0, 0.0), 30, 0.0)}),
        Row({}, {"exact": Score(4.0, Interval(0.0, 10.0), 30, 0.0)}),
    ]
    found = pooled_score(rows, "exact")
    assert (found.value, found.n) == (2.0, 60)
    assert (found.ci95.low, found.ci95.high) == pytest.approx((0.0, 5.0))
    both = pooled_score([rows[1], rows[1]], "exact")  # half of each, added as independent errors
    assert both.ci95.low == pytest.approx(4 - 2 * math.sqrt(2))
    assert both.ci95.high == pytest.approx(4 + 3 * math.sqrt(2))


@pytest.mark.parametrize("length", ["", "8", "8-4", "a-b", "-3-4"])
def test_a_length_that_is_no_range_is_refused_before_anything_is_measured(
    target: str, length: str
) -> None:
    with pytest.raises(InvalidInputError, match="FROM-TO"):
        ReconstructStudy(target=target, lengths=(length,)).cells()


def test_the_figure_of_defences_has_a_point_for_each_strength_and_the_floor() -> None:
    rows = [
        replace(row_of("4-8", reader, budget, value, 5, 10), cell=behind | {"length": "4-8"})
        for defence, high in (("none", 60), ("truncation:dimension=96", 40), ("binary", 30))
        for behind in [{"guarded_by": defence}]
        for reader, budget, value in (("blind", 0, 8), ("bag", 99, 20), ("reconstruct", 500, high))
    ]
    blind, read = reconstruct_figure(rows).data
    assert (list(read.x), read.mode) == ([60, 40, 30], "markers")
    assert list(read.y) == ["No defence", "Truncation, to 96 dimensions", "Binary quantising"]
    assert list(read.error_x.array) == [5, 5, 5] and read.name == "4-8 words, 500 queries"
    assert (list(blind.x), blind.line.dash) == ([8, 8, 8], "dot")
    alone = reconstruct_figure([r for r in rows if r["guarded_by"] == "none"])
    assert [list(line.y) for line in alone.data] == [[60]], "of one defence: by the queries"
