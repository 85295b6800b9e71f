"""The search for settings: spaces that can be built, trials that survive a kill, honest scores."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import running_process, wait_until

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Access
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.specs import AttackSpec, fixed_search_settings, search_space, settings_of
from leakscope.core.studies.domains import open_domain
from leakscope.core.studies.inversion import tuning
from leakscope.core.studies.inversion.tuning import open_trials
from leakscope.core.studies.runner import cell_key

ROOT = Path(__file__).parents[1]
SPACE = {"lr": Uniform(1e-4, 1e-1, is_log=True), "k": Categorical((1, 2, 3)), "n": Uniform(1, 9)}

SEARCH = """
import json, sys, time
from pathlib import Path
from leakscope.core.results import Score
from leakscope.core.studies.domains import open_domain
from leakscope.core.studies.inversion import tuning
from leakscope.core.results.rows import Row
folder = Path(sys.argv[1])
def slow(cell, _):
    with (folder / "trace.txt").open("a") as file:
        file.write(json.dumps(cell["settings"]) + "\\n")
    time.sleep(float(sys.argv[3]))
    f1 = Score(50.0 - abs(cell["settings"]["n_neighbors"] - 70) / 10, n=5)
    return [Row(scores={"token_set_f1": f1}, facts={"n": 5})]
tuning.measure = slow
study = tuning.TuningStudy(attack="retrieval", target=sys.argv[2], other=sys.argv[2], n_trials=16)
print(json.dumps([row.to_dict() for row in tuning.run(study, folder)]))
"""


@pytest.mark.parametrize("name", INVERSION_ATTACKS)
def test_every_attack_declares_a_space_that_its_settings_allow(name: str) -> None:
    known = settings_of(INVERSION_ATTACKS[name].kind)
    kind = INVERSION_ATTACKS[name].kind
    assert search_space(kind) or INVERSION_ATTACKS[name].access is Access.NOTHING
    fixed = fixed_search_settings(kind)
    for setting, choice in search_space(kind).items():
        assert setting in known and setting not in {"vocabulary_size", "keep_stop_words"}
        ends = choice.values if isinstance(choice, Categorical) else (choice.low, choice.high)
        for value in ends:
            make_attack(AttackSpec.of(name, {**fixed, setting: value}))


@pytest.mark.slow
def test_trials_lie_in_the_space_and_follow_the_seed(tmp_path: Path) -> None:
    def settings(seed: int, folder: str) -> list[dict[str, Any]]:
        with open_trials(tmp_path / folder, SPACE, seed) as trials:
            for _ in range(12):
                (trial,) = trials.next_batch(1, 12)
                trials.tell(trial, trial.settings["lr"])
            assert trials.next_batch(1, 12) == []
            return [trial.settings for trial in trials.all_trials()]

    first = settings(0, "a")
    assert first == settings(0, "b") != settings(1, "c")
    assert all(1e-4 <= s["lr"] <= 1e-1 and s["k"] in (1, 2, 3) for s in first)
    assert all(s["n"] in range(1, 10) for s in first)


def test_unfinished_trials_come_back_and_batches_end_alike(tmp_path: Path) -> None:
    with open_trials(tmp_path, SPACE, 0) as trials:
        asked = trials.next_batch(3, 8)
        trials.tell(asked[0], 1.0)
    with open_trials(tmp_path, SPACE, 0) as trials:
        assert trials.next_batch(3, 8) == asked[1:]
        for trial in asked[1:]:
            trials.tell(trial, None)
        assert [t.number for t in trials.next_batch(3, 8)] == [3, 4, 5]


def test_a_trial_without_all_its_settings_is_replaced(tmp_path: Path) -> None:
    with open_trials(tmp_path, SPACE, 0) as trials:
        half = trials._study.ask()
        half.suggest_float("lr", 1e-4, 1e-1, log=True)
    with open_trials(tmp_path, SPACE, 0) as trials:
        (trial,) = trials.next_batch(1, 1)
        assert trial.number == 1 and trials.n_proposed == 1


def test_a_search_of_two_processes_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    with (
        open_trials(tmp_path, SPACE, 0),
        pytest.raises(InvalidInputError, match="Another process"),
        open_trials(tmp_path, SPACE, 0),
    ):
        pass
    (tmp_path / "trials.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(ArtifactError, match="damaged"), open_trials(tmp_path, SPACE, 0):
        pass


@pytest.mark.slow
def test_a_killed_search_ends_with_the_trials_of_one_that_was_not(
    corpus: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()

    def command(folder: Path, seconds: str) -> list[str]:
        return [sys.executable, "-c", SEARCH, str(folder), str(corpus), seconds]

    expected = json.loads(subprocess.check_output(command(whole, "0"), cwd=ROOT))
    with running_process(command(killed, "0.3"), cwd=ROOT) as process:
        cells = killed / "cells"
        wait_until(lambda: len(list(cells.glob("*.json"))) >= 12, process, seconds=120)
        process.kill()
    n_finished = len(list((killed / "cells").glob("*.json")))
    found = json.loads(subprocess.check_output(command(killed, "0"), cwd=ROOT))
    assert [r["settings"] for r in found] == [r["settings"] for r in expected]
    n_distinct = len({cell_key(r["settings"]) for r in expected})
    n_ran = len((killed / "trace.txt").read_text().splitlines())
    assert n_finished < n_distinct and n_ran <= n_distinct + 1, "only the killed trial ran twice"


@pytest.fixture
def given(corpus: Path, tmp_path: Path) -> list[object]:
    return shlex.split(
        f"tune --attack retrieval --encoder hashing --target {corpus} "
        f"--other {corpus} --trials 4 --out {tmp_path / 'tuned.json'}"
    )


def test_a_search_on_the_command_line(core: Any, given: list[object], tmp_path: Path) -> None:
    told = core(*given, "--set", "n_neighbors=5", "--json").json()
    rows, best = told["rows"], told["best"]
    assert [row["trial"] for row in rows] == [0, 1, 2, 3]
    assert all(row["settings"]["n_neighbors"] == 5 for row in rows)
    assert len({row["settings"]["temperature"] for row in rows}) == 4
    assert best["token_set_f1"] == max(row["token_set_f1"] for row in rows) > best["prior_f1"]
    low, high = best["token_set_f1_ci95"]
    assert low <= best["token_set_f1"] <= high
    # 360 of 400 documents are auxiliary, a fifth of them is held out; a few texts occur twice.
    assert best["n"] + best["n_fitted_on"] <= 360 and 50 < best["n"] < 90
    table = (tmp_path / "tuned.md").read_text()
    assert "| 3 | n_neighbors=5" in table and "--set n_neighbors=5 --set temperature=" in table
    more = core(*given, "--set", "n_neighbors=5", "--trials", 6, "--json").json()["rows"]
    assert more[:4] == rows and len(more) == 6, "the search goes on"


def test_the_texts_under_attack_take_no_part(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"target": str(corpus), "other": str(corpus), "domain": "in", "seed": 0}
    targets = set(open_domain(**place, n_auxiliary=40_000, n_targets=500).targets)
    seen: set[str] = set()
    for name in ("fit_attack", "evaluate"):
        real = getattr(tuning, name)

        def watched(one: Any, other: Any, texts: list[str], real: Any = real, **more: Any) -> Any:
            seen.update(texts)
            return real(one, other, texts, **more)

        monkeypatch.setattr(tuning, name, watched)
    study = tuning.TuningStudy(
        attack="probe", target=str(corpus), other=str(corpus), encoder="hashing", n_trials=1
    )
    tuning.run(study, tmp_path)
    assert len(targets) > 10 and len(seen) > 300 and not targets & seen


def test_a_file_of_two_rows_is_refused_before_any_trial(core: Any, tmp_path: Path) -> None:
    target = tmp_path / "two.csv"
    target.write_text("text\nThe garden is green.\nA river is wide.\n", encoding="utf-8")
    out = tmp_path / "missing" / "deep" / "t.json"
    for words in (["tune", "--attack", "retrieval"], ["study", "encoders"], ["study", "layers"]):
        told = core(*words, "--target", target, "--other", target, "--out", out).refusal()
        assert "2 distinct documents, too few" in told
        assert not out.parents[1].exists(), "no empty folder is left behind"


def test_trials_that_fail_are_told(core: Any, given: list[object], tmp_path: Path) -> None:
    outcome = core(*given, "--attack", "probe_mlc", "--trials", 2)
    assert outcome.status == 2 and "Every trial failed" in outcome.err
    assert "dense vectors" in (tmp_path / "tuned.md").read_text()
