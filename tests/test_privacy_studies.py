"""The studies of networks under noise: what is held against what, kept and repeated."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.defences.trained.constrained import ConstrainedClassifier
from leakscope.core.errors import DivergedError
from leakscope.core.results import Interval
from leakscope.core.studies.registry import cells_of, run_study
from leakscope.core.studies.training import adaptive, constrained, tuned_networks
from leakscope.core.studies.training.adaptive import AdaptiveStudy, recovered_share
from leakscope.core.studies.training.constrained import ConstrainedStudy


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, small_texts: list[str]) -> str:
    path = tmp_path_factory.mktemp("texts") / "toy.csv"
    words = ("the minister", "a doctor")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "split"])
        writer.writerows(
            [f"{words[i % 2]} {text}", i % 2, "test" if i % 3 == 0 else "train"]
            for i, text in enumerate(small_texts[:120])
        )
    return str(path)


@pytest.fixture
def small(texts: str, tiny_bert: Path) -> dict[str, Any]:
    return {"tasks": (f"toy={texts}",), "encoder": f"mlm:{tiny_bert}", "epochs": 1, "seeds": (0,)}


@pytest.mark.slow
def test_constrained_rows_tell_all_that_they_are_held_against(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = ConstrainedStudy(**small, etas=(65.0,))
    cells = cells_of("constrained", study)
    assert [(c["reader"], c["defence"]) for c in cells] == [
        ("transformer", "none"),
        ("bilstm", "none"),
        ("transformer", "sequence_representation"),
        ("transformer", "token_representation"),
        ("bilstm", "token_representation"),
        ("transformer", "text_to_text"),
        ("bilstm", "text_to_text"),
    ]
    rows = run_study("constrained", study, tmp_path)
    assert not any(row.error for row in rows), [row.error for row in rows]
    for row in rows:
        score = row.scores["accuracy"]
        assert (score.n, row["n_train"], score.has_interval) == (40, 80, True)
        assert ("null_accuracy" in row.scores) is (row["defence"] != "none")
    text = rows[-1]
    assert text.scores["null_accuracy"] == rows[1].scores["accuracy"], "of the same network"
    assert text.scores["change_by_noise"] == text.scores["change"], "word pieces: that is the same"
    assert (text["eta"], text["paper_eta"]) == (65.0, 100)
    token, change = rows[4], text.scores["change_from_token_representation"]
    assert (token["defence"], token["reader"]) == ("token_representation", text["reader"])
    apart = text.scores["accuracy"].value - token.scores["accuracy"].value
    assert (change.value, change.n, change.has_interval) == (pytest.approx(apart), 40, True)
    assert [row["defence"] for row in rows if "beside" in row] == ["text_to_text"] * 2
    said = constrained.markdown(rows)
    assert (
        "text to text is significantly above token representation at" in said and "| 65 |" in said
    )
    fitted: list[int] = []
    monkeypatch.setattr(tuned_networks, "_tune", lambda *given: fitted.append(1))
    assert run_study("constrained", study, tmp_path) == rows and not fitted


def test_a_head_on_whole_texts_has_a_rate_and_a_baseline_of_its_own(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[tuple[str, bool, float]] = []
    whole = ConstrainedClassifier.fit

    def noted(self: ConstrainedClassifier, *given: Any, **more: Any) -> ConstrainedClassifier:
        fitted.append((self.mechanism, self.is_noisy, self.learning_rate))
        return whole(self, *given, **more)

    monkeypatch.setattr(ConstrainedClassifier, "fit", noted)
    study = ConstrainedStudy(
        **small | {"epochs": 3},
        etas=(1.0, 1e6),
        readers=("transformer",),
        mechanisms=("sequence_representation",),
    )
    noisy, clear = run_study("constrained", study, tmp_path)
    assert not noisy.error and not clear.error
    head = "sequence_representation"
    assert fitted == [
        (head, True, 1e-3),
        ("none", True, 1e-4),
        (head, False, 1e-3),
        (head, True, 1e-3),
    ]
    assert noisy.scores["noiseless_accuracy"] == clear.scores["noiseless_accuracy"]
    assert clear.scores["change_by_noise"].value == 0.0, "next to no noise costs nothing"
    frozen = clear.scores["accuracy"].value - clear.scores["null_accuracy"].value
    assert clear.scores["change"].value == pytest.approx(frozen), (
        "freezing is told apart from noise"
    )
    one = noisy.scores
    both = [f"{one[name].value:.1f}" for name in ("noiseless_accuracy", "null_accuracy")]
    said = constrained.markdown([noisy])
    assert (
        f"| {both[0]} | {one['change_by_noise'].format()} | {both[1]} | {one['change'].format()} |"
        in said
    )


def adaptive_study(small: dict[str, Any], texts: str, **more: Any) -> AdaptiveStudy:
    given = {
        "other": f"{texts}#text",
        "objectives": ("denoising",),
        "etas": (65.0, 81.5),
        "mechanisms": ("token_representation",),
        "tokens": 3000,
        "batch_tokens": 512,
        "n_checks": 2,
    }
    return AdaptiveStudy(**(small | given | more))


@pytest.mark.slow
def test_adaptive_rows_go_on_from_their_neighbour_and_tell_what_was_seen(
    small: dict[str, Any], texts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    whole = tuned_networks._adapt

    def noted(cell: Any, told: Any, place: Any, former: Any) -> Any:
        begun.append(0 if former is None else former.passed)
        return whole(cell, told, place, former)

    monkeypatch.setattr(tuned_networks, "_adapt", noted)
    rows = run_study("adaptive", adaptive_study(small, texts), tmp_path)
    assert not any(row.error for row in rows), [row.error for row in rows]
    assert begun == [0, 108], "all texts were taken, and twelve are held out"
    assert [row["eta"] for row in rows] == [81.5, 65.0], "from the least noise to the most"
    first, second = rows
    assert second["all_tokens_seen"] == first["tokens_seen"] + second["tokens_seen"]
    assert first["distinct_tokens_seen"] < first["tokens_seen"], "the texts are few"
    assert second["distinct_tokens_seen"] == first["distinct_tokens_seen"], "and come again"
    assert first["paper_tokens"] == 1_000_000 * 256 * 128
    assert len(first["loss_by_tokens"]) == 3
    for row in rows:
        assert {
            "accuracy",
            "null_accuracy",
            "constrained_accuracy",
            "won_back",
        } <= row.scores.keys()
        assert row["pretraining_minutes"] >= 0 and row["n"] == 40
    said = adaptive.markdown(rows)
    assert "Denoising MLM" in said and "held-out loss by tokens seen" in said and "61.0" not in said
    seen = f"({second['all_tokens_seen']:,}; {second['distinct_tokens_seen']:,})"
    assert f"| {second['tokens_seen']:,} {seen} |" in said


def test_both_studies_share_what_they_fine_tune(
    small: dict[str, Any], texts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etas = {"etas": (65.0,), "mechanisms": ("none", "token_representation")}
    one = ConstrainedStudy(**small, **etas, readers=("transformer",))
    rows = run_study("constrained", one, tmp_path)
    tuned: list[str] = []
    whole = tuned_networks._tune

    def noted(cell: Any, *rest: Any) -> Any:
        tuned.append(cell["defence"])
        return whole(cell, *rest)

    monkeypatch.setattr(tuned_networks, "_tune", noted)
    (found,) = run_study("adaptive", adaptive_study(small, texts, etas=(65.0,)), tmp_path)
    assert tuned == ["token_representation"], "what was fine-tuned before is not again"
    assert found.scores["null_accuracy"] == rows[0].scores["accuracy"]
    assert found.scores["constrained_accuracy"] == rows[1].scores["accuracy"]


def test_losses_are_held_against_each_other_on_the_same_texts(
    small: dict[str, Any], texts: str, tmp_path: Path
) -> None:
    study = adaptive_study(small, texts, objectives=("denoising", "vanilla"), etas=(65.0,))
    denoising, vanilla = run_study("adaptive", study, tmp_path)
    assert (denoising["objective"], vanilla["objective"]) == ("denoising", "vanilla")
    change = denoising.scores["change_from_vanilla"]
    apart = denoising.scores["accuracy"].value - vanilla.scores["accuracy"].value
    assert (change.value, change.n, change.has_interval) == (pytest.approx(apart), 40, True)
    assert not [name for name in vanilla.scores if name.startswith("change_from")]
    assert "change_from_probability" not in denoising.scores, "the study has no such loss"


def test_a_loss_that_ran_away_leaves_the_others_without_a_change(
    small: dict[str, Any], texts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tuned_networks._adapt

    def one_diverges(cell: Any, *rest: Any) -> Any:
        if cell["objective"] == "vanilla":
            raise DivergedError("away")
        return whole(cell, *rest)

    monkeypatch.setattr(tuned_networks, "_adapt", one_diverges)
    study = adaptive_study(small, texts, objectives=("vanilla", "denoising"), etas=(65.0,))
    vanilla, denoising = run_study("adaptive", study, tmp_path)
    assert vanilla.error == "DivergedError: away" and not denoising.error
    assert "accuracy" in denoising.scores and "change_from_vanilla" not in denoising.scores


def test_the_share_won_back_by_hand_and_its_extremes() -> None:
    right = np.arange(200)
    none, cost = right < 180, right < 100
    assert recovered_share(none, cost, right < 140).value == pytest.approx(50)
    assert recovered_share(none, cost, none).format(0) == "100", "all alike: no interval is printed"
    same = recovered_share(none, cost, cost)
    assert same.value == 0 and same.ci95 == Interval(0.0, 0.0)
    assert np.isnan(recovered_share(cost, cost, none).value), "nothing was lost"
    few = recovered_share(right < 101, cost, right < 101)
    assert not few.has_interval, "what was lost cannot be told from nothing"
