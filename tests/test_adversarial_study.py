"""The study of adversarial training: sides apart, rows of all times, what stops and resumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL_WORDS
from tradeoff_scene import write_files

from leakscope.core.attacks.attributes.examples import Examples, read_examples
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.registry import run_study
from leakscope.core.studies.tradeoff import trained_defences
from leakscope.core.studies.training import adversarial
from leakscope.core.studies.training.adversarial import AdversarialStudy, mean_change
from leakscope.core.studies.training.adversarial_attack import ATTRIBUTE_ATTACKERS, attribute_scores
from leakscope.core.studies.training.adversarial_tables import (
    markdown,
    settings_from_rows,
    verdicts,
)
from leakscope.core.studies.training.adversarial_texts import Sizes, part_texts
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.tasks.logistic import LogisticTask, pair_features, read_logistic


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_files(tmp_path_factory.mktemp("books"), n_task=120)


def study(files: tuple[Path, Path], encoder: str, **more: Any) -> AdversarialStudy:
    given: dict[str, Any] = {
        "target": f"{files[0]}#text",
        "group_column": "book",
        "tasks": (f"first={files[1]}",),
        "encoders": (encoder,),
        "n_labels": 2,
        "n_defence": 120,
        "n_known": 150,
        "n_targets": 40,
        "word_weights": (0.0, 1.0),
        "attribute_weights": (0.0, 1.0),
        "dimension": 16,
        "epochs": 2,
        "n_negatives": 15,
        "adapter_epochs": 2,
        "msp_epochs": 1,
        "word_attackers": ("probe_mlc",),
        "near": 1.0,
        "seeds": (0,),
    }
    return AdversarialStudy(**(given | more))


def examples_of(files: tuple[Path, Path]) -> Examples:
    return read_examples(files[0], label_column="author", group_column="book", text_column="text")


# Whose texts are whose


def test_the_attacker_s_texts_are_new_and_targets_nobody_s(files: tuple[Path, Path]) -> None:
    examples = examples_of(files)
    sides = part_texts(examples, Sizes(2, 120, 150, 40), 0, near=1.0)
    own = {text: i for i, text in enumerate(examples.texts)}
    parts = (sides.defence, sides.known, sides.targets)
    assert [len(part) for part in parts] == [120, 150, 40]
    assert len(set().union(*parts)) == 310, "no text is on two sides"
    for one, two in sides.pairs:
        assert own[two] == own[one] + 1 and {one, two} <= {*sides.defence}
        assert examples.groups and examples.groups[own[one]] == examples.groups[own[two]]
    assert sides.pair_labels == tuple(examples.labels[own[b]] for _, b in sides.pairs)
    for part, labels in ((sides.known, sides.known_labels), (sides.targets, sides.target_labels)):
        assert labels == tuple(examples.labels[own[text]] for text in part)
    assert {*sides.known_labels[-10:]} == {"a0", "a1"}, "who sets some aside has every label"
    other = part_texts(examples, Sizes(2, 120, 150, 40), 1, near=1.0)
    assert set(other.defence) != set(sides.defence)


def test_a_target_that_repeats_a_text_of_the_defence_is_dropped() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(SMALL_WORDS, 6)) + f" n{i} m{i}" for i in range(400)]
    labels = [f"a{i // 200}" for i in range(400)]
    clean = part_texts(Examples("e", tuple(texts), tuple(labels)), Sizes(2, 80, 80, 40), 0)
    planted = dict.fromkeys(clean.targets[:3], 0)
    known = iter(clean.defence)
    again = [f"{next(known)} too" if text in planted else text for text in texts]
    found = part_texts(Examples("e", tuple(again), tuple(labels)), Sizes(2, 80, 80, 40), 0)
    assert found.n_near_duplicates == clean.n_near_duplicates + 3


class Seen:
    """An encoder that says the author plainly, or nothing at all."""

    dimension = 8

    def __init__(self, *, is_blind: bool) -> None:
        self.name, self.fingerprint = f"seen {is_blind}", str(int(is_blind)) * 64
        self.is_blind = is_blind

    def encode(self, texts: Sequence[str], on_progress: object = None) -> Any:
        rows = []
        for text in texts:
            rng = np.random.default_rng(sum(map(ord, text)))
            row = rng.normal(size=8)
            row[0] = 0 if self.is_blind else 9 * any(w in text.split() for w in SMALL_WORDS[:12])
            rows.append(row)
        return np.array(rows, np.float32).reshape(-1, 8)


def test_attackers_read_the_vectors_that_they_are_given(files: tuple[Path, Path]) -> None:
    sides = part_texts(examples_of(files), Sizes(2, 120, 150, 40), 0, near=1.0)
    cell = {"attackers": list(ATTRIBUTE_ATTACKERS), "seed": 0}
    for is_blind in (False, True):
        found = attribute_scores(cell, Seen(is_blind=is_blind), sides)
        for name, (scores, told) in found.items():
            top = scores["top1"]
            assert top.n == 40 and told["family"]
            # Chance is 50 of 40 texts: four standard deviations are 32 points.
            assert (top.value < 82) if is_blind else (top.value > 95), name


def test_a_defence_learns_of_its_own_texts_alone(
    files: tuple[Path, Path], tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt: list[str] = []
    real = AdversarialAdapter.fit

    def spied(self: Any, encoder: Any, texts: Sequence[str], *rest: Any, **more: Any) -> Any:
        learnt.extend(texts)
        return real(self, encoder, texts, *rest, **more)

    monkeypatch.setattr(AdversarialAdapter, "fit", spied)
    one = study(
        files,
        f"mlm:{tiny_bert}",
        hides=("attribute",),
        attribute_weights=(1.0,),
        attribute_attackers=("knn",),
    )
    assert not [row.error for row in run_study("adversarial", one, tmp_path) if row.error]
    sides = part_texts(examples_of(files), Sizes(2, 120, 150, 40), 0, near=1.0)
    assert set(learnt) == {*sides.defence}
    assert not set(learnt) & {*sides.known, *sides.targets}


# Rows


@pytest.fixture(scope="module")
def rows(
    files: tuple[Path, Path], tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Row]:
    folder = tmp_path_factory.mktemp("study")
    adapted = run_study("adversarial", study(files, f"mlm:{tiny_bert}"), folder)
    return adapted + run_study("adversarial", study(files, "dual_lstm"), folder)


@pytest.mark.slow
def test_every_setting_has_its_rows(rows: list[Row]) -> None:
    assert [row.error for row in rows if row.error] == []
    found = settings_from_rows(rows)
    kinds = [(s.encoder.partition(":")[0], s.hides, s.kind, s.weight) for s in found]
    assert kinds == [
        ("mlm", "words", "none", 0.0),
        ("mlm", "words", "adversarial", 0.0),
        ("mlm", "words", "adversarial", 1.0),
        ("mlm", "attribute", "none", 0.0),
        ("mlm", "attribute", "adversarial", 0.0),
        ("mlm", "attribute", "adversarial", 1.0),
        ("mlm", "attribute", "leace", 0.0),
        ("adversarial_lstm", "words", "none", 0.0),
        ("adversarial_lstm", "words", "adversarial", 1.0),
        ("adversarial_lstm", "attribute", "none", 0.0),
        ("adversarial_lstm", "attribute", "adversarial", 1.0),
        ("adversarial_lstm", "attribute", "leace", 0.0),
    ]
    for s in found:
        is_plain = s.kind == "leace" or (s.kind == "none" and s.encoder != "adversarial_lstm")
        assert len(s.during) == (0 if is_plain else 2), "a row an epoch"
        names = ("probe_mlc",) if s.hides == "words" else tuple(ATTRIBUTE_ATTACKERS)
        assert tuple(s.after) == names
        assert all(score.has_interval and score.chance > 0 for score in s.after.values())
        assert set(s.changes) == {"first", "mean"} and set(s.margins) == {"first"}
        if s.kind == "none":
            assert s.changes["first"].value == 0.0, "it is held against itself"
    assert all(s.minutes > 0 for s in found if s.kind == "adversarial")


@pytest.mark.slow
def test_leace_is_read_by_no_linear_attacker_and_words_tell_the_author(rows: list[Row]) -> None:
    by = {
        (s.encoder.partition(":")[0], s.kind): s
        for s in settings_from_rows(rows)
        if s.hides == "attribute" and s.weight == 0.0
    }
    plain, erased = by["adversarial_lstm", "none"], by["adversarial_lstm", "leace"]
    assert erased.after["linear"].value < plain.after["linear"].value


@pytest.mark.slow
def test_finished_cells_and_trained_defences_are_not_measured_again(
    files: tuple[Path, Path], tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = study(files, f"mlm:{tiny_bert}", hides=("attribute",), attribute_weights=(1.0,))
    first = run_study("adversarial", one, tmp_path)
    monkeypatch.setattr(adversarial, "part_texts", pytest.fail)
    assert run_study("adversarial", one, tmp_path) == first
    monkeypatch.undo()
    monkeypatch.setattr(trained_defences, "_train", pytest.fail)
    more = study(
        files,
        f"mlm:{tiny_bert}",
        hides=("attribute",),
        attribute_weights=(1.0,),
        attribute_attackers=("knn",),
    )
    again = run_study("adversarial", more, tmp_path)
    assert [row.error for row in again if row.error] == []
    during = [[row["read"] for row in each if row["when"] == "during"] for each in (first, again)]
    assert during[0] == during[1] and during[0], "the defence was kept"


@pytest.mark.parametrize("encoder", ["mlm", "dual_lstm"])
def test_a_weight_that_diverges_is_told_and_nothing_is_kept(
    files: tuple[Path, Path], tiny_bert: Path, tmp_path: Path, encoder: str
) -> None:
    name = f"mlm:{tiny_bert}" if encoder == "mlm" else encoder
    found = run_study(
        "adversarial", study(files, name, hides=("words",), word_weights=(1e308,)), tmp_path
    )
    stopped = [row for row in found if row["when"] == "stopped"]
    assert len(stopped) == 1 and "Training diverged at weight 1e+308" in stopped[0]["stopped"]
    assert not stopped[0].scores and not stopped[0].error
    kept = [p for p in tmp_path.rglob("model*") if '"weight": 1e+308' in str(p)]
    assert not kept
    assert not list(tmp_path.rglob("adversarial-*/*")), "no adapter is stored"
    assert "stopped: Training diverged" in markdown(found)


# The goal


def row_of(kind: str, weight: float, when: str, scores: dict[str, Score], **facts: Any) -> Row:
    cell = {
        "encoder": "minilm",
        "hides": "words",
        "defence_kind": kind,
        "weight": weight,
        "seed": 0,
        "n_defence": 1,
        "n_labels": 2,
        "n_known": 3,
        "n_targets": 4,
    }
    return Row(cell, scores, {"when": when, **facts})


def measured(kind: str, weight: float, read: Sequence[float], change: float) -> list[Row]:
    def score(value: float) -> Score:
        return Score(value, Interval(value - 1, value + 1), 100, 5.0)

    after = [
        row_of(kind, weight, "after", {"read": score(value)}, attacker=f"attacker {i}")
        for i, value in enumerate(read)
    ]
    changes = {"change of accuracy: mean": score(change)}
    return [*after, row_of(kind, weight, "use", changes, training_minutes=1.0)]


def test_the_verdict_is_by_the_strongest_fresh_attacker_at_two_points() -> None:
    plain = measured("none", 0.0, [40, 30], 0.0)
    weak = measured("adversarial", 1.0, [10, 25], -1.0)
    (missed,) = verdicts([*plain, *weak, *measured("adversarial", 2.0, [5, 6], -9.0)])
    assert missed.met is None and missed.best is not None and missed.least is not None
    assert (missed.best.weight, missed.least.weight) == (1.0, 2.0), "one attacker at 10 is no half"
    said = str(missed)
    assert "reaches an F1 of 40.0" in said and "No setting was shown to meet the goal" in said
    assert (
        "λ_w 1 leaks least of the settings shown to cost at most 2 points: the strongest "
        "attacker reaches an F1 of 25.0"
        in said
        and missed.unclear is None
    )
    assert (
        "λ_w 2 leaks least, cost aside: the strongest attacker reaches an F1 of 6.0" in said
        and "may meet the goal" not in said
    )
    (met,) = verdicts([*plain, *weak, *measured("adversarial", 3.0, [18, 11], -1.0)])
    assert met.met is not None and met.met.weight == 3.0 and "λ_w 3 meets the goal: " in str(met)
    assert met.unclear is None


def test_a_mean_does_not_hide_what_one_task_loses_nor_tasks_without_anything_to_lose() -> None:
    def with_tasks(rows: list[Row], able: float, unable: float, change: float) -> list[Row]:
        """Guessing is right about 5; every interval is one to either side."""
        told = {
            "accuracy: able": able,
            "accuracy: unable": unable,
            "change of accuracy: able": change,
            "change of accuracy: unable": 0.0,
        }
        added = {name: Score(v, Interval(v - 1, v + 1), 100, 5.0) for name, v in told.items()}
        *after, use = rows
        return [*after, replace(use, scores={**use.scores, **added})]

    plain = with_tasks(measured("none", 0.0, [40], 0.0), 80, 7, 0.0)
    (costly,) = verdicts(
        [*plain, *with_tasks(measured("adversarial", 1.0, [9], -1.0), 76, 6, -4.0)]
    )
    assert costly.met is not None and [*costly.met.costly_tasks] == ["able"]
    assert "on average over the tasks, able by -4.0 (95 % CI -5.0 to -3.0)" in str(costly)
    assert [*costly.idle] == ["unable"] and str(costly).endswith(
        "Some tasks have almost no advantage over guessing to lose (in points, without a defence): "
        "unable 2.0 (95 % CI 1.0–3.0)."
    )
    better = with_tasks(measured("none", 0.0, [40], 0.0), 80, 7.1, 0.0)
    (cheap,) = verdicts(
        [*better, *with_tasks(measured("adversarial", 1.0, [9], -1.0), 76, 6, -3.0)]
    )
    assert cheap.met is not None and not cheap.met.costly_tasks and not cheap.idle


@pytest.mark.parametrize(
    ("read", "change", "is_met", "is_unclear"),
    [
        # Without a defence 40 [39, 41] is read; all intervals are one to either side.
        (18.5, -1.0, True, False),  # 19.5 is half of 39
        (18.6, -1.0, False, True),
        (18.5, -1.1, False, True),  # it may cost 2.1
        (21.4, -1.0, False, True),  # 20.4 is less than half of 41
        (21.6, -1.0, False, False),
        (18.5, -2.9, False, True),
        (18.5, -3.1, False, False),
    ],
)
def test_the_verdict_is_by_the_ends_of_the_intervals(
    read: float, change: float, is_met: bool, is_unclear: bool
) -> None:
    plain = measured("none", 0.0, [40, 30], 0.0)
    (found,) = verdicts([*plain, *measured("adversarial", 1.0, [read, 3], change)])
    assert ((found.met is not None), (found.unclear is not None)) == (is_met, is_unclear)
    assert ("λ_w 1 may meet the goal" in str(found)) is is_unclear


def test_a_control_is_no_setting_that_a_verdict_names() -> None:
    plain, pressed = measured("none", 0.0, [40, 30], 0.0), measured("adversarial", 1.0, [30], -1.0)
    control = measured("adversarial", 0.0, [2, 3], 0.5)
    (found,) = verdicts([*plain, *control, *pressed])
    assert found.met is None and found.best is not None and found.best.weight == 1.0
    assert verdicts([*plain, *control]) == [], "nothing was tried"


def test_the_mean_change_s_interval_by_hand() -> None:
    changes = [Score(-1.0, Interval(-4, 2), 100, 0.0), Score(3.0, Interval(-1, 7), 50, 0.0)]
    found = mean_change(changes)
    assert found.value == 1.0 and found.n == 150
    assert (found.ci95.low, found.ci95.high) == pytest.approx((1 - 2.5, 1 + 2.5))


@pytest.mark.parametrize(("group", "half"), [("book", 3.0), ("", 1.5)])
def test_targets_of_the_same_documents_are_one_sample_over_seeds(group: str, half: float) -> None:
    """As in the trade-off: of four seeds the interval is as wide as of one, not half as wide."""
    score = Score(30.0, Interval(27.0, 33.0), 100, 5.0)
    one = row_of("none", 0.0, "after", {"read": score}, attacker="linear")
    rows = [replace(one, cell={**one.cell, "seed": seed, "group": group}) for seed in range(4)]
    (found,) = settings_from_rows(rows)
    (read,) = found.after.values()
    assert (read.value, read.n) == (30.0, 100 if group else 400)
    assert (read.ci95.low, read.ci95.high) == pytest.approx((30 - half, 30 + half))


# Logistic regression


class Letters:
    """An encoder of whether a text holds an a, and of its length."""

    name, fingerprint, dimension = "letters", "0" * 64, 2

    def encode(self, texts: Sequence[str], on_progress: object = None) -> Any:
        return np.array([["a" in text, len(text)] for text in texts], np.float32).reshape(-1, 2)


def test_pairs_are_told_apart_by_their_difference_and_product(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    lines = [
        f"{'a' * (i % 2)}x{i},{'a' * (i % 3 == 0)}y{i},{int((i % 2) == (i % 3 == 0))},"
        f"{'test' if i % 4 == 0 else 'train'}"
        for i in range(200)
    ]
    path.write_text("\n".join(["sentence1,sentence2,label,split", *lines]) + "\n")
    task = read_logistic("pairs", path)
    assert task.second[3] == "ay3" and task.has_official_split
    known, held = task.labelled.parts(seed=0)
    assert len(held) == 50 and len(known) == 150
    assert task.outcome(Letters(), seed=0).score().value > 95
    single = LogisticTask(task.labelled, task.first)
    assert single.outcome(Letters(), seed=0).score().value < 95, "one side alone does not tell"
    features = pair_features(np.array([[1.0, 2.0]]), np.array([[4.0, 2.0]]))
    assert features.tolist() == [[3.0, 0.0, 4.0, 4.0]]


def test_texts_are_classified_on_scaled_vectors(files: tuple[Path, Path]) -> None:
    texts = tuple(f"{'a' if i % 2 else 'b'}{'z' * (i % 7)}" + f" {i}" for i in range(100))
    labelled = LabelledTask("a", texts, tuple(str(i % 2) for i in range(100)))
    assert LogisticTask(labelled, texts).outcome(Letters(), seed=0).score().value == 100.0
    task = read_logistic("first", files[1])
    assert not task.second and len(task.first) == 120
