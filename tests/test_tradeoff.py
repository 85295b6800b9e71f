from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import write_rows
from leakscope.core.studies.registry import run_study
from leakscope.core.studies.tradeoff import study as tradeoff
from leakscope.core.studies.tradeoff import texts as tradeoff_texts
from leakscope.core.studies.tradeoff import use as tradeoff_use
from leakscope.core.studies.tradeoff.defence_grid import GRID, chosen_defences
from leakscope.core.studies.tradeoff.study import TradeoffStudy
from leakscope.core.studies.tradeoff.summary import load_tradeoff, summarise
from leakscope.core.tasks.labelled import LabelledTask, read_labelled
from leakscope.core.tasks.outcomes import Hits, Ranks
from leakscope.core.tasks.pairs import PairTask, read_pairs
from leakscope.core.tasks.searches import LabelSearchTask, SearchTask, read_searches


class ByNumber:
    """Encodes a text that is a number as a vector that says it, or as noise."""

    name, dimension, fingerprint = "number", 3, "n"

    def __init__(self, noise: float = 0.0) -> None:
        self.noise, self.rng = noise, np.random.default_rng(0)

    def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
        vectors = np.array([[np.cos(float(t)), np.sin(float(t)), 0] for t in texts])
        return (vectors + self.noise * self.rng.standard_normal(vectors.shape)).astype(np.float32)


def numbers(n: int) -> tuple[str, ...]:
    return tuple(f"{x:.6f}" for x in np.linspace(0, np.pi, n))


def test_accuracy_is_full_with_the_class_in_the_vector_and_chance_without() -> None:
    texts = numbers(600)
    labels = tuple("left" if float(t) > np.pi / 2 else "right" for t in texts)
    task = LabelledTask("side", texts, labels)
    full = task.score(ByNumber(), n_train=200, n_test=300, seed=0)
    assert full.value > 98 and task.measure == "accuracy" and full.n == 300
    assert full.ci95.low < full.value <= full.ci95.high <= 100
    none = task.score(ByNumber(noise=1e6), n_train=200, n_test=300, seed=0)
    assert none.ci95.low < none.chance + 8 and 48 < none.chance < 60


def test_similarity_is_full_where_cosines_follow_the_scores() -> None:
    texts = numbers(120)
    scores = tuple(-float(t) for t in texts)
    task = PairTask("sts", ("0",) * 120, texts, scores)
    assert task.score(ByNumber(), n_train=0, n_test=100, seed=0).value == pytest.approx(100)
    none = task.score(ByNumber(noise=1e6), n_train=0, n_test=100, seed=0)
    assert none.ci95.low < 0 < none.ci95.high and none.chance == 0


def test_a_constant_vector_has_no_correlation() -> None:
    task = PairTask("sts", ("0",) * 9, ("0",) * 9, tuple(map(float, range(9))))
    assert task.score(ByNumber(), n_train=0, n_test=9, seed=0).value == 0


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs 20 texts of two classes"):
        LabelledTask("t", ("0",) * 5, ("a",) * 5).score(ByNumber(), n_train=10, n_test=10, seed=0)


def test_tasks_are_read_from_files(tmp_path: Path) -> None:
    pd.DataFrame({"text": ["a b", "c d"], "label": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    task = read_labelled("t", tmp_path / "a.parquet")
    assert task.labels == ("0", "1") and task.texts == ("a b", "c d")
    rows = {
        "sentence1": ["a", "b"],
        "sentence2": ["c", "d"],
        "score": [1.0, 5.0],
        "split": ["test", "train"],
        "lang": ["en", "en"],
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "b.parquet")
    assert read_pairs("s", tmp_path / "b.parquet") == PairTask("s", ("a",), ("c",), (1.0,))
    with pytest.raises(InvalidInputError, match="sentence1"):
        read_pairs("s", tmp_path / "a.parquet")


@pytest.fixture
def minister(small_texts: list[str], tmp_path: Path) -> Path:
    """The small texts, and whether they tell of a minister."""
    labels = ["yes" if "minister" in text.lower() else "no" for text in small_texts]
    path = tmp_path / "minister.parquet"
    pd.DataFrame({"text": small_texts, "label": labels}).to_parquet(path)
    return path


@pytest.fixture(autouse=True)
def texts_are_read_anew() -> Iterator[None]:
    """Keep the sentences that one test puts in place of the bundled ones from the next."""
    tradeoff_texts.auxiliary_texts.cache_clear()
    yield
    tradeoff_texts.auxiliary_texts.cache_clear()


SMALL = (("vocabulary_size", 40), ("hidden", 16), ("device", "cpu"))


@pytest.fixture
def study(
    minister: Path, small_texts: list[str], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> TradeoffStudy:
    monkeypatch.setattr(
        tradeoff_texts, "bundled_sentences", lambda: list(dict.fromkeys(small_texts))
    )
    return TradeoffStudy(
        tasks=(f"minister={minister}",),
        encoder=f"mlm:{tiny_bert}",
        defences=("none", "text_to_text:eta=1", "gaussian:sigma=100"),
        seeds=(0,),
        n_train=150,
        n_test=100,
        n_auxiliary=220,
        n_targets=60,
        attack_settings=SMALL,
    )


def scores_of(rows: list[Row]) -> dict[str, dict[str, Score]]:
    """Return all scores of each defence, of both of its cells."""
    assert not [row.error for row in rows if row.error]
    found: dict[str, dict[str, Score]] = {}
    for row in rows:
        found.setdefault(row["defence"], {}).update(row.scores)
    return found


@pytest.mark.slow
def test_defences_cost_utility_and_save_words(study: TradeoffStudy, tmp_path: Path) -> None:
    rows = run_study("tradeoff", study, tmp_path / "cells")
    found = scores_of(rows)
    for attacker in ("tuned", "search"):
        leak = {name: scores[f"token_set_f1: {attacker}"] for name, scores in found.items()}
        chance = leak["none"].chance
        assert leak["none"].value > chance + 10, attacker
        every = found["none"][f"all_words_f1: {attacker}"]
        assert every.chance < every.value < leak["none"].value, "words that it cannot name count"
        for ruinous in ("text_to_text", "gaussian"):
            assert leak[ruinous].value < leak["none"].value - 10
            # What is left is guessing, within the interval or a little better by luck.
            assert leak[ruinous].ci95.low < chance + 3
    useful = {defence: scores["accuracy: minister"].value for defence, scores in found.items()}
    assert useful["none"] > useful["gaussian"]
    change = {defence: scores["change of accuracy: minister"] for defence, scores in found.items()}
    assert change["none"].value == 0 == change["none"].ci95.low
    assert change["gaussian"].value == pytest.approx(useful["gaussian"] - useful["none"])
    assert change["gaussian"].ci95.high < 0
    back = found["text_to_text"]["token_inversion"]
    assert back.n > 400 and back.value < 10
    assert "token_set_f1: tokens" not in found["none"], "no token of it is released"
    assert all(s.ci95.low <= s.value <= s.ci95.high for row in rows for s in row.scores.values())
    summary = summarise(rows)
    assert [p.defence for p in summary.points] == ["none", "text_to_text", "gaussian"]
    strongest = summary.undefended
    assert strongest.leakage.value == max(score.value for score in strongest.leaks.values())
    assert strongest.attacker in ("tuned", "search") and summary.facts["n_auxiliary"] == 220


@pytest.mark.slow
def test_who_knows_the_defence_reads_through_what_hides_nothing(
    study: TradeoffStudy, tmp_path: Path
) -> None:
    # A random rotation of all numbers, and tokens that stay as they are, keep every word.
    given = replace(
        study,
        tasks=(),
        defences=("none", "random_projection:dimension=32", "token_representation:eta=10000"),
    )
    found = scores_of(run_study("tradeoff", given, tmp_path / "cells"))
    plain = found["none"]["token_set_f1: tuned"].value
    turned = found["random_projection"]["token_set_f1: tuned"].value
    assert turned > plain - 4, "trained on vectors that were not projected, it reads nothing"
    assert found["token_representation"]["token_set_f1: tokens"].value > 99


def test_a_cell_changes_with_its_texts_alone_not_with_their_order_of_reading(
    study: TradeoffStudy, minister: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = study.cells()
    assert study.cells() == cells
    monkeypatch.setattr(tradeoff_texts, "bundled_sentences", lambda: ["Another sentence."])
    tradeoff_texts.auxiliary_texts.cache_clear()
    for before, after in zip(cells, study.cells(), strict=True):
        is_same = before["contents"] == after["contents"]
        assert is_same == (before["part"] == "use"), "tasks are the same, the attacker's texts not"
    with pytest.raises(InvalidInputError, match="changed since the study was started"):
        tradeoff.measure(cells[0], minister.parent)


def test_defences_are_named_or_given_at_a_strength() -> None:
    assert tuple(chosen_defences(TradeoffStudy().defences)) == GRID
    one, *rest = chosen_defences(["gaussian:sigma=0.3", "gaussian"])
    assert dict(one.settings) == {"sigma": 0.3}
    assert [dict(spec.settings)["sigma"] for spec in rest] == [0.02, 0.05, 0.1]


def test_two_tasks_of_one_name_are_told(study: TradeoffStudy, minister: Path) -> None:
    with pytest.raises(InvalidInputError, match="Two texts are called 'minister'"):
        replace(study, pairs=(f"minister={minister}",)).cells()


def given_spec(minister: Path, tiny_bert: Path, out: Path) -> list[object]:
    """Write a spec of two defences whose files lie elsewhere, and return the command."""
    spec = {
        "study": "tradeoff",
        "tasks": ["minister=minister.parquet"],
        "encoder": f"mlm:{tiny_bert}",
        "defences": ["none", "gaussian:sigma=100"],
        "seeds": [0],
        "n_train": 150,
        "n_test": 100,
        "n_auxiliary": 60,
        "n_targets": 20,
        "set": {**dict(SMALL), "epochs": 2},
    }
    path = out / "defences.spec.json"
    path.write_text(json.dumps(spec))
    return ["study", "--spec", path, "--files", minister.parent]


@pytest.mark.slow
def test_a_spec_of_two_defences_runs_and_resumes(
    study: TradeoffStudy,
    minister: Path,
    tiny_bert: Path,
    core: Any,
    leakscope_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path_factory.mktemp("out")
    given = given_spec(minister, tiny_bert, out)
    whole = tradeoff.measure
    calls: list[str] = []

    def once(cell: Cell, folder: Path) -> list[Row]:
        calls.append(f"{cell['defence']}, {cell['part']}")
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(cell, folder)

    monkeypatch.setattr(tradeoff, "measure", once)
    with contextlib.suppress(KeyboardInterrupt):
        assert core(*given).status != 0
    assert len(list((leakscope_home / "studies" / "tradeoff" / "cells").glob("*.json"))) == 1
    rows = core(*given, "--json").json()["rows"]
    attacks, uses = ["none, attack", "gaussian, attack"], ["none, use", "gaussian, use"]
    assert calls == [*attacks, attacks[1], *uses]
    assert [f"{row['defence']}, {row['part']}" for row in rows] == [*attacks, *uses]
    assert rows[2]["tasks"] == ["minister=minister.parquet"], "no folder is written"
    again = json.loads((out / "defences.spec.json").read_text())
    assert again["tasks"] == ["minister=minister.parquet"] and again["set"]["epochs"] == 2
    written = load_tradeoff(out / "defences.json")
    assert written.tasks == ["minister"] and [p.label for p in written.points] == ["", "σ 100"]
    assert "| gaussian | σ 100 |" in (out / "defences.md").read_text()
    assert len(pd.read_parquet(out / "defences.parquet")) == 12, "a row a measure"


def test_files_are_checked_before_anything_is_measured(
    minister: Path, core: Any, tmp_path: Path
) -> None:
    given = ["study", "tradeoff", "--out", tmp_path / "t.json", "--files", tmp_path]
    assert "nothing.csv" in core(*given, "--tasks", "a=nothing.csv").refusal()
    pd.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "bare.parquet")
    assert "label" in core(*given, "--tasks", "a=bare.parquet").refusal()
    assert "sentence1" in core(*given, "--pairs", "a=minister.parquet").refusal()
    assert "NAME=FILE" in core(*given, "--tasks", "=minister.parquet").refusal()
    refused = core(*given, "--tasks", "m=minister.parquet", "--attack", "prob_mlc").refusal()
    assert "--attack must be one of" in refused and "probe_mlc" in refused


@pytest.mark.slow
def test_the_small_preset_runs_from_what_is_bundled(core: Any, tmp_path: Path) -> None:
    """As it is, in less than two minutes on two cores."""
    preset = Path(__file__).parents[1] / "docs" / "presets" / "tradeoff-small.spec.json"
    out = tmp_path / "small.json"
    rows = core(f"study --spec {preset} --out {out} --json").json()["rows"]
    assert [row["defence"] for row in rows] == ["none", "truncation"]
    found = load_tradeoff(out)
    assert found.attackers == ["tuned", "search"] and found.tasks == []
    assert found.undefended.leakage.value > found.undefended.leakage.chance
    assert "| truncation | to 96 dimensions |" in out.with_suffix(".md").read_text()


def test_a_text_is_found_again_by_its_twin_alone(tmp_path: Path) -> None:
    rows = {
        "question1": ["0.1", "1.1", "2.1", "0.1"],
        "question2": ["0.11", "1.12", "2.13", "9"],
        "style": ["natural", "natural", "other", "natural"],
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "q.parquet")
    task = read_searches("Q", tmp_path / "q.parquet")
    assert (task.queries, task.stored) == (("0.1", "1.1", "2.1"), ("0.11", "1.12", "2.13"))
    found = task.score(ByNumber(), seed=0)
    assert (found.value, found.n) == (100, 3) and found.chance == pytest.approx(100 / 3)
    few = read_searches("Q", tmp_path / "q.parquet", "style", "natural")
    assert few.queries == ("0.1", "1.1")
    wrong = SearchTask("Q", ("0.1", "1.1"), ("1.12", "0.11"))
    assert wrong.score(ByNumber(), seed=0).value == 0
    with pytest.raises(InvalidInputError, match="needs 9 pairs of texts, and has 3"):
        task.score(ByNumber(), n_test=9, seed=0)
    with pytest.raises(InvalidInputError, match="style is 'none'"):
        read_searches("Q", tmp_path / "q.parquet", "style", "none")


def banking(folder: Path, n: int = 40) -> Path:
    """Write messages of two intents, even and odd numbers of degrees, with an official split."""
    texts = [f"{x:.12f}" for x in np.linspace(0, np.pi, n)]
    labels = ["near" if float(t) < np.pi / 2 else "far" for t in texts]
    splits = ["test" if i % 4 == 0 else "train" for i in range(n)]
    frame = pd.DataFrame({"text": texts, "label": labels, "split": splits})
    frame.to_parquet(folder / "bank.parquet")
    return folder / "bank.parquet"


def test_a_search_by_label_counts_the_label_of_the_nearest_training_text(tmp_path: Path) -> None:
    task = read_searches("bank", banking(tmp_path))
    assert isinstance(task, LabelSearchTask) and task.has_official_split
    known, held = task.labelled.parts(seed=0)
    full = task.score(ByNumber(), seed=0)
    assert (full.value, full.n) == (100, len(held)) and task.measure == "precision@1"
    # A stored text drawn at random has the label of a query in the share of its label.
    labels = np.array(task.labelled.labels)
    by_hand = np.mean([np.mean(labels[known] == labels[i]) for i in held])
    assert full.chance == pytest.approx(100 * by_hand)
    swapped = replace(
        task.labelled,
        labels=tuple(
            ("far" if label == "near" else "near") if i in set(held) else label
            for i, label in enumerate(task.labelled.labels)
        ),
    )
    assert replace(task, labelled=swapped).score(ByNumber(), seed=0).value == 0
    few = task.score(ByNumber(), n_train=20, n_test=6, seed=0)
    assert few.n == 6
    with pytest.raises(InvalidInputError, match=r"chooses pairs of questions\. Give bank=FILE"):
        read_searches("bank", tmp_path / "bank.parquet", "split", "test")


def test_two_tasks_of_the_same_texts_share_one_release(tmp_path: Path) -> None:
    path = banking(tmp_path)
    asked: list[tuple[str, ...]] = []

    class Noisy(ByNumber):
        def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
            asked.append(tuple(texts))
            return super().encode(texts)

    cell = {
        "tasks": [f"B={path}#text"],
        "pairs": [],
        "searches": [f"S={path}"],
        "n_train": 0,
        "n_test": 0,
        "n_searched": 9,
        "seed": 0,
    }
    scores, facts = tradeoff_use.use_scores(cell, ByNumber(), Noisy(noise=0.1))
    assert {"accuracy: B", "precision@1: S", "change of precision@1: S"} <= scores.keys()
    assert len(asked) == 1, "the second task reads what the first released"
    assert facts["label_searches"] == ["S"] and facts["same_texts"] == ["B", "S"]


def test_usefulness_alone_is_measured_where_nobody_attacks(
    study: TradeoffStudy, tmp_path: Path
) -> None:
    cells = replace(study, attackers=("none",)).cells()
    assert {cell["part"] for cell in cells} == {"use"}
    scored = {"accuracy: minister": Score(80.0, Interval(79.0, 81.0), 9, 50.0)}
    rows = [Row(cell, scored, {"machine": "m"}, seconds=60.0) for cell in cells]
    table = tradeoff.markdown(rows)
    assert "| none |  | 80.0 [79.0, 81.0] |" in table and "Words recovered" not in table
    write_rows(tmp_path / "t.json", "tradeoff", rows, table)
    with pytest.raises(ArtifactError, match=r"t\.json is not a result"):
        load_tradeoff(tmp_path / "t.json")
    with pytest.raises(InvalidInputError, match="got 'none'"):
        replace(study, attackers=("none", "tuned")).cells()


def test_an_official_split_is_honoured(tmp_path: Path) -> None:
    rows = {
        "text": [f"text {i}" for i in range(10, 19)],
        "label": [0, 1, 0, 1, 0, 1, None, None, None],
        "split": ["train"] * 4 + ["dev"] * 2 + ["test"] * 3,
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "s.parquet")
    task = read_labelled("s", tmp_path / "s.parquet")
    known, held = task.parts(seed=0)
    assert sorted(known) == [0, 1, 2, 3] and sorted(held) == [4, 5], "the test has no labels"
    assert task.has_official_split and all(
        np.array_equal(np.sort(task.parts(seed=s)[1]), np.sort(held)) for s in range(3)
    )


def test_the_difference_is_taken_text_by_text() -> None:
    right = np.arange(100) % 10 != 0
    worse = right & (np.arange(100) % 20 != 1)
    change = Hits(worse, 50.0).change_from(Hits(right, 50.0))
    assert change.value == pytest.approx(-5) and change.n == 100
    paired = change.ci95.high - change.ci95.low
    alone = Hits(right, 50.0).score().ci95
    assert paired < alone.high - alone.low, "what both get wrong is no doubt of the difference"
    truth = np.arange(50.0)
    same = Ranks(truth, truth).change_from(Ranks(truth, truth))
    assert (same.value, same.ci95.low, same.ci95.high) == (0, 0, 0)
    assert Ranks(-truth, truth).change_from(Ranks(truth, truth)).value == pytest.approx(-200)
    with pytest.raises(InvalidInputError, match="100 and on 99"):
        Hits(right, 50.0).change_from(Hits(right[1:], 50.0))
