"""A small training against an adversary: whose sentences are whose, and what must not be."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.attacks.inversion import shipped
from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import CoreError, StoppedError
from leakscope.core.results import Score
from leakscope.core.studies.training import trial as training_trial
from leakscope.core.studies.training.summary import TrialRequest
from leakscope.core.studies.training.trial import try_adversary

SMALL = TrialRequest(weight=3.0, n_defence=150, n_known=80, n_targets=40, epochs=4)


@pytest.fixture(autouse=True)
def at_hand(
    minilm: TransformerEncoder, small_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_trial, "shared_encoder", lambda spec: minilm)
    monkeypatch.setattr(shipped, "WEIGHTS", small_weights)


def test_no_sentence_is_learnt_from_and_attacked(bundled: list[str]) -> None:
    twice = [*bundled[:300], *bundled[:300]]
    sides = training_trial._split_sentences(twice, SMALL)
    parts = (sides.defence, sides.known, sides.targets)
    assert [len(part) for part in parts[:2]] == [150, 80] and 0 < len(sides.targets) <= 40
    assert len(set().union(*parts)) == sum(map(len, parts))
    assert len(sides.targets) + sides.n_near_duplicates == 40
    again = training_trial._split_sentences(twice, SMALL)
    assert again == sides, "the same request draws the same sentences"


def test_a_target_that_repeats_another_is_not_attacked() -> None:
    own = [
        f"the harbour master number {i} counted {i + 7} crates of oranges at noon"
        for i in range(300)
    ]
    assert not training_trial._split_sentences(own, SMALL).targets


@pytest.mark.slow
def test_a_trial_holds_the_plain_the_control_and_the_defence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnt: list[tuple[float, list[str]]] = []
    real = AdversarialAdapter.fit

    def spied(self: Any, encoder: Any, texts: Any, *rest: Any, **more: Any) -> Any:
        learnt.append((self.weight, list(texts)))
        return real(self, encoder, texts, *rest, **more)

    monkeypatch.setattr(AdversarialAdapter, "fit", spied)
    told: list[tuple[float, str]] = []
    found = try_adversary(SMALL, lambda fraction, message: told.append((fraction, message)))
    plain, control, trained = found.settings
    assert (plain.kind, control.weight, trained.weight) == ("none", 0.0, 3.0)
    assert not plain.during and len(control.during) == len(trained.during) == 4
    own = list(training_trial._split_sentences(bundled_sentences(), SMALL).defence)
    assert learnt == [(0.0, own), (3.0, own)], "of the defence's own texts alone"
    n = {s.strongest[1].n for s in found.settings}
    assert len(n) == 1 and 20 < n.pop() <= 40, "all on the same sentences"
    assert all(s.strongest[1].has_interval for s in found.settings)
    assert plain.strongest[1].chance == trained.strongest[1].chance
    assert found.trap.promised == trained.during[-1]
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] <= 1
    assert any("the adversary recovers" in message for _, message in told)


@pytest.fixture
def no_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the fresh attackers, where nothing is said of them."""
    monkeypatch.setattr(training_trial, "_attack", lambda *given: (Score(1.0), "nobody"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_attack")
def test_nothing_hidden_is_its_own_control() -> None:
    found = try_adversary(replace(SMALL, weight=0.0))
    assert [s.kind for s in found.settings] == ["none", "adversarial"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_attack")
@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf, 1e308])
def test_a_weight_that_is_none_or_runs_away_is_told(weight: float) -> None:
    with pytest.raises(CoreError, match="weight"):
        try_adversary(replace(SMALL, weight=weight))


@pytest.mark.slow
@pytest.mark.usefixtures("no_attack")
def test_it_can_be_stopped() -> None:
    def stop(fraction: float, message: str) -> None:
        if "adversary recovers" in message:
            raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        try_adversary(SMALL, stop)
