"""What an η promises stands beside it, in slides, tables and notes, from distances kept."""

from __future__ import annotations

import re

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.exponential_guarantee import guarantees_of
from leakscope.core.defences.metric_dp.shipped_distances import (
    SHIPPED,
    load_distances,
    shipped_guarantees,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import (
    format_odds_cell,
    guarantees_of_setting,
    odds_note,
)
from scripts.deniability_distances import measure_distances

SETTINGS = (
    DefenceSpec.of("text_to_text", {"eta": 75.0}),
    DefenceSpec.of("sequence_representation", {"eta": 200.0}),
    DefenceSpec.of("santext_plus", {"epsilon": 20.0}),
    DefenceSpec.of("custext", {"epsilon": 4.0}),
    DefenceSpec.of("tem", {"epsilon": 20.0}),
)


def test_what_is_kept_is_what_the_encoder_measures(minilm: TransformerEncoder) -> None:
    kept, fresh = load_distances(SHIPPED), measure_distances(minilm)
    assert kept.fingerprint == minilm.fingerprint and kept.encoder == minilm.name == "minilm"
    assert kept.tokens.tokens == fresh.tokens.tokens
    assert kept.tokens.nearest == fresh.tokens.nearest
    for name in ("to_nearest", "to_median", "to_farthest"):
        assert np.allclose(getattr(kept.tokens, name), getattr(fresh.tokens, name), rtol=1e-4)
    assert kept.tokens.median_pair == pytest.approx(fresh.tokens.median_pair, rel=1e-4)
    assert kept.tokens.n_candidates == fresh.tokens.n_candidates
    assert kept.texts.median_pair == pytest.approx(fresh.texts.median_pair, rel=1e-3)


@pytest.mark.parametrize("spec", SETTINGS, ids=lambda spec: spec.name)
def test_a_kept_promise_is_the_measured_one(spec: DefenceSpec, minilm: TransformerEncoder) -> None:
    kept, fresh = shipped_guarantees(spec, "minilm"), guarantees_of(minilm, spec)
    assert kept is not None and kept.symbol == fresh.symbol and kept.pairs == fresh.pairs
    for one, other in ((kept.nearest, fresh.nearest), (kept.median, fresh.median)):
        assert one.epsilon == pytest.approx(other.epsilon, rel=1e-3)
    assert (kept.whole is None) == (fresh.whole is None)


def test_no_promise_is_told_that_nothing_is_known_of() -> None:
    eta = {"eta": 75.0}
    assert shipped_guarantees(DefenceSpec.of("gaussian", {"sigma": 0.1}), "minilm") is None
    assert shipped_guarantees(DefenceSpec.of("text_to_text", eta), "another") is None
    whole = DefenceSpec.of("text_to_text", {**eta, "candidates": "whole"})
    assert shipped_guarantees(whole, "minilm") is None
    nothing = DefenceSpec.of("custext", {"epsilon": 4.0, "mapping": "aggressive"})
    assert shipped_guarantees(nothing, "minilm") is None
    later = DefenceSpec.of("text_to_text", {"of a later version": 1})
    assert guarantees_of_setting(later, "minilm") is None
    assert odds_note([DefenceSpec.of("int8", {})], "minilm") == ""


def test_a_chain_and_a_network_promise_what_stands_first() -> None:
    alone = format_odds_cell(DefenceSpec.of("text_to_text", {"eta": 60.0}), "minilm")
    assert re.fullmatch(r"10[⁰¹²³⁴⁵⁶⁷⁸⁹]+ · 10[⁰¹²³⁴⁵⁶⁷⁸⁹]+ · 10[⁰¹²³⁴⁵⁶⁷⁸⁹]+ to 1", alone)
    chain = DefenceSpec.of("text_to_text+int8", {"text_to_text.eta": 60.0})
    network = DefenceSpec.of("constrained", {"sends": "text_to_text", "eta": 60.0})
    assert format_odds_cell(chain, "minilm") == format_odds_cell(network, "minilm") == alone


def test_a_sentence_is_promised_what_its_farthest_tokens_are() -> None:
    spec = DefenceSpec.of("text_to_text", {"eta": 75.0})
    assert format_odds_cell(spec, "minilm").endswith(" · 10⁶⁷⁵ to 1")
    found = guarantees_of_setting(spec, "minilm")
    assert found is not None and found.whole is not None
    farthest = load_distances(SHIPPED).tokens.to_farthest
    assert found.whole.epsilon == pytest.approx(75 * farthest.sum())
