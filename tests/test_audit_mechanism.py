"""The audit passes true mechanisms and catches broken ones; its command says so."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.audit import choices as audits
from leakscope.core.defences.metric_dp.audit.choices import draw_in_processes
from leakscope.core.defences.metric_dp.audit.flaws import FLAWS, NUMBER_FLAWS, BrokenMechanism
from leakscope.core.defences.metric_dp.audit.mechanism import (
    CHOICE,
    KINDS,
    N_CALLS,
    Audit,
    audit,
    defence_factory,
    list_untested,
    make_plan,
    run_mechanism,
)
from leakscope.core.defences.metric_dp.audit.noise_law import Stars, law_tests, link_tests
from leakscope.core.defences.metric_dp.noise import draw_noise
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.deniability.mechanism_audit import BY_NOISE

KIND = {name: DEFENCES[name].acts_on for name in BY_NOISE}


def broken(kind: str, flaw: str, eta: float, seed: int | None) -> BrokenMechanism:
    return BrokenMechanism(kind=kind, flaw=flaw, eta=eta, seed=seed)


@pytest.mark.parametrize("name", BY_NOISE)
@pytest.mark.parametrize("eta", [1e-3, 75.0, 2000.0])
def test_true_mechanisms_pass_at_every_eta(name: str, eta: float) -> None:
    found = audit(defence_factory(name, eta), KIND[name], eta, seed=3, alpha=1e-4)
    assert not found.is_refuted, found.refuted_by
    assert len(found.p_values) >= 12
    assert found.n_draws == (4000 if name == "text_to_text" else 5900)


def audited(kind: str, flaw: str, **options: Any) -> Audit:
    return audit(partial(broken, kind, flaw, 75.0), kind, 75.0, seed=5, alpha=1e-3, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "flaw"),
    [(kind, flaw) for kind in KINDS for flaw in (FLAWS if kind != "vector" else NUMBER_FLAWS)],
)
def test_broken_mechanisms_are_caught(kind: str, flaw: str) -> None:
    found = audited(kind, flaw)
    assert found.is_refuted
    told = found.to_dict()
    assert told["is_refuted"] and told["refuted_by"] == list(found.refuted_by)


@pytest.mark.parametrize("flaw", ["floating-point release", "noise in float16"])
def test_rounding_that_reveals_the_input_refutes_the_promise(flaw: str) -> None:
    found = audited("vector", flaw)
    assert found.is_promise_refuted and found.to_dict()["is_promise_refuted"]
    for bound in found.bounds.values():
        assert bound.promised == pytest.approx(1, abs=1e-3) and bound.lower_bound > 2
    format_name = "float16" if "float16" in flaw else "float32"
    assert all(format_name in bound.view for bound in found.bounds.values())


def test_a_law_that_differs_a_little_is_not_called_a_broken_promise() -> None:
    found = audited("vector", "noise × 1.02")
    assert found.is_refuted and not found.is_promise_refuted


def test_what_shows_in_many_dimensions_alone_is_caught_in_the_encoders_own() -> None:
    assert not audited("vector", "Gamma of shape min(n, 100)", dimension=64).is_refuted
    found = audited("vector", "Gamma of shape min(n, 100)", dimension=384)
    assert all("384 dimensions" in name for name in found.refuted_by) and found.is_refuted


def test_the_floating_point_sum_in_a_shipped_mechanism_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def floating(vectors: np.ndarray, noise: np.ndarray, scale: float) -> np.ndarray:
        return vectors + noise.astype(np.float32)

    monkeypatch.setattr("leakscope.core.defences.metric_dp.release.release", floating)
    assert audit(defence_factory("token_representation", 75.0), "tokens", 75.0).is_promise_refuted


def test_outputs_that_are_not_finite_are_refuted() -> None:
    make = partial(broken, "vector", "noise in float16", 1e-5)
    assert audit(make, "vector", 1e-5).refuted_by == ("outputs: all finite",)


@pytest.mark.parametrize("kind", [*KINDS, CHOICE])
def test_what_is_not_tested_is_listed(kind: str) -> None:
    told = list_untested(kind)
    assert len(told) >= 7 and all(each.endswith(".") for each in told)
    assert any("odds multiply" in each for each in told)


@pytest.mark.parametrize("name", BY_NOISE)
def test_half_the_noise_in_a_shipped_mechanism_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(n: int, dimension: int, eta: float, **how: Any) -> np.ndarray:
        return draw_noise(n, dimension, eta, **how) / 2

    module = "mechanisms" if name == "text_to_text" else "release"
    monkeypatch.setattr(f"leakscope.core.defences.metric_dp.{module}.draw_noise", half)
    assert audit(defence_factory(name, 75.0), KIND[name], 75.0).is_refuted


def test_noise_in_many_dimensions_is_tested_alike() -> None:
    rng = np.random.default_rng(0)
    noise = draw_noise(4000, 384, 75.0, rng=rng).astype(np.float64).reshape(25, 160, 384)
    inputs = rng.standard_normal((160, 384))
    good = {**law_tests(noise, inputs, 75.0), **link_tests(noise)}
    assert min(good.values()) > 1e-4, good
    assert min(law_tests(noise / 1.02, inputs, 75.0).values()) < 1e-4
    towards = noise + 0.02 * inputs
    assert law_tests(towards, inputs, 75.0)["direction: not towards the input"] < 1e-4
    lame = noise.copy()
    lame[1:] = lame[:-1]
    assert link_tests(lame)["no draw twice"] == 0


def test_the_law_of_a_star_is_that_of_the_noise() -> None:
    stars = Stars.at(1.0)
    law = stars.simulate_counts(50_000, np.random.default_rng(0))
    noise = draw_noise(50_000, 4, 1.0, rng=np.random.default_rng(1))
    centre = int(stars.centres[2])
    near = np.linalg.norm(
        (stars.table[centre] + noise)[:, None] - stars.table[None, centre : centre + stars.size],
        axis=2,
    ).argmin(1)
    shares = np.bincount(near, minlength=stars.size) / 50_000
    assert shares == pytest.approx(law / 50_000, abs=0.006)
    assert law[0] < 10, "a centre hardly returns to itself"


def test_levels_are_shared_among_the_tests() -> None:
    # Holm at 0.05 with three tests: 0.05/3, then 0.05/2, then 0.05.
    holm_rejected = audits.holm_rejected
    assert holm_rejected({"a": 0.016, "b": 0.024, "c": 0.9}, 0.05) == ("a", "b")
    assert holm_rejected({"a": 0.017, "b": 0.001, "c": 0.04}, 0.05) == ("b", "a", "c")
    assert holm_rejected({"a": 0.017, "b": 0.024, "c": 0.04}, 0.05) == ()


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="acts on"):
        make_plan("sound", 75.0, 0)
    with pytest.raises(InvalidInputError, match="eta"):
        make_plan("text", 1e13, 0)
    with pytest.raises(InvalidInputError, match="alpha"):
        audit(defence_factory("text_to_text", 75.0), "text", 75.0, alpha=1.0)


@pytest.mark.slow
def test_other_processes_draw_noise_of_their_own() -> None:
    found = audit(
        defence_factory("token_representation", 75.0),
        "tokens",
        75.0,
        alpha=1e-4,
        elsewhere=partial(draw_in_processes, "token_representation", 0),
    )
    assert not found.is_refuted and "between processes: no draw twice" in found.p_values
    make = defence_factory("sequence_representation", 75.0)
    one = run_mechanism(make_plan("vector", 75.0, 0), make, None, n_calls=N_CALLS)
    stuck = audit(make, "vector", 75.0, elsewhere=lambda _: (one, one))
    assert "between processes: no draw twice" in stuck.refuted_by


def test_the_command_prints_tests_or_json(core: Any) -> None:
    given = ["audit-mechanism", "--mechanism", "sequence_representation", "--no-processes"]
    told = core(*given, "--seed", "0", "4")
    assert told.status == 0 and told.out.count("not refuted by 38 tests") == 2
    assert told.out.count("Not tested (sequence_representation):") == 1
    assert "odds multiply" in told.out
    answer = core(*given, "--eta", "600", "--dimension", "96", "--json").json()
    (only,) = answer["audits"]
    assert answer["eta"] == 600 and not only["is_refuted"] and len(only["p_values"]) == 38
    assert answer["dimension"] == 96 and "norm: its shape, 96 dimensions" in only["p_values"]
    assert only["not_tested"] == list(list_untested("vector"))
    assert {odds["promised"] > odds["at_least"] for odds in only["log_odds"].values()} == {True}
    again = core(*given, "--eta", "600", "--dimension", "96", "--json").json()["audits"][0][
        "p_values"
    ]
    is_same = {name: again[name] == p for name, p in only["p_values"].items()}
    assert all(same for name, same in is_same.items() if "instances" not in name)


def test_the_command_fails_where_a_mechanism_is_refuted(
    core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for flaw, said in (
        ("noise ÷ 1.2", "does not follow the distribution"),
        ("floating-point release", "the guarantee does not hold"),
    ):
        make = partial(broken, "vector", flaw, 75.0)
        monkeypatch.setattr(audits, "defence_factory", lambda name, eta, make=make: make)
        told = core("audit-mechanism", "--mechanism", "sequence_representation", "--no-processes")
        assert told.status == 2 and "p = " in told.out and "refuted" in told.err
        assert said in told.out
