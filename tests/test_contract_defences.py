"""One contract over every entry of the registry of defences.

The checks are plain functions, so that a defence of a test can be put to them as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.core.defences.registry import (
    DEFENCES,
    guarantee_of,
    make_defence,
)
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec, settings_of
from leakscope.core.studies.context import cell_context
from leakscope.core.studies.tradeoff.attack import attack_scores, releases_tokens
from leakscope.core.studies.tradeoff.study import TradeoffStudy
from leakscope.core.studies.tradeoff.texts import draw_texts, fold_text

TEXTS = ["the money river", "doctor", "the minister and the garden with winter"]
SMALL = {"dimension": 12}


def spec_of(name: str, **more: object) -> DefenceSpec:
    fields = DEFENCES[name].kind.__dataclass_fields__
    settings = {k: v for k, v in {**SMALL, "seed": 4, **more}.items() if k in fields}
    return DefenceSpec.of(name, settings)


def a_protected_encoder_is_an_encoder(name: str, encoder: TransformerEncoder) -> None:
    protected = make_defence(spec_of(name)).protect(encoder)
    vectors = protected.encode(TEXTS)
    assert vectors.shape == (3, protected.dimension) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert encoder.name in protected.name
    assert protected.fingerprint != encoder.fingerprint


def it_repeats_under_a_seed_and_reports_progress(name: str, encoder: TransformerEncoder) -> None:
    seen: list[float] = []
    one, other = (make_defence(spec_of(name)).protect(encoder) for _ in range(2))
    first = one.encode(TEXTS, lambda fraction, _: seen.append(fraction))
    assert first == pytest.approx(other.encode(TEXTS), abs=1e-6)
    assert one.fingerprint == other.fingerprint
    assert seen and seen[-1] == 1.0 and all(0 <= s <= 1 for s in seen)


def noise_is_fresh_at_every_call_and_place(name: str, encoder: TransformerEncoder) -> None:
    if not DEFENCES[name].draws_noise:
        return
    strong = {"eta": 2.0, "epsilon": 0.5, "k": 8}
    texts = ["minister money river garden doctor"] * 6
    one, *free = (
        make_defence(spec_of(name, **strong, seed=seed)).protect(encoder)
        for seed in (5, None, None)
    )
    first = one.encode(texts)
    assert len(np.unique(first, axis=0)) > 1 and (first != one.encode(texts)).any()
    assert free[0].fingerprint != free[1].fingerprint
    assert (free[0].encode(texts) != free[1].encode(texts)).any()


def settings_are_documented_and_checked(name: str, encoder: TransformerEncoder) -> None:
    entry = DEFENCES[name]
    assert entry.title and entry.summary.endswith(".") and entry.kind.__doc__ and entry.cost
    for key, field in settings_of(entry.kind).items():
        assert field.metadata["help"]
        if field.metadata["low"] is not None:
            with pytest.raises(InvalidInputError, match=key):
                make_defence(DefenceSpec.of(name, {key: field.metadata["low"] - 1}))
    with pytest.raises(InvalidInputError, match="no setting 'nonsense'"):
        make_defence(DefenceSpec.of(name, {"nonsense": 1}))


CHECKS = (
    a_protected_encoder_is_an_encoder,
    it_repeats_under_a_seed_and_reports_progress,
    noise_is_fresh_at_every_call_and_place,
    settings_are_documented_and_checked,
)


@pytest.mark.parametrize("name", DEFENCES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_defence(
    check: Callable[..., None], name: str, tiny_encoder: TransformerEncoder
) -> None:
    check(name, tiny_encoder)


class Known:
    """Gives each text the vector that it spells."""

    name, dimension, fingerprint = "known", 4, "f"

    def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
        return np.array([text.split() for text in texts], np.float32)


@pytest.mark.parametrize(
    "name",
    [name for name, each in DEFENCES.items() if each.acts_on == "vector" and not each.draws_noise],
)
def test_a_vector_is_protected_alike_whatever_stands_beside_it(name: str) -> None:
    protected = make_defence(spec_of(name, dimension=2)).protect(Known())  # type: ignore[arg-type]
    texts = ["0.26 -1.27 0.1 0.634", "30 -20 10 5", "0.001 0.002 -0.003 0.004"]
    alone = np.concatenate([protected.encode([text]) for text in texts])
    assert protected.encode(texts).tolist() == alone.tolist()


def test_an_unknown_defence_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="text_to_text"):
        make_defence("magic")


def test_vector_defences_by_hand() -> None:
    plain = Known().encode(["0.26 -1.27 0.0 0.634"])

    def protect(name: str, **settings: object) -> np.ndarray:
        protected = make_defence(DefenceSpec.of(name, settings)).protect(Known())
        return protected.encode(["0.26 -1.27 0.0 0.634"])[0]

    assert protect("none").tolist() == plain[0].tolist()
    assert protect("rounding", decimals=1) == pytest.approx([0.3, -1.3, 0.0, 0.6])
    assert protect("int8") == pytest.approx([0.26, -1.27, 0.0, 0.63], abs=1e-6)
    assert protect("binary") == pytest.approx([0.5, -0.5, 0.5, 0.5])
    assert protect("truncation", dimension=2) == pytest.approx([0.26, -1.27])
    assert protect("gaussian", sigma=0.0, seed=0) == pytest.approx(plain[0])
    with pytest.raises(InvalidInputError, match=r"\[1, 4\]"):
        protect("truncation", dimension=5)


def test_gaussian_noise_has_its_deviation_and_projections_keep_lengths(
    tiny_encoder: TransformerEncoder,
) -> None:
    plain = tiny_encoder.encode(TEXTS[:1] * 500)
    noise = make_defence(DefenceSpec.of("gaussian", {"sigma": 0.2, "seed": 0}))
    moved = noise.protect(tiny_encoder).encode(TEXTS[:1] * 500) - plain
    assert moved.std() == pytest.approx(0.2, rel=0.02) and abs(moved.mean()) < 0.01
    specs = (DefenceSpec.of("random_projection", {"dimension": 24, "seed": s}) for s in range(200))
    lengths = [
        np.linalg.norm(make_defence(spec).protect(tiny_encoder).encode(TEXTS[:1])) for spec in specs
    ]
    assert np.mean(np.square(lengths)) == pytest.approx(np.square(plain[0]).sum(), rel=0.15)


CHAINS = (
    "text_to_text:eta=20+int8",
    "santext:epsilon=8+token_representation:eta=40+truncation:dimension=12",
    "custext:k=8+text_to_text:eta=30",
    "truncation:dimension=20+gaussian:sigma=0.1+rounding",
)


@pytest.mark.parametrize("told", CHAINS)
def test_a_chain_is_an_encoder(told: str, tiny_encoder: TransformerEncoder) -> None:
    spec = read_defence(told)
    seeded = DefenceSpec.of(spec.name, {**dict(spec.settings), "seed": 4})
    one, other = (make_defence(seeded).protect(tiny_encoder) for _ in range(2))
    seen: list[float] = []
    vectors = one.encode(TEXTS, lambda done, _: seen.append(done))
    assert vectors.shape == (3, one.dimension) and vectors.dtype == np.float32
    assert vectors == pytest.approx(other.encode(TEXTS), abs=1e-6)
    assert one.fingerprint == other.fingerprint != tiny_encoder.fingerprint
    assert one.name.startswith(tiny_encoder.name) and one.name.count(" + ") == told.count("+") + 1
    assert seen and seen[-1] == 1.0
    free = [make_defence(spec).protect(tiny_encoder) for _ in range(2)]
    assert free[0].fingerprint != free[1].fingerprint
    assert (free[0].encode(TEXTS) != free[1].encode(TEXTS)).any()


def test_a_chain_does_what_its_stages_do_one_by_one(tiny_encoder: TransformerEncoder) -> None:
    spec = read_defence("text_to_text:eta=1e6+rounding:decimals=2+truncation:dimension=5")
    found = make_defence(spec).protect(tiny_encoder).encode(TEXTS)
    assert found == pytest.approx(np.round(tiny_encoder.encode(TEXTS), 2)[:, :5], abs=0.011)
    # The order counts: cutting before a random projection leaves it another shape to work on.
    two = make_defence(read_defence("truncation:dimension=9+random_projection:dimension=4"))
    assert two.protect(tiny_encoder).encode(TEXTS).shape == (3, 4)
    # Texts first, then the vectors of their tokens: noise on tokens of the privatised text.
    strong = make_defence(read_defence("santext:epsilon=1e6+token_representation:eta=1e7"))
    assert strong.protect(tiny_encoder).encode(TEXTS) == pytest.approx(
        tiny_encoder.encode(TEXTS), abs=1e-3
    )


def test_noise_goes_through_every_stage(tiny_encoder: TransformerEncoder) -> None:
    hidden = make_defence(read_defence("text_to_text:eta=0.001+binary"))
    found = hidden.protect(tiny_encoder).encode(TEXTS[:1] * 20)
    own = np.sign(tiny_encoder.encode(TEXTS[:1]))
    assert set(np.unique(np.abs(found).round(6))) == {np.float32(1 / np.sqrt(32)).round(6)}
    assert len(np.unique(found, axis=0)) > 10 and (np.sign(found) != own).any()


def test_no_two_stages_draw_the_same_numbers(tiny_encoder: TransformerEncoder) -> None:
    from leakscope.core.defences.chain import Chain

    spec = DefenceSpec.of("gaussian+sequence_representation", {"seed": 3})
    chain = make_defence(spec)
    assert isinstance(chain, Chain)
    seeds = [stage.seed for _, stage in chain.stages]
    assert len(set(seeds)) == 2 and None not in seeds
    assert make_defence(spec) == chain
    free = make_defence("gaussian+sequence_representation")
    assert isinstance(free, Chain) and [stage.seed for _, stage in free.stages] == [None, None]


def test_a_matrix_that_everybody_knows_is_no_draw(tiny_encoder: TransformerEncoder) -> None:
    """Vectors of two runs can be held against each other: only noise differs."""
    name = "sequence_representation+random_projection"
    told = {"sequence_representation.eta": 1e9, "random_projection.dimension": 8}
    one, other = (make_defence(DefenceSpec.of(name, told)).protect(tiny_encoder) for _ in range(2))
    assert np.allclose(one.encode(TEXTS[:2]), other.encode(TEXTS[:2]), atol=1e-5)
    seeded = make_defence(DefenceSpec.of(name, told | {"seed": 5})).protect(tiny_encoder)
    assert np.allclose(one.encode(TEXTS[:2]), seeded.encode(TEXTS[:2]), atol=1e-5)


@pytest.mark.parametrize(
    ("told", "promised"),
    [
        ("custext", "within a set"),
        ("custext:mapping=aggressive", ""),
        ("custext:mapping=conservative+int8", "later stages keep this guarantee"),
        ("custext:mapping=aggressive+int8", ""),
        (
            "custext:mapping=aggressive+gaussian+sequence_representation",
            "for the output of CusText and",
        ),
        ("truncation", ""),
        ("text_to_text+int8", f"{DEFENCES['text_to_text'].guarantee}; later stages keep this"),
        ("gaussian+int8", ""),
        ("int8+sequence_representation", "for the output of 8-bit quantising"),
        ("santext+sequence_representation", "later stages keep this guarantee"),
        ("santext+sequence_representation", "for the output of SanText"),
    ],
)
def test_a_promise_is_that_of_the_settings(told: str, promised: str) -> None:
    found = guarantee_of(read_defence(told))
    assert (promised in found) if promised else found == ""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("int8+text_to_text:eta=60", "Change the order: text_to_text+int8"),
        ("token_representation+santext", "santext changes texts, but token_representation outputs"),
        ("gaussian+token_representation+int8", "token_representation+gaussian+int8"),
        ("int8+int8", "is listed twice. Use it once"),
        ("text_to_text:eta=60++int8", "must be a number"),
        ("text_to_text:eta=60+int8:level=3", "has no setting 'level'"),
        ("sequence_representation+token_representation", "Change the order: token_representation+"),
        ("none+int8", "Remove it"),
        ("int8+", "must be among none, "),
        ("+", "must be among none, "),
        ("int8+gausian", "Did you mean 'gaussian'"),
        ("text_to_text:etta=60+int8", "Did you mean 'eta'"),
        ("text_to_text:eta=much+int8", "must be a number"),
        ("text_to_text:eta+int8", "SETTING=VALUE"),
        ("text_to_text:eta=0+int8", "eta"),
    ],
)
def test_what_cannot_be_chained_is_refused_with_the_remedy(told: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        read_defence(told)
    assert said in str(refusal.value), str(refusal.value)


def test_a_setting_of_a_chain_says_whose_it_is() -> None:
    with pytest.raises(InvalidInputError, match=r"Name its stage: text_to_text\.eta"):
        make_defence(DefenceSpec.of("text_to_text+int8", {"eta": 60.0}))
    with pytest.raises(InvalidInputError, match="'sigma'"):
        make_defence(DefenceSpec.of("text_to_text+int8", {"int8.sigma": 60.0}))


def test_a_plus_in_a_number_joins_nothing() -> None:
    spec = read_defence("text_to_text:eta=1e+3+gaussian:sigma=1e-2")
    assert spec.name == "text_to_text+gaussian"
    assert dict(spec.settings) == {"text_to_text.eta": 1000.0, "gaussian.sigma": 0.01}
    assert read_defence("gaussian:sigma=1e+0") == DefenceSpec.of("gaussian", {"sigma": 1.0})


def test_a_cell_of_a_chain_holds_what_its_stages_depend_on(monkeypatch: Any) -> None:
    from dataclasses import replace

    cell = {"defence": "text_to_text+int8", "defence_settings": {"text_to_text.eta": 60.0}}
    before = cell_context(cell)
    monkeypatch.setitem(DEFENCES, "int8", replace(DEFENCES["int8"], version=2))
    assert cell_context(cell) != before and cell_context(cell)["versions"] == {"defence int8": 2}


@pytest.mark.slow
@pytest.mark.parametrize("told", ["text_to_text:eta=3+rounding:decimals=1", "custext:k=8+tem"])
def test_the_attackers_of_the_trade_off_run_on_chains(
    told: str, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    spec = read_defence(told)
    texts = draw_texts(list({fold_text(t): t for t in small_texts}.values()), 200, 60, 0)
    names = ("tuned", "search", "tokens", "posterior")
    small = (("vocabulary_size", 40), ("hidden", 8), ("epochs", 2), ("device", "cpu"))
    study = TradeoffStudy(defences=(told,), attackers=names, attack_settings=small)
    cells = [cell for cell in study.cells() if cell["part"] == "attack" and cell["seed"] == 0]
    has_tokens = releases_tokens(spec.name)
    assert len(cells) == (2 if has_tokens else 1), "the likeliest tokens are read in a cell apart"
    scores: dict[str, Any] = {}
    took: dict[str, float] = {}
    for cell in cells:
        assert cell["defence"] == spec.name and cell["defence_settings"] == dict(spec.settings)
        found, facts = attack_scores({**cell, "n_auxiliary": 200}, tiny_encoder, texts)
        scores |= found
        took |= facts["attacker_seconds"]
    for name in ("tuned", "search"):
        assert f"token_set_f1: {name}" in scores and name in took
    for name in ("tokens", "posterior"):
        assert (f"token_set_f1: {name}" in scores) == has_tokens
        assert (name in took) == has_tokens
    assert {score.n for name, score in scores.items() if "token_set" in name} == {60}


def test_an_attacker_applies_what_is_certain_of_a_chain(tiny_encoder: TransformerEncoder) -> None:
    chain: Any = make_defence(read_defence("text_to_text:eta=3+rounding:decimals=1"))
    certain = chain.deterministic.protect(tiny_encoder).encode(TEXTS)
    assert certain == pytest.approx(np.round(tiny_encoder.encode(TEXTS), 1), abs=1e-5)
    noisy: Any = make_defence(read_defence("text_to_text:eta=3+gaussian"))
    assert noisy.deterministic.stages == ()
