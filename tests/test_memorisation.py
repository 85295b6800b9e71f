"""Language models with planted canaries: what they keep, how they resume, what they refuse."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.attacks.membership.memorisation import experiment, extraction
from leakscope.core.attacks.membership.memorisation.canaries import make_canary
from leakscope.core.attacks.membership.memorisation.experiment import PlantedRun, plant, run_planted
from leakscope.core.attacks.membership.memorisation.exposure import mean_chance_exposure
from leakscope.core.attacks.membership.memorisation.extraction import (
    RANKINGS,
    SAMPLERS,
    contains_canary,
)
from leakscope.core.attacks.membership.memorisation.memorise import (
    MemoriseRequest,
    mean_over_seeds,
    memorise,
    parse_exposures,
    run_request,
)
from leakscope.core.attacks.membership.memorisation.model_audit import AuditPlan, audit_model
from leakscope.core.attacks.membership.memorisation.private import GradientCanaries
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.tokens import ByteTokens
from leakscope.core.errors import CoreError, InvalidInputError, MissingDependencyError, StoppedError
from leakscope.core.results import NO_INTERVAL, Interval, Score

SMALL = MemorisationSettings(
    insertions=8,
    epochs=4,
    hidden=32,
    n_texts=60,
    max_length=64,
    learning_rate=1e-2,
    n_generated=0,
    n_sampled=200,
)
TOLD = ("my pin is {digits:2}", "the code reads {digits:2}")


@pytest.fixture(scope="module")
def texts(small_texts: list[str]) -> list[str]:
    return small_texts[:60]


def run(texts: list[str], settings: MemorisationSettings, **more: Any) -> PlantedRun:
    canaries = [make_canary(told, texts, 3) for told in TOLD]
    return run_planted(texts, canaries, settings, 0, **more)


@pytest.fixture(scope="module")
def by_insertions(texts: list[str]) -> dict[int, PlantedRun]:
    trained = replace(SMALL, epochs=12, hidden=64)
    return {
        n: run(texts, replace(trained, insertions=n, n_generated=300 * (n == 64)))
        for n in (0, 4, 64)
    }


def test_exposure_rises_with_insertions_and_is_chance_without(
    by_insertions: dict[int, PlantedRun],
) -> None:
    found = [by_insertions[n].epochs[-1].exposure for n in (0, 4, 64)]
    assert found[0] < found[1] < found[2], found
    assert found[2] == pytest.approx(np.log2(100), abs=0.6), "it is the first of a hundred"
    controls = [v for each in by_insertions.values() for v in each.epochs[-1].controls]
    assert np.mean(controls) == pytest.approx(mean_chance_exposure(100), abs=0.35)


def test_what_is_known_by_heart_comes_out(by_insertions: dict[int, PlantedRun]) -> None:
    found = {each.sampler: each for each in by_insertions[64].extractions}
    assert tuple(found) == SAMPLERS
    assert min(found["prefix"].found) > 0
    assert found["prefix"].places.keys() == set(RANKINGS)
    assert all(min(p for p in places if p) <= 10 for places in found["prefix"].places.values())
    assert by_insertions[0].extractions == ()


def test_the_held_out_texts_are_read_better_by_epoch(by_insertions: dict[int, PlantedRun]) -> None:
    bits = [epoch.bits_a_token for epoch in by_insertions[4].epochs]
    assert bits[-1] < bits[0] and len(bits) == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "tokens"), [("transformer", "bytes"), ("transformer", "words"), ("lstm", "words")]
)
def test_every_model_and_token_learns(texts: list[str], model: str, tokens: str) -> None:
    settings = replace(
        SMALL, model=model, tokens=tokens, insertions=40, epochs=8, learning_rate=5e-3
    )
    found = run(texts, settings)
    assert found.epochs[-1].exposure > 4.0
    assert all(each.is_exact for each in found.epochs[-1].canaries)


@pytest.mark.slow
def test_large_r_is_sampled_and_estimated(texts: list[str]) -> None:
    settings = replace(SMALL, insertions=40, epochs=6, exact_up_to=50)
    canary = make_canary("my pin is {digits:4}", texts)
    found = run_planted(texts, [canary], settings, 0).epochs[-1].canaries[0]
    assert not found.is_exact and found.exposure.has_interval
    assert found.exposure.n == 200 and 3 < found.exposure.value <= np.log2(10_000)


def test_what_stands_in_the_canarys_place_must_fit_as_well(texts: list[str]) -> None:
    canary = make_canary("the door {words:2}", texts, 3)
    longest = "".join(max(part, key=len) for part in canary.parts)
    assert len(longest) > len(canary.text)
    settings = replace(SMALL, model="transformer", max_length=len(longest.encode()) - 1)
    with pytest.raises(InvalidInputError, match="could stand in its place"):
        run_planted(texts, [canary], settings, 0)


# Kill and resume


def test_epochs_that_measured_another_canary_are_not_taken_over(
    texts: list[str], tmp_path: Path
) -> None:
    settings = replace(SMALL, insertions=0, epochs=1)  # the same training, whatever is measured
    first, second = (make_canary(told, texts, 3) for told in ("pin {digits:2}", "x {digits:1}"))
    run_planted(texts, [first], settings, 0, checkpoint_dir=tmp_path)
    with pytest.raises(CoreError):
        run_planted(texts, [second], settings, 0, checkpoint_dir=tmp_path)


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    original = experiment._ExposureMeter.measure_exposures

    def counted(self: Any, network: Any) -> dict[str, Any]:
        measured.append(1)
        return original(self, network)

    monkeypatch.setattr(experiment._ExposureMeter, "measure_exposures", counted)
    settings = replace(SMALL, n_generated=20)
    whole = run(texts, settings)
    assert len(measured) == 4

    def stop(done: float, told: str) -> None:
        if len(measured) == 6 and "Epoch 3" in told:
            raise StoppedError("enough")

    with pytest.raises(StoppedError):
        run(texts, settings, checkpoint_dir=tmp_path, on_progress=stop)
    assert repr(run(texts, settings, checkpoint_dir=tmp_path)) == repr(whole)
    assert len(measured) == 4 + 4, "no finished epoch is measured again"
    again = run(texts, settings, checkpoint_dir=tmp_path)
    assert repr(again) == repr(whole) and len(measured) == 8


# Samplers and rankings, by hand


def test_top_k_keeps_the_k_highest() -> None:
    kept = extraction.top_k_logits(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    assert torch.isinf(kept[0, [0, 3]]).all() and kept[0, [1, 2]].tolist() == [3.0, 2.0]


def test_the_temperature_falls_from_ten_to_one() -> None:
    found = [extraction.decaying_temperature(i) for i in (0, 5, 10, 20, 50)]
    assert found == pytest.approx([10.0, 7.75, 5.5, 1.0, 1.0])


def test_rankings_by_hand() -> None:
    bits = np.array([8.0, 30.0])
    assert extraction.by_perplexity(bits, np.array([4.0, 10.0])).tolist() == [-2.0, -3.0]
    assert extraction.by_smaller(bits, np.array([16.0, 30.0])).tolist() == [2.0, 1.0]
    assert extraction.by_lower_case(bits, np.array([12.0, 15.0])).tolist() == [1.5, 0.5]
    zlib = extraction.by_zlib(bits, ["aaaa", "abcd"])
    assert zlib.tolist() == [extraction.zlib_bits("aaaa") / 8, extraction.zlib_bits("abcd") / 30]


def test_a_text_holds_a_canary_where_all_of_it_stands() -> None:
    assert contains_canary(ByteTokens(), "so my pin is 42.", "my pin is 42")
    assert not contains_canary(ByteTokens(), "so my pin is 4", "my pin is 42")


# What is told


def test_the_mean_over_seeds_has_students_interval() -> None:
    found = mean_over_seeds([Score(v, NO_INTERVAL, 10, 1.4) for v in (4.0, 6.0, 8.0)])
    assert found.value == 6.0 and found.n_seeds == 3
    half = 4.302652729911275 * 2.0 / np.sqrt(3)  # t of 2 degrees, standard deviation 2
    assert found.ci95.low == pytest.approx(6.0 - half)
    one = Score(4.0, Interval(3.0, 5.0), 10)
    assert mean_over_seeds([one]) is one
    assert (
        mean_over_seeds([Score(9.0, NO_INTERVAL), Score(10.0, NO_INTERVAL)], most=10).ci95.high
        == 10
    )


def test_a_job_tells_how_exposure_grows_and_writes_nothing(
    texts: list[str], leakscope_home: Path
) -> None:
    told: list[list[float]] = []
    request = MemoriseRequest(corpus="upload", canary=TOLD[0], settings=SMALL, seeds=(0, 1))

    def on_progress(done: float, message: str) -> None:
        assert 0 <= done <= 1 and "upload" not in message
        told.append(parse_exposures(message))

    found = run_request(request, texts, on_progress)
    assert max(map(len, told)) == 3, "after each epoch but the last"
    assert len(found.runs) == 2 and not any(leakscope_home.rglob("model.json"))
    stored = json.loads(json.dumps(found.to_dict()))
    assert [epoch["epoch"] for epoch in stored["by_epoch"]] == [1, 2, 3, 4]
    assert stored["canary"] is None and len({each["canary"] for each in stored["by_seed"]}) == 2


def test_the_canary_is_planted_so_often(texts: list[str]) -> None:
    canary = make_canary(TOLD[0], texts)
    assert plant(texts, [canary], 3)[-4:] == [texts[-1], *[canary.text] * 3]


# Bad input


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"texts": ["one text."]}, "at least 20 different sentences"),
        ({"texts": []}, "got 0"),
        ({"texts": [f"text {i}\0" for i in range(30)]}, "null byte"),
        ({"settings": replace(SMALL, hidden=30)}, "multiple of 4"),
        ({"settings": replace(SMALL, epochs=0)}, "epochs must lie in"),
        ({"settings": replace(SMALL, max_length=8)}, "raise max_length"),
        ({"seeds": ()}, "between 1 and 20 seeds"),
        ({"seeds": (1, 1)}, "each once"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    change: dict[str, Any], said: str, texts: list[str]
) -> None:
    given: dict[str, Any] = {"texts": texts, "settings": SMALL, "seeds": (0,), **change}
    with pytest.raises(InvalidInputError, match=said):
        memorise(given["texts"], TOLD[0], given["settings"], given["seeds"])


def test_right_to_left_and_other_scripts_are_read(texts: list[str]) -> None:
    settings = replace(SMALL, epochs=1, n_generated=10)
    found = memorise(texts, "رقمي السري هو ٤٢", settings, (0,)).to_dict()
    assert found["n_values"] == 100 and found["prefix"] == "رقمي السري هو "


# Differential privacy


@pytest.mark.slow
def test_training_with_privacy_keeps_to_its_epsilon(texts: list[str]) -> None:
    pytest.importorskip("opacus")
    settings = replace(SMALL, model="transformer", epochs=3, hidden=16, batch_size=16)
    with pytest.raises(InvalidInputError, match="costs ε as well"):
        audit_model(texts, replace(settings, tokens="words"), AuditPlan(epsilon=4.0), 0)
    found = audit_model(texts, settings, AuditPlan(epsilon=4.0, n_canaries=60, n_guesses=30), 0)
    assert found.privacy is not None and 3.5 < found.privacy.epsilon <= 4.0
    assert found.found.epsilon <= found.privacy.epsilon and found.found.delta == 1e-5
    assert found.found.n_guesses == 30 and 0.2 < found.auc.value < 0.8


GRADIENTS = replace(SMALL, model="transformer", epochs=5, hidden=16, batch_size=4096)


def test_who_sees_each_step_shows_more_than_one_at_epsilon_four(texts: list[str]) -> None:
    pytest.importorskip("opacus")
    plan = AuditPlan(epsilon=4.0, access="gradients", n_canaries=4000, n_guesses=100)
    found = audit_model(texts, GRADIENTS, plan, 1)
    assert found.privacy is not None and found.auc.value > 0.6
    assert 1.0 <= found.found.epsilon <= found.privacy.epsilon
    assert found.shuffled.epsilon < 0.5


def test_an_audit_that_was_stopped_ends_as_one_that_was_not(
    texts: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("opacus")
    plan = AuditPlan(epsilon=4.0, access="gradients", n_canaries=500, n_guesses=50)
    whole = audit_model(texts, GRADIENTS, plan, 0)

    def stop(done: float, told: str) -> None:
        if "Epoch 3" in told:
            raise StoppedError("enough")

    with pytest.raises(StoppedError):
        audit_model(texts, GRADIENTS, plan, 0, checkpoint_dir=tmp_path, on_progress=stop)
    assert audit_model(texts, GRADIENTS, plan, 0, checkpoint_dir=tmp_path) == whole


def test_gradients_are_put_in_before_the_noise_and_read_after_it() -> None:
    weights = [torch.nn.Parameter(torch.zeros(2, 3)), torch.nn.Parameter(torch.zeros(4))]
    canaries = GradientCanaries(10, 10, np.arange(10) < 5, 2.0, 0)
    for weight in weights:
        weight.summed_grad = torch.full_like(weight, 7.0)
        weight.grad = torch.full_like(weight, 7.5)
    canaries.set_batch(np.array([0, 3]))
    canaries.add_to_gradients(weights)
    put = torch.cat([weight.summed_grad.view(-1) for weight in weights]).numpy() - 7.0
    assert np.flatnonzero(put).tolist() == sorted(canaries.places[[0, 3]])
    assert put.sum() == 4.0
    canaries.update_scores(weights)
    assert canaries.scores.tolist() == [0.5] * 10 and len(canaries) == 5


@pytest.mark.slow
def test_without_privacy_the_audit_shows_what_is_learned(texts: list[str]) -> None:
    settings = replace(SMALL, model="transformer", epochs=60, hidden=64, learning_rate=5e-3)
    found = audit_model(texts, settings, AuditPlan(n_canaries=40, n_guesses=40), 0)
    assert found.privacy is None and found.auc.value > 0.9
    assert found.found.epsilon >= 1.0 and found.shuffled.epsilon < 1.0


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (AuditPlan(epsilon=-1.0), "epsilon must be 0 or more"),
        (AuditPlan(n_canaries=10, n_guesses=11), "n_guesses between 1"),
        (AuditPlan(access="gradients"), "'gradients' needs private training"),
        (AuditPlan(epsilon=1.0, access="gradients", n_canaries=10**7), "weights of the model"),
    ],
)
def test_audits_that_cannot_be_are_refused(plan: AuditPlan, said: str, texts: list[str]) -> None:
    with pytest.raises(InvalidInputError, match=said):
        audit_model(texts, replace(SMALL, model="transformer"), plan, 0)


def test_privacy_needs_opacus_and_a_transformer(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = AuditPlan(epsilon=1.0, n_canaries=10, n_guesses=5)
    with pytest.raises(InvalidInputError, match="takes 'transformer'"):
        audit_model(texts, SMALL, plan, 0)
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(MissingDependencyError, match=r"pip install opacus=="):
        audit_model(texts, replace(SMALL, model="transformer"), plan, 0)
