"""What d_χ-privacy promises, worked by hand."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.distances import (
    TokenDistances,
    median_distance,
    text_distances,
)
from leakscope.core.defences.metric_dp.exponential_guarantee import (
    SHIPPED,
    guarantees_from_distances,
    guarantees_of,
    load_distances,
    shipped_guarantees,
)
from leakscope.core.defences.metric_dp.guarantee import COMPOSITION, Guarantee, format_odds, verdict
from leakscope.core.defences.registry import make_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import (
    format_odds_cell,
    guarantees_of_setting,
    odds_note,
)
from scripts.deniability_distances import measure_distances


@pytest.mark.parametrize(
    ("log_odds", "said"),
    [
        (0.0, "1 to 1"),
        (math.log(2), "2 to 1"),
        (math.log(3.21), "3.3 to 1"),  # rounded up: it is a bound
        (math.log(99.1), "100 to 1"),
        (math.log(1234), "1,300 to 1"),
        (math.log(10) * 6, "10⁶ to 1"),
        (math.log(10) * 30.2, "10³¹ to 1"),
        (71.0, "10³¹ to 1"),  # 71/ln 10 = 30.8
        (1e6, "10⁴³⁴²⁹⁵ to 1"),  # no float holds it
        (math.inf, "unlimited"),
    ],
)
def test_odds_are_said_as_a_bound_and_never_overflow(log_odds: float, said: str) -> None:
    assert format_odds(log_odds) == said


@pytest.mark.parametrize(
    ("log_odds", "said"),
    [
        (1.0, "strong"),
        (1.01, "a moderate guarantee"),
        (10.0, "a moderate guarantee"),
        (10.1, "practically no guarantee"),
        (math.inf, "practically no guarantee"),
    ],
)
def test_a_promise_is_judged_as_an_epsilon_is(log_odds: float, said: str) -> None:
    assert said in verdict(log_odds)


def test_a_promise_is_eta_times_the_distance() -> None:
    promise = Guarantee("“insulin” and “aspirin”", 75.0, 0.95)
    assert promise.epsilon == 71.25 and promise.odds == "10³¹ to 1"
    assert promise.clause == (
        "“insulin” and “aspirin” with odds of up to 10³¹ to 1: practically no guarantee"
    )
    assert promise.to_dict()["epsilon"] == 71.25
    assert Guarantee("a and b", 1e308, 1e5).odds == "unlimited"
    with pytest.raises(InvalidInputError, match="eta must be"):
        Guarantee("", 0.0, 1.0)
    with pytest.raises(InvalidInputError, match="distance"):
        Guarantee("", 1.0, float("nan"))


class Corners:
    """Four tokens at the corners of a 3-by-4 rectangle: distances 3, 4 and 5."""

    fingerprint = "corners"
    tokens = ("a", "b", "c", "d")
    special_token_ids: tuple[int, ...] = ()

    @property
    def token_vectors(self):
        import torch

        return torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [3.0, 4.0]])


def test_a_text_is_promised_the_sum_over_its_tokens() -> None:
    found = TokenDistances.of(Corners(), [0, 3, 0])  # type: ignore[arg-type]
    assert found.nearest == ("b", "c", "b") and found.farthest == ("d", "a", "d")
    assert list(found.to_nearest) == [3, 3, 3] and list(found.to_median) == [4, 4, 4]
    promises = found.guarantees(0.5)
    assert promises.nearest.epsilon == 1.5 and promises.nearest.odds == "4.5 to 1"
    assert promises.median.epsilon == 0.5 * found.median_pair == 2.0
    assert promises.whole is not None and promises.whole.epsilon == 0.5 * (5 + 5 + 5)
    assert promises.widest.epsilon == 2.5
    assert promises.headline == (
        "At η = 0.5, whoever sees the output may tell apart “a” and its nearest neighbour “b” with "
        "odds of up to 4.5 to 1: a moderate guarantee."
    )
    assert "it would be 2.5 or more (for “a” and “d”)" in promises.comparison
    assert len(promises.sentences) == 5 and promises.to_dict()["whole"]["epsilon"] == 7.5
    assert COMPOSITION in promises.sentences
    assert TokenDistances.of(Corners(), [1]).guarantees(1.0).whole is None  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="needs at least one token"):
        TokenDistances.of(Corners(), [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spec",
    [
        DefenceSpec.of("text_to_text", {"eta": 0.7}),
        DefenceSpec.of("santext", {"epsilon": 0.7}),
        DefenceSpec.of("santext_plus", {"epsilon": 0.7, "p": 0.4}),
        DefenceSpec.of("tem", {"epsilon": 0.7}),
    ],
    ids=lambda spec: spec.name,
)
def test_no_other_text_has_greater_odds_than_the_whole_is_promised(spec: DefenceSpec) -> None:
    """By brute force over all texts of as many tokens: the bound is reached and never broken."""
    text = [0, 3, 1]
    promises = guarantees_from_distances(spec, TokenDistances.of(Corners(), text))  # type: ignore[arg-type]
    corners = Corners().token_vectors.numpy()
    settings = dict(spec.settings)
    eta = settings.get("eta", settings.get("epsilon"))
    more = math.log(1 / settings["p"]) if "p" in settings else 0.0
    cut = make_defence(spec).gamma(4) if spec.name == "tem" else math.inf
    sums = [
        sum(
            eta * min(float(np.linalg.norm(corners[a] - corners[b])), cut) + more
            for a, b in zip(text, other, strict=True)
        )
        for other in itertools.product(range(4), repeat=3)
    ]
    assert promises.whole is not None
    assert promises.whole.epsilon == pytest.approx(max(sums), rel=1e-6)


@pytest.mark.parametrize("releases", [1, 2, 7])
def test_the_odds_of_several_releases_are_to_their_power(releases: int) -> None:
    one = TokenDistances.of(Corners(), [0, 3, 0]).guarantees(0.5)  # type: ignore[arg-type]
    found = one.after(releases)
    for each in ("nearest", "median", "whole", "widest"):
        assert getattr(found, each).epsilon == releases * getattr(one, each).epsilon
    assert found.releases == found.to_dict()["whole"]["releases"] == releases
    assert (f"after {releases} releases" in found.all_odds) == (releases > 1)
    assert (f"after {releases} releases" in found.headline) == (releases > 1)
    more = Guarantee("x from y", 1.0, 2.0, more=0.5, releases=releases)
    assert more.epsilon == releases * 2.5, "SanText+'s ln(1/p) is of each release"
    with pytest.raises(InvalidInputError, match="releases must be at least 1"):
        one.after(0)


def test_texts_are_measured_by_their_own_vectors() -> None:
    found = text_distances(np.array([[0, 0], [3, 0], [0, 4], [3, 4]], np.float32))
    assert (found.to_nearest, found.median_pair, found.widest) == (3, 4, 5)
    promises = found.guarantees(2.0)
    assert [p.epsilon for p in (promises.nearest, promises.median, promises.widest)] == [6, 8, 10]
    assert promises.whole is None and "4 texts" in promises.headline
    with pytest.raises(InvalidInputError, match="at least two texts"):
        text_distances(np.zeros((1, 3), np.float32))


def test_the_median_pair_is_of_different_rows() -> None:
    assert median_distance(np.array([[0.0], [1.0]], np.float32)) == 1.0


def test_what_the_bundled_encoder_is_promised(minilm: TransformerEncoder) -> None:
    (ids,) = minilm.token_ids(["the patient took insulin"])
    found = TokenDistances.of(minilm, ids)
    table = minilm.token_vectors.numpy()
    insulin = found.tokens.index("insulin")
    near = minilm.tokens.index(found.nearest[insulin])
    assert found.to_nearest[insulin] == pytest.approx(
        np.linalg.norm(table[ids[insulin]] - table[near]), rel=1e-5
    )
    assert (found.to_nearest < found.to_median).all()
    (piece,) = (i for i, t in enumerate(minilm.tokens) if t == "##pi")
    alone = TokenDistances.of(minilm, [piece]).guarantees(60.0).nearest
    assert alone.what.startswith("“…pi” and its nearest neighbour “") and "##" not in alone.what
    assert (found.to_median < found.to_farthest).all()


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
