"""The audit passes the mechanisms that choose tokens, and refutes a broken one of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from leakscope.core.cli.privatize import MECHANISMS
from leakscope.core.defences.metric_dp.audit import choices
from leakscope.core.defences.metric_dp.audit.choice_laws import LAWS, PROMISES, reference_sets
from leakscope.core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    audit_named,
    choice_factory,
    choice_plan,
    draw_in_processes,
    settings_at,
)
from leakscope.core.defences.metric_dp.audit.flaws import FLAWED_CHOICES, FlawedChoice
from leakscope.core.defences.metric_dp.exponential_mechanism import tem_gamma
from leakscope.core.defences.metric_dp.mechanisms import draw_ranks
from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Defence
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.mechanism_audit import BY_NOISE


def flawed(name: str, flaw: str, seed: int | None) -> FlawedChoice:
    return FlawedChoice(name=name, flaw=flaw, strength=2.0, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("strength", [0.05, 2.0, 500.0])
def test_true_mechanisms_pass_at_every_strength(name: str, strength: float) -> None:
    found = audit_named(name, strength, seed=3, alpha=1e-4)
    assert not found.is_refuted, found.p_values
    assert len(found.p_values) == 9 and found.n_draws == 4000


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("flaw", FLAWED_CHOICES)
def test_broken_mechanisms_are_caught(name: str, flaw: str) -> None:
    found = audit_choice(partial(flawed, name, flaw), choice_plan(name, 2.0, 5), alpha=1e-3)
    assert found.is_refuted, found.p_values


OWN_FLAWS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "SanText without its half": (
        "santext",
        "exponential_mechanism.santext_log_weights",
        lambda d, *, epsilon: -epsilon * d,
    ),
    "SanText of squared distances": (
        "santext",
        "exponential_mechanism.santext_log_weights",
        lambda d, *, epsilon: -0.5 * epsilon * d**2,
    ),
    "SanText+ without its half": (
        "santext_plus",
        "exponential_mechanism.santext_log_weights",
        lambda d, *, epsilon: -epsilon * d,
    ),
    "SanText+ that takes all for frequent": (
        "santext_plus",
        "exponential_mechanism.sensitive_tokens",
        lambda encoder, share, candidates: np.arange(len(encoder.tokens)) >= 12,
    ),
    "CusText by distances that are not scaled to their set": (
        "custext",
        "custext.custext_log_weights",
        lambda d, *, epsilon: -0.5 * epsilon * d,
    ),
    "TEM without γ": ("tem", "exponential_mechanism.tem_gamma", lambda epsilon, beta, n: 1e9),
    "TEM with half of γ": (
        "tem",
        "exponential_mechanism.tem_gamma",
        lambda epsilon, beta, n: np.log((1 - beta) * (n - 1) / beta) / 2,
    ),
    "ranks that fall twice as fast": (
        "text_to_text_ranked",
        "mechanisms.draw_ranks",
        lambda n, fall, most, rng: draw_ranks(n, 2 * fall, most, rng),
    ),
}
"""What is wrong in a mechanism's own mathematics: which it is, what is put where."""


@pytest.mark.parametrize("flaw", OWN_FLAWS)
def test_a_shipped_mechanism_whose_mathematics_are_wrong_is_caught(
    flaw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, place, wrong = OWN_FLAWS[flaw]
    monkeypatch.setattr(f"leakscope.core.defences.metric_dp.{place}", wrong)
    found = audit_named(name, 2.0, seed=5, alpha=1e-3)
    assert found.is_refuted, found.p_values
    assert {each for each, *_ in OWN_FLAWS.values()} == {*CHOICES}, "one of each at least"


def test_the_vocabulary_of_an_audit_shows_both_sides_of_gamma() -> None:
    asked = choice_plan("tem", 2.0, 0)
    gamma = tem_gamma(2.0, settings_at("tem", 2.0)["beta"], len(asked.encoder.table))
    far = np.linalg.norm(asked.encoder.table[:, None] - asked.encoder.table[None], axis=2) > gamma
    assert 0.2 < far.mean() < 0.8


def test_every_mechanism_that_promises_something_is_audited() -> None:
    assert {*MECHANISMS} == {*CHOICES} | {*BY_NOISE}
    promising = {n for n, entry in DEFENCES.items() if entry.guarantee}
    assert promising == {*MECHANISMS}


@pytest.mark.parametrize("name", CHOICES)
def test_the_command_passes_the_mechanism_and_fails_for_a_broken_one(
    core: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["audit-mechanism", "--mechanism", name, "--no-processes"]
    (only,) = core(*given, "--json").json()["audits"]
    assert only["mechanism"] == name and not only["is_refuted"]

    monkeypatch.setattr(
        choices, "choice_factory", lambda name, _: partial(flawed, name, "10 % left as they are")
    )
    told = core(*given)
    assert told.status == 2 and f"error: {name} refuted" in told.err and "p = " in told.out


@pytest.mark.parametrize("name", CHOICES)
def test_a_promise_that_is_broken_is_refuted_by_the_promise_alone(name: str) -> None:
    # Tokens that come back unchanged nearly always: odds far beyond what is promised.
    asked = choice_plan(name, 0.05, 0)
    settings = settings_at(name, 0.05 * 400)
    if name == "text_to_text_ranked":
        settings["c"] = 5.0  # the first rank alone
    if name == "tem":
        settings["beta"] = 1e-3  # few chances beyond γ

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
    groups = reference_sets(table, settings["k"]) if name == "custext" else [range(24)]
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
    promised = np.array(
        [[PROMISES["santext"](table, 2.0, {}, x, y) for y in range(24)] for x in range(24)]
    )
    assert (odds > promised[..., None] + 1e-9).any()


@pytest.mark.slow
def test_other_processes_draw_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw_in_processes("santext", 0, choice_plan("santext", 2.0, 0))
    monkeypatch.setattr(choices, "draw_in_processes", lambda *_: drawn)
    found = audit_named("santext", 2.0, alpha=1e-4, has_processes=True)
    assert not found.is_refuted and "between processes" in found.p_values
    stuck = audit_choice(
        choice_factory("santext", 2.0),
        choice_plan("santext", 2.0, 0),
        elsewhere=lambda _: (drawn[0], drawn[0]),
    )
    assert "between processes" in stuck.refuted_by


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), 1e308])
def test_a_strength_that_shows_nothing_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        choice_plan("tem", bad, 0)
