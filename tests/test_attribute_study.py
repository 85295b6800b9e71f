"""The study and the command of attributes: cells, rows, tables, and what bad input is told."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.attributes.answers import Answers, difference
from leakscope.core.attacks.attributes.draw import Draw
from leakscope.core.attacks.attributes.experiment import Case, CaseResult
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes import study as attributes
from leakscope.core.studies.attributes.rows import with_answers, with_gains
from leakscope.core.studies.attributes.study import AttributeStudy, gain_over, markdown
from leakscope.core.studies.registry import run_study

AUTHORS = ("Ána", "Bob", "Çelik", "山田")
WORDS = ("river", "doctor", "garden", "winter")


def write(path: Path, rows: Sequence[Sequence[object]], head: Sequence[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def lines(
    n: int = 60, authors: Sequence[str] = AUTHORS, n_per_book: int = 20
) -> list[tuple[str, str, str]]:
    """Return n texts of each of four authors, each author with a word of their own."""
    return [
        (
            f"The {WORDS[a]} from {i * 7 + a} money and letter {i * 3}",
            authors[a],
            f"{a}/{i // n_per_book}",
        )
        for a in range(4)
        for i in range(n)
    ]


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write(tmp_path / "books.csv", lines(), ("text", "author", "book_id"))


def study(books: Path, **more: Any) -> AttributeStudy:
    given = {
        "target": str(books),
        "group_column": "book_id",
        "other": str(books),
        "encoders": ("hashing",),
        "attribute_attacks": ("majority", "words", "linear"),
        "labels": (2, 4),
        "sizes": (3, 6),
        "n_targets": 8,
        "splits": ("group",),
        "seeds": (0, 1),
        "run_length": 10,
    }
    return AttributeStudy(**(given | more))


# The study


def test_cells_of_attacks_that_learn_slowly_are_small_and_of_others_whole(books: Path) -> None:
    cells = study(books).cells()
    by_attack = {
        name: [c for c in cells if c["attribute_attack"] == name]
        for name in ("majority", "words", "linear")
    }
    assert [len(found) for found in by_attack.values()] == [1, 2 * 2 * 2, 1]
    assert by_attack["linear"][0]["seeds"] == [0, 1]
    assert {c["n_known"] for c in cells} == {6}, "every size is of the same draw"
    assert "encoder" not in by_attack["words"][0]


def test_an_attack_that_reads_no_sparse_vectors_has_no_cell_of_them(books: Path) -> None:
    cells = study(books, attribute_attacks=("discriminant",), encoders=("hashing", "minilm"))
    assert [cell["encoder"] for cell in cells.cells()] == ["minilm"]


def test_every_size_seed_and_control_has_a_row(books: Path, tmp_path: Path) -> None:
    rows = run_study("attributes", study(books), tmp_path)
    assert [row.error for row in rows if row.error] == []
    linear = [row for row in rows if row["attribute_attack"] == "linear"]
    told = {(r["seed"], r["n_labels"], r["n_per_label"], r["is_shuffled"]) for r in linear}
    sizes = {(seed, n, size, False) for seed in (0, 1) for n in (2, 4) for size in (3, 6)}
    assert told == sizes | {(seed, n, 6, True) for seed in (0, 1) for n in (2, 4)}
    for row in rows:
        score = row.scores["top1"]
        assert 0 <= score.ci95.low <= score.value <= score.ci95.high <= 1
        assert "top5" not in row.scores, "among five of four labels each is right"
        assert score.n == row["n"] <= 8 * row["n_labels"]
    right = {
        r["attribute_attack"]: r.scores["top1"].value
        for r in rows
        if (r["n_labels"], r["n_per_label"], r["is_shuffled"]) == (4, 6, False)
    }
    assert right["words"] > 0.9 and right["linear"] > right["majority"]
    mixed = [row for row in linear if "mixed_labels" in row.facts]
    assert [(r["seed"], r["n_labels"], r["n_per_label"]) for r in mixed] == [(0, 4, 6)]
    assert set(mixed[0]["mixed_labels"]) == set(AUTHORS)


def test_a_contrast_tells_what_other_groups_lose(books: Path, tmp_path: Path) -> None:
    rows = run_study(
        "attributes",
        study(books, splits=("contrast",), attribute_attacks=("linear",), sizes=(4,), labels=(4,)),
        tmp_path,
    )
    plain = [row for row in rows if not row["is_shuffled"]]
    assert [row["labelled_from"] for row in plain] == ["same_group", "group"] * 2
    assert "top1_lost" in plain[1].scores and "top1_lost" not in plain[0].scores
    assert plain[0]["n"] == plain[1]["n"]
    lost = plain[0].scores["top1"].value - plain[1].scores["top1"].value
    assert plain[1].scores["top1_lost"].value == pytest.approx(lost)
    table = markdown(rows)
    assert "when labelled texts come from other groups" in table and "shuffled labels" in table


def test_dense_vectors_are_told_by_their_parts(
    books: Path, tmp_path: Path, tiny_bert: Path
) -> None:
    rows = run_study(
        "attributes",
        study(
            books,
            encoders=(f"mlm:{tiny_bert}",),
            attribute_attacks=("linear", "discriminant"),
            n_targets=40,
            seeds=(0,),
        ),
        tmp_path,
    )
    assert [row.error for row in rows if row.error] == []
    told = [row for row in rows if "topic_r2" in row.facts]
    assert [(r["attribute_attack"], r["n_labels"], r["n_per_label"]) for r in told] == [
        ("linear", 4, 6),
        ("discriminant", 4, 6),
    ]
    parts = {f"top{k}_{part}" for k in (1,) for part in ("topic", "rest")}
    assert all(parts <= row.scores.keys() and row["topic_r2"] < 1 for row in told)
    assert all(0 <= row.scores[name].value <= 1 for row in told for name in parts)
    assert "from the part of the vector that content words predict" in markdown(rows)
    for row in told:
        apart = row.scores["top1_topic"].value - row.scores["top1_rest"].value
        assert row.scores["top1_topic_gain"].value == pytest.approx(apart)
    assert "minus rest, on the same targets" in markdown(rows)


def kept(attack: str, ranks: Sequence[int], *, seed: int = 0, **more: Any) -> Row:
    """Return a row of four targets of three books, with at which place each label came."""
    drawn = Draw(("Ana", "Bea"), {}, np.arange(4), np.array([0, 0, 1, 1]), tuple("aabc"))
    facts = {
        "labelled_from": "run",
        "n_labels": 6,
        "n_per_label": 10,
        "seed": seed,
        "is_shuffled": False,
    }
    facts |= {name: more.pop(name) for name in ("n_per_label", "is_shuffled") if name in more}
    drawn = replace(drawn, **{"targets": more.pop("targets", drawn.targets)})
    answers = Answers(np.array(ranks), drawn.truth, drawn.groups)
    scores = {f"top{k}": answers.top(k) for k in (1, 5)}
    cell = {"split": "run", "attribute_attack": attack} | more
    case = Case(seed, "run", 6, 10)
    return with_answers(Row(cell, scores, facts), CaseResult(case, answers, answers.truth), drawn)


def test_attacks_are_held_against_the_reference_on_the_same_targets() -> None:
    rows = [
        kept("textcnn", [0, 9, 9, 9]),
        kept("linear", [0, 3, 9, 9], encoder="minilm"),
        kept("textcnn", [0, 9, 9, 9], seed=1),
        kept("linear", [0, 0, 0, 3], encoder="minilm", seed=1),
        kept("linear", [0, 0, 0, 0], encoder="minilm", is_shuffled=True),
        kept("words", [0, 0, 0, 0], n_per_label=20),
        kept("words", [0, 0, 0, 0], targets=np.arange(4) + 1),
    ]
    found = with_gains(rows, "textcnn", "minilm")
    assert not any("answers" in row.facts for row in found)
    assert [sorted(row.scores.keys() - {"top1", "top5"}) for row in found] == [
        [],
        told := ["top1_gain", "top5_gain", "top5_ratio"],
        [],
        told,
        [],
        [],
        [],
    ], "itself, the control, another size and other targets are held against nothing"
    assert [found[i].scores["top1_gain"].value for i in (1, 3)] == [0.0, 0.5]
    assert [found[i].scores["top5_gain"].value for i in (1, 3)] == [0.25, 0.75]
    assert [found[i].scores["top5_ratio"].value for i in (1, 3)] == [2.0, 4.0]
    same = difference(
        Answers(np.array([0, 3, 9, 9]), np.array([0, 0, 1, 1]), tuple("aabc")),
        Answers(np.array([0, 9, 9, 9]), np.array([0, 0, 1, 1]), tuple("aabc")),
        5,
    )
    assert found[1].scores["top5_gain"] == same, "paired, by the groups that were kept"
    ((key, times),) = gain_over(found)
    assert key[2:4] == ("linear", "minilm") and times.value == pytest.approx(3.0)
    table = markdown(found)
    assert "3.00 [" in table and "× the top-5 accuracy of TextCNN on the same targets" in table
    assert "| textcnn |" in table and "top-5 gain" in table
    assert "top-5 more" not in markdown(with_gains(rows, "majority", ""))
    assert "failed: no disk" in markdown([*found, Row(rows[0].cell, error="no disk")])


def test_where_an_encoder_is_read_the_reference_is_that_of_the_first() -> None:
    rows = [
        kept("linear", [0, 9, 9, 9], encoder="tfidf"),
        kept("linear", [0, 0, 9, 9], encoder="minilm"),
        kept("words", [0, 0, 9, 9]),
    ]
    one, reference, words = with_gains(rows, "linear", "minilm")
    assert (one.scores["top1_gain"].value, words.scores["top1_gain"].value) == (-0.25, 0.0)
    assert "top1_gain" not in reference.scores and one["reference"] == ["linear", "minilm"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.01, 0.2, "more"), (-0.2, -0.01, "less"), (-0.1, 0.2, "not significantly different")],
)
def test_a_table_says_more_or_less_by_the_paired_interval(
    low: float, high: float, said: str
) -> None:
    (row,) = with_gains([kept("words", [0, 0, 9, 9])], "linear", "minilm")
    gain = Score((low + high) / 2, Interval(low, high), 4, 0.0)
    times = Score(1 + gain.value, Interval(1 + low, 1 + high), 4, 1.0)
    row = replace(
        row,
        scores=row.scores | {"top1_gain": gain, "top5_gain": gain, "top5_ratio": times},
        facts=row.facts | {"reference": ["textcnn", ""]},
    )
    assert markdown([row]).count(f"| {said}") == 2
    probe = replace(row, cell=row.cell | {"encoder": "minilm"})
    assert f"on the same targets: {said}" in markdown([probe])


def test_studies_that_share_what_is_drawn_share_their_targets(tmp_path: Path) -> None:
    rows = [  # Book for book and author for author the same pages: what is labelled is no target.
        (f"It was page {i} of {i * 7} and {i * 11} when {i * 13} came to {i * 17}", author, book)
        for author in AUTHORS
        for book in (f"{author}/0", f"{author}/1")
        for i in range(20)
    ]
    books = write(tmp_path / "same.csv", rows, ("text", "author", "book_id"))
    wide = study(books, attribute_attacks=("majority", "words"), seeds=(0,), n_targets=20)
    small = study(
        books,
        attribute_attacks=("majority",),
        seeds=(0,),
        labels=(2,),
        sizes=(3,),
        n_known=6,
        n_drawn=4,
        n_targets=20,
    )

    def of(asked: AttributeStudy) -> set[str]:
        rows = [row for cell in asked.cells() for row in attributes.measure(cell, tmp_path)]
        assert all("answers" in row.facts for row in rows)
        return {row["answers"]["targets"] for row in rows if row["n_labels"] == 2}

    assert len(of(wide)) == 1, "each attack and each size of a study"
    assert of(wide) == of(small)
    assert of(wide) not in (of(replace(small, n_known=0)), of(replace(small, n_drawn=0)))
    with pytest.raises(InvalidInputError, match="n_known must be at least 6"):
        study(books, n_known=5)
    with pytest.raises(InvalidInputError, match="n_drawn must be at least 4"):
        study(books, n_drawn=3)


@pytest.mark.slow
def test_what_learns_has_a_control_at_the_largest_size_that_is_at_guessing(
    books: Path, tmp_path: Path
) -> None:
    rows = run_study("attributes", study(books, n_targets=20), tmp_path)
    controls = [row for row in rows if row["is_shuffled"]]
    told = sorted(
        (r["attribute_attack"], r["n_labels"], r["n_per_label"], r["seed"]) for r in controls
    )
    assert told == sorted(
        (attack, n, 6, seed) for attack in ("words", "linear") for n in (2, 4) for seed in (0, 1)
    )
    words = [row for row in rows if row["attribute_attack"] == "words" and row["n_labels"] == 4]
    right = {
        shuffled: np.mean(
            [
                r.scores["top1"].value
                for r in words
                if r["is_shuffled"] == shuffled and r["n_per_label"] == 6
            ]
        )
        for shuffled in (False, True)
    }
    assert right[False] > 0.9 and right[True] < 0.6
    gains = [row.scores["top1_gain"] for row in words if not row["is_shuffled"]]
    assert len(gains) == 4, "each is held against the probe"
    cells = study(books, attribute_attacks=("textcnn",)).cells()
    assert [cell["controls"] for cell in cells if cell["labels"] == [4]] == [[], [], [6], [6]]


# The command


def asked(core: Any, path: Path, bert: Path, *more: object) -> Any:
    return core(f"attributes --encoder mlm:{bert} --backend torch --texts {path}", *more)


@pytest.mark.slow
def test_the_command_prints_the_documented_json(core: Any, books: Path, tiny_bert: Path) -> None:
    given = [
        "--label-column",
        "author",
        "--group-column",
        "book_id",
        "--n-per-label",
        10,
        "--seed",
        0,
    ]
    outcome = asked(core, books, tiny_bert, *given, "--json")
    told = outcome.json()
    assert (told["n_labels"], told["n_per_label"], told["split"]) == (4, 10, "group")
    for record in (told, *(told[name] for name in ("majority", "words", "textcnn", "shuffled"))):
        low, high = record["top1_ci95"]
        assert 0 <= low <= record["top1"] <= high <= 1 and "top5" not in record
        assert record["chance"] == pytest.approx(0.25, abs=0.1) and record["n"] == told["n"]
    assert told["words"]["top1"] > 0.9 and told["n_groups"] <= 8
    assert asked(core, books, tiny_bert, *given, "--json").json() == told, "a seed repeats it"
    shown = asked(core, books, tiny_bert, *given)
    assert "4 labels, 10 labelled texts of each" in shown.out and "guessing" in shown.out


def test_texts_without_groups_stand_for_themselves_and_it_says_so(
    core: Any, books: Path, tiny_bert: Path
) -> None:
    outcome = asked(core, books, tiny_bert, "--n-labels", 3, "--json")
    assert outcome.json()["split"] == "row" and outcome.json()["n_labels"] == 3
    assert "name the column of documents with --group-column" in outcome.err


def test_rows_without_a_label_are_left_out_and_told(
    core: Any, tmp_path: Path, tiny_bert: Path
) -> None:
    import pandas as pd

    table = pd.DataFrame(lines(), columns=["text", "author", "book_id"])
    table.loc[::9, "author"] = float("nan")
    table.to_parquet(tmp_path / "books.parquet")
    outcome = asked(core, tmp_path / "books.parquet", tiny_bert, "--json")
    assert outcome.json()["n_unlabelled"] == 27 and "27 texts have no label" in outcome.err
