"""The audit passes the mechanisms that choose tokens, and refutes a broken one of each."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from core.defences.metric_dp.audit.choice_laws import LAWS, PROMISES, sets_by_hand
from core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    choice_plan,
    settings_at,
    shipped_choice,
)
from core.defences.metric_dp.audit.elsewhere import drawn_by_processes
from core.defences.metric_dp.audit.flawed_choices import FLAWED_CHOICES, FlawedChoice
from core.defences.metric_dp.audit.named import audit_named
from core.defences.registry import make_defence
from core.errors import InvalidInputError
from core.protocols import Defence
from core.specs import DefenceSpec


def flawed(name: str, flaw: str, seed: int | None) -> FlawedChoice:
    return FlawedChoice(name=name, flaw=flaw, strength=2.0, seed=seed)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("strength", [0.05, 2.0, 500.0])
def test_true_mechanisms_pass_at_every_strength(name: str, strength: float) -> None:
    found = audit_named(name, strength, seed=3, alpha=1e-4)
    assert not found.is_refuted, found.p_values
    assert len(found.p_values) == 9 and found.n_draws == 4000


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("flaw", FLAWED_CHOICES)
def test_broken_mechanisms_are_caught(name: str, flaw: str) -> None:
    found = audit_choice(partial(flawed, name, flaw), choice_plan(name, 2.0, 5), alpha=1e-3)
    assert found.is_refuted, found.p_values


@pytest.mark.parametrize("name", CHOICES)
def test_a_promise_that_is_broken_is_refuted_by_the_promise_alone(name: str) -> None:
    # Tokens that come back unchanged nearly always: odds far beyond what is promised.
    asked = choice_plan(name, 0.05, 0)
    settings = settings_at(name, 0.05 * 400)
    if name == "text_to_text_ranked":
        settings["c"] = 5.0  # the first rank alone

    def strong(seed: int | None) -> Defence:
        return make_defence(DefenceSpec.of(name, settings | {"seed": seed}))

    found = audit_choice(strong, asked, alpha=0.01)
    broken = [test for test in found.refuted_by if test.startswith("promise")]
    assert broken, found.p_values


@pytest.mark.parametrize("name", CHOICES)
def test_the_laws_keep_their_promises_by_enumeration(name: str) -> None:
    asked = choice_plan(name, 2.0, 1)
    table = asked.encoder.table.astype(np.float64)
    settings = settings_at(name, 2.0)
    chances = LAWS[name](table, 2.0, settings)
    assert chances.sum(1) == pytest.approx(1)
    groups = sets_by_hand(table, settings["k"]) if name == "custext" else [range(24)]
    # SanText+ promises for outputs that are sensitive; the ranked law is a simulation.
    outputs = slice(4, None) if name == "santext_plus" else slice(None)
    slack = 0.2 if name == "text_to_text_ranked" else 1e-9
    tightest = 0.0
    for group in groups:
        for x in group:
            for y in group:
                one, other = chances[x, outputs], chances[y, outputs]
                seen = (one > 2e-3) | (slack < 0.1) & (one > 0)
                odds = np.log(one[seen] / other[seen])
                promised = PROMISES[name](table, 2.0, settings, x, y)
                assert odds.max() <= promised + slack
                tightest = max(tightest, float(odds.max()) / max(promised, 1e-9))
    assert tightest > 0.3, "the bound is worth something"


def test_a_half_of_epsilon_is_all_that_may_be_lost() -> None:
    # Without the ½ of SanText the promise fails for some pair: the enumeration would see it.
    asked = choice_plan("santext", 2.0, 1)
    table = asked.encoder.table.astype(np.float64)
    chances = LAWS["santext"](table, 4.0, {})
    odds = np.log(chances[:, None] / chances[None])
    promised = np.array([
        [PROMISES["santext"](table, 2.0, {}, x, y) for y in range(24)] for x in range(24)
    ])  # fmt: skip
    assert (odds > promised[..., None] + 1e-9).any()


def test_other_processes_draw_on_their_own() -> None:
    found = audit_named("santext", 2.0, alpha=1e-4, has_processes=True)
    assert not found.is_refuted and "between processes" in found.p_values
    asked = choice_plan("santext", 2.0, 0)
    one, _ = drawn_by_processes("santext", 0, asked)
    make = shipped_choice("santext", 2.0)
    stuck = audit_choice(make, asked, elsewhere=lambda _: (one, one))
    assert "between processes" in stuck.refuted_by


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), 1e308])
def test_a_strength_that_shows_nothing_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        choice_plan("tem", bad, 0)
