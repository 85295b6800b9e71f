"""What the page of training reads of the rows of four studies, and what its figures draw of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from training_rows import (
    MADE,
    ORIGIN,
    adversarial_rows,
    constrained_rows,
    private_rows,
    write_shipped,
)

from leakscope.core.errors import ArtifactError
from leakscope.core.figures.style import BASELINE, LEAKED
from leakscope.core.figures.training import (
    exposure_figure,
    private_figure,
    trap_figure,
    utility_figure,
)
from leakscope.core.results import Interval
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import rows_to_json
from leakscope.core.storage.artifacts import write_json
from leakscope.core.studies.registry import STUDIES
from leakscope.core.studies.training.privacy_paper import ADAPTED, CONSTRAINED, MATCHED
from leakscope.core.studies.training.summary import (
    TABLES,
    Adversarial,
    Pretrained,
    PrivateTraining,
    UnderNoise,
    load_part,
)

Part = TypeVar("Part")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shipped(tmp_path_factory.mktemp("training") / "rows")


def read(kind: type[Part], folder: Path, study: str, rows: Sequence[Row] | None = None) -> Part:
    """Return the results of a study from a folder, to which rows are written first if given."""
    if rows is not None:
        write_shipped(folder, study, rows=rows)
    found = load_part(study, folder)
    assert isinstance(found, kind)
    return found


@pytest.fixture(scope="module")
def adversarial(shipped: Path) -> Adversarial:
    return read(Adversarial, shipped, "adversarial")


@pytest.fixture(scope="module")
def constrained(shipped: Path) -> UnderNoise:
    return read(UnderNoise, shipped, "constrained")


@pytest.fixture(scope="module")
def adaptive(shipped: Path) -> Pretrained:
    return read(Pretrained, shipped, "adaptive")


@pytest.fixture(scope="module")
def private(shipped: Path) -> PrivateTraining:
    return read(PrivateTraining, shipped, "private-training")


# Files


@pytest.mark.parametrize("study", TABLES)
def test_a_missing_damaged_or_foreign_file_is_told(study: str, tmp_path: Path) -> None:
    path = tmp_path / f"{TABLES[study][0]}.json"
    with pytest.raises(ArtifactError, match=path.name):
        load_part(study, tmp_path)
    other = next(name for name in TABLES if name != study)
    for table in (
        {"study": other, "rows": [{"n": 1}]},
        {"study": study, "rows": [{"n": 1}]},
        {"study": study, "rows": [{"n": 1, "versions": 3}]},
    ):
        path.write_text(json.dumps(table))
        with pytest.raises(ArtifactError, match="Run the study again"):
            load_part(study, tmp_path)
    path.write_text("{")
    with pytest.raises(ArtifactError):
        load_part(study, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("study", TABLES)
def test_cells_that_failed_are_left_out_and_none_left_is_no_measurement(
    study: str, tmp_path: Path
) -> None:
    rows = MADE[study]()
    failed = Row(rows[0].cell, error="the disk is full")
    write_shipped(tmp_path, study, rows=[failed, *rows])
    assert ORIGIN.commit in {p.commit for p in load_part(study, tmp_path).provenances if p}
    write_shipped(tmp_path, study, rows=[failed])
    with pytest.raises(ArtifactError, match="Run the study again"):
        load_part(study, tmp_path)


@pytest.mark.slow
def test_rows_of_other_settings_lie_beside_and_none_counts_twice(tmp_path: Path) -> None:
    whole = MADE["adaptive"]()
    one, other = ([row for row in whole if row.cell["seed"] == seed] for seed in (0, 1))
    assert one and other
    write_shipped(tmp_path, "adaptive", rows=one)
    path = tmp_path / "adaptive.json"
    beside = path.with_name("adaptive-text.json")
    assert {p.n_seeds for p in read(Pretrained, tmp_path, "adaptive").points} == {1}
    write_json(beside, rows_to_json("adaptive", other))
    assert {p.n_seeds for p in read(Pretrained, tmp_path, "adaptive").points} == {2}
    for changed in ({}, {"minutes": 7.0}, {"tokens_seen": 99}):
        again = [Row(row.cell, row.scores, {**row.facts, **changed}) for row in one]
        write_json(beside, rows_to_json("adaptive", again))
        with pytest.raises(ArtifactError, match=beside.name):
            load_part("adaptive", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("study", TABLES)
def test_the_oldest_version_that_measured_any_row_is_told(study: str, tmp_path: Path) -> None:
    rows, now = MADE[study](), STUDIES[study].version
    assert {*load_part(study, write_shipped(tmp_path, study, rows=rows)).versions.values()} == {now}
    older = {k: v for k, v in rows[-1].cell.items() if k != "versions"}
    write_shipped(tmp_path, study, rows=[*rows[:-1], replace(rows[-1], cell=older)])
    assert 1 in load_part(study, tmp_path).versions.values()


# Against an adversary


@pytest.mark.slow
def test_the_trap_is_the_weight_that_hides_most_in_training(adversarial: Adversarial) -> None:
    for encoder in adversarial.encoders:
        for hides in adversarial.hidden_of(encoder):
            settings, trap = adversarial.of(encoder, hides), adversarial.trap(encoder, hides)
            assert trap is not None and trap.is_sprung
            whole = [s for s in settings if s.weight and s.during and s.after]
            assert trap.promised.value == min(s.during[-1].value for s in whole)
            assert trap.read.value == max(score.value for score in trap.setting.after.values())
    kinds = [(s.kind, s.weight) for s in adversarial.of("minilm", "attribute")]
    assert kinds == [
        ("none", 0.0),
        ("adversarial", 0.0),
        ("adversarial", 1.0),
        ("adversarial", 10.0),
        ("leace", 0.0),
    ]
    verdict = adversarial.verdict("minilm", "words")
    assert verdict is not None and verdict.met is None
    assert adversarial.label == "author"
    assert adversarial.bases["minilm", "words"].n_seeds == 2


def test_a_defence_that_holds_springs_no_trap_and_one_without_training_has_none(
    tmp_path: Path,
) -> None:
    found = read(Adversarial, tmp_path, "adversarial", adversarial_rows(holds=True))
    trap = found.trap("minilm", "words")
    assert trap is not None and not trap.is_sprung
    plain = [row for row in adversarial_rows() if row["defence_kind"] in ("none", "leace")]
    found = read(Adversarial, tmp_path, "adversarial", plain)
    assert found.trap("minilm", "words") is None
    assert trap_figure(found.of("minilm", "words"), found.families).data


@pytest.mark.slow
def test_a_stronger_attacker_alone_is_no_trap(adversarial: Adversarial) -> None:
    trap = adversarial.trap("minilm", "words")
    assert trap is not None and trap.control is not None and trap.is_sprung
    assert not replace(trap, control=None).is_sprung, "nothing is claimed without the control"
    # Afterwards 30 more are read than in training, under λ = 0 as well: nothing was taken off.
    before, after = trap.promised, trap.read
    same = replace(trap.control, during=(before,), after={"tuned": after})
    assert after.value > before.value and not replace(trap, control=same).is_sprung
    # In training 4 less than the control, afterwards as much: within the doubt of four scores.
    up = replace(before, value=before.value + 4, ci95=Interval(before.value, before.value + 8))
    hardly = replace(trap.control, during=(up,), after={"tuned": after})
    assert not replace(trap, control=hardly).is_sprung


def test_a_weight_that_ran_away_under_a_seed_is_neither_trap_nor_verdict(tmp_path: Path) -> None:
    rows = adversarial_rows(encoders=("minilm",), holds=True)
    whole = read(Adversarial, tmp_path / "a", "adversarial", rows)
    best = whole.trap("minilm", "words")
    assert best is not None and best.setting.weight == 3.0
    ran = [
        replace(row, scores={}, facts={**row.facts, "when": "stopped", "stopped": "Ran away"})
        if (row["hides"], row["weight"], row["seed"]) == ("words", 3.0, 1)
        else row
        for row in rows
    ]
    found = read(Adversarial, tmp_path / "b", "adversarial", ran)
    trap, verdict = found.trap("minilm", "words"), found.verdict("minilm", "words")
    assert trap is not None and trap.setting.weight == 0.3
    assert verdict is not None
    named = [verdict.met, verdict.best, verdict.least, verdict.unclear]
    assert all(each.weight != 3.0 for each in named if each is not None)


def test_texts_are_counted_that_were_there_and_not_those_asked_for(
    adversarial: Adversarial,
) -> None:
    basis = adversarial.bases["minilm", "words"]
    assert (basis.n_known, basis.n_targets) == (6000, 600)
    assert basis.table == "adversarial"


def test_each_table_tells_the_texts_of_its_own_encoders(tmp_path: Path) -> None:
    """More labels and more texts of the attackers, in a table beside, are told there alone."""
    here, there = (adversarial_rows(encoders=(name,)) for name in ("minilm", "dual_lstm"))
    told = [
        replace(
            row,
            cell={**row.cell, "n_labels": 90},
            facts={**row.facts, **({"n_known_texts": 48000} if "n" in row else {})},
        )
        for row in there
    ]
    folder = write_shipped(tmp_path / "rows", "adversarial", rows=here)
    write_json(folder / "adversarial-more.json", rows_to_json("adversarial", told))
    found = read(Adversarial, folder, "adversarial")
    for place, basis in found.bases.items():
        assert (basis.table, basis.n_labels, basis.n_known) == (
            ("adversarial", 20, 6000) if place[0] == "minilm" else ("adversarial-more", 90, 48000)
        )


# Under noise


def test_the_curves_are_ours_filled_and_the_paper_s_hollow(constrained: UnderNoise) -> None:
    points = constrained.of("sst2", "transformer")
    traces = utility_figure(points).data
    ours = [t for t in traces if t.marker.symbol != "diamond-open"]
    theirs = [t for t in traces if t.marker.symbol == "diamond-open"]
    titles = ("Sequence representation", "Token representation", "Text to text")
    assert [t.name for t in ours] == [f"{title}, one release" for title in titles]
    assert all(list(t.x) == [50.0, 65.0, 98.5] and t.error_y.array[0] > 0 for t in ours)
    assert len({t.marker.symbol for t in ours}) == 3
    assert len(theirs) == 2 and all(list(t.x) == list(MATCHED) for t in theirs)
    assert [t.showlegend for t in theirs] == [True, False], "named once"
    told = " ".join(note.text for note in utility_figure(points).layout.annotations)
    assert "paper: 92.9" in told and "guessing 51" in told
    other = utility_figure(constrained.of("mrpc", "bilstm"))
    assert not [t for t in other.data if t.marker.symbol == "diamond-open"]


@pytest.mark.slow
def test_networks_that_saw_a_text_several_times_are_points_of_their_own(
    constrained: UnderNoise, tmp_path: Path
) -> None:
    assert {p.releases for p in constrained.points if math.isfinite(p.eta)} == {1}
    both = constrained_rows(releases=("once", "every_epoch"))
    found = read(UnderNoise, tmp_path, "constrained", both)
    points = found.of("sst2", "transformer")
    assert [(p.mechanism, p.releases) for p in points if p.eta in (math.inf, 65.0)] == [
        ("none", 0),
        ("sequence_representation", 1),
        ("sequence_representation", 20),
        ("token_representation", 1),
        ("token_representation", 3),
        ("text_to_text", 1),
        ("text_to_text", 3),
    ]
    assert {p.releases for p in found.of("sst2", "bilstm")} == {0, 1, 8}
    names = [trace.name for trace in utility_figure(points).data]
    assert "Text to text, 3 releases" in names and "Text to text, one release" in names
    alone = read(UnderNoise, tmp_path, "constrained", constrained_rows(compares=False))
    assert all(p.change is None and p.by_noise is None for p in alone.points)


def test_what_is_won_back_by_hand(adaptive: Pretrained) -> None:
    by = {(p.eta, p.objective): p for p in adaptive.of("sst2", "token_representation")}
    one = by[65.0, "denoising"]
    # The invented networks win six tenths back, but for whole texts.
    assert one.won_back.value == pytest.approx(60, abs=1.5)
    assert one.gain.value == pytest.approx(one.accuracy.value - one.plain.value)
    assert list(one.beside) == ["vanilla", "probability"] and not by[65.0, "vanilla"].beside
    apart = one.accuracy.value - by[65.0, "vanilla"].accuracy.value
    assert one.beside["vanilla"].value == pytest.approx(apart)
    theirs = ADAPTED["sst2", "token_representation", "denoising"][100]
    plain = CONSTRAINED["sst2", "transformer", "token_representation"][100]
    assert one.paper_recovered_share == pytest.approx(100 * (theirs - plain) / (92.89 - plain))
    assert one.all_tokens == 2 * one.tokens == 8_000_000, "it goes on from its neighbour"
    assert by[98.5, "denoising"].all_tokens == 4_000_000
    other = adaptive.of("mrpc", "token_representation")[0]
    assert other.paper_recovered_share is None and other.theirs is None


# Differential privacy


def test_no_promise_comes_last_and_both_accountants_are_read(private: PrivateTraining) -> None:
    heads = private.of("sst2")
    assert [(h.hidden, h.epsilon) for h in heads] == [
        (0, 1.0),
        (0, 8.0),
        (0, math.inf),
        (256, 1.0),
        (256, 8.0),
        (256, math.inf),
    ]
    assert [m.epsilon for m in private.models] == [1.0, 8.0, math.inf]
    assert heads[2].spent is None and heads[2].attacked is None
    assert heads[0].spent is not None and heads[0].spent.opacus == pytest.approx(0.999)
    assert private.accountant_gap == pytest.approx(0.003, abs=2e-3)
    assert private.tasks == ["sst2", "news"] and private.delta == 1e-5
    assert heads[0].change.value < heads[1].change.value < heads[2].change.value == 0


def test_accuracy_stands_above_membership_and_a_coin_is_dotted(private: PrivateTraining) -> None:
    figure = private_figure(private.of("sst2"))
    assert [t.yaxis for t in figure.data] == ["y", "y2", "y", "y2"]
    assert [t.showlegend for t in figure.data] == [True, False, True, False]
    assert list(figure.layout.xaxis2.ticktext) == ["1", "8", "∞"]
    assert {s.y0 for s in figure.layout.shapes if s.yref == "y2"} == {50}
    planted, nowhere = exposure_figure(private.models).data
    assert planted.marker.color == LEAKED and nowhere.marker.color == BASELINE
    assert planted.y[-1] > planted.y[0] > nowhere.y[0]


@pytest.mark.slow
def test_a_study_of_one_half_alone_is_read(tmp_path: Path) -> None:
    def found(**more: Any) -> PrivateTraining:
        return read(PrivateTraining, tmp_path, "private-training", private_rows(**more))

    heads, models = found(target=""), found(tasks=())
    assert heads.heads and not heads.models and models.models and not models.heads
    assert math.isnan(found(epsilons=(0.0,)).accountant_gap)
