"""What d_χ-privacy promises, worked by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from core.defences.metric_dp.choice_promise import promises_by
from core.defences.metric_dp.distances import TokenDistances, median_distance, text_distances
from core.defences.metric_dp.promise import COMPOSITION, Promise, odds_said, verdict
from core.defences.registry import make_defence
from core.encoders.transformer import TransformerEncoder
from core.errors import InvalidInputError
from core.specs import DefenceSpec


@pytest.mark.parametrize(
    ("log_odds", "said"),
    [
        (0.0, "1 to 1"),
        (math.log(2), "2 to 1"),
        (math.log(3.21), "3.3 to 1"),  # rounded up: it is a bound
        (math.log(99.1), "100 to 1"),
        (math.log(1234), "1,300 to 1"),
        (math.log(10) * 6, "10^6 to 1"),
        (math.log(10) * 30.2, "10^31 to 1"),
        (71.0, "10^31 to 1"),  # 71/ln 10 = 30.8
        (1e6, "10^434,295 to 1"),  # no float holds it
        (math.inf, "any size"),
    ],
)
def test_odds_are_said_as_a_bound_and_never_overflow(log_odds: float, said: str) -> None:
    assert odds_said(log_odds) == said


@pytest.mark.parametrize(
    ("log_odds", "said"), [(1.0, "strong"), (1.01, "some worth"), (10.0, "some worth"),
                           (10.1, "almost no promise"), (math.inf, "almost no promise")],
)  # fmt: skip
def test_a_promise_is_judged_as_an_epsilon_is(log_odds: float, said: str) -> None:
    assert said in verdict(log_odds)


def test_a_promise_is_eta_times_the_distance() -> None:
    promise = Promise("“insulin” from “aspirin”", 75.0, 0.95)
    assert promise.epsilon == 71.25 and promise.odds == "10^31 to 1"
    assert promise.said == (
        "“insulin” from “aspirin” by odds of up to 10^31 to 1: almost no promise"
    )
    assert promise.to_dict()["epsilon"] == 71.25
    assert Promise("a from b", 1e308, 1e5).odds == "any size"
    with pytest.raises(InvalidInputError, match="eta must be"):
        Promise("", 0.0, 1.0)
    with pytest.raises(InvalidInputError, match="distance"):
        Promise("", 1.0, float("nan"))


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
    promises = found.promises(0.5)
    assert promises.nearest.epsilon == 1.5 and promises.nearest.odds == "4.5 to 1"
    assert promises.median.epsilon == 0.5 * found.median_pair == 2.0
    assert promises.whole is not None and promises.whole.epsilon == 0.5 * (5 + 5 + 5)
    assert promises.widest.epsilon == 2.5
    assert promises.headline == (
        "At η = 0.5 the output can tell “a” from “b” (its nearest neighbour) by odds of up to "
        "4.5 to 1: a promise of some worth."
    )
    assert "it would be 2.5 or more (“a” from “d”)" in promises.comparison
    assert len(promises.sentences) == 5 and promises.to_dict()["whole"]["epsilon"] == 7.5
    assert COMPOSITION in promises.sentences
    assert TokenDistances.of(Corners(), [1]).promises(1.0).whole is None  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="needs a token"):
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
    promises = promises_by(spec, TokenDistances.of(Corners(), text))  # type: ignore[arg-type]
    corners = Corners().token_vectors.numpy()
    settings = dict(spec.settings)
    eta = settings.get("eta", settings.get("epsilon"))
    more = math.log(1 / settings["p"]) if "p" in settings else 0.0
    cut = make_defence(spec).gamma(4) if spec.name == "tem" else math.inf
    sums = [
        sum(eta * min(float(np.linalg.norm(corners[a] - corners[b])), cut) + more
            for a, b in zip(text, other, strict=True))
        for other in itertools.product(range(4), repeat=3)
    ]  # fmt: skip
    assert promises.whole is not None
    assert promises.whole.epsilon == pytest.approx(max(sums), rel=1e-6)


@pytest.mark.parametrize("releases", [1, 2, 7])
def test_the_odds_of_several_releases_are_to_their_power(releases: int) -> None:
    one = TokenDistances.of(Corners(), [0, 3, 0]).promises(0.5)  # type: ignore[arg-type]
    found = one.after(releases)
    for each in ("nearest", "median", "whole", "widest"):
        assert getattr(found, each).epsilon == releases * getattr(one, each).epsilon
    assert found.releases == found.to_dict()["whole"]["releases"] == releases
    assert (f"after {releases} releases" in found.brief) == (releases > 1)
    assert (f"after {releases} releases" in found.headline) == (releases > 1)
    more = Promise("x from y", 1.0, 2.0, more=0.5, releases=releases)
    assert more.epsilon == releases * 2.5, "SanText+'s ln(1/p) is of each release"
    with pytest.raises(InvalidInputError, match="releases must be at least 1"):
        one.after(0)


def test_texts_are_measured_by_their_own_vectors() -> None:
    found = text_distances(np.array([[0, 0], [3, 0], [0, 4], [3, 4]], np.float32))
    assert (found.to_nearest, found.median_pair, found.widest) == (3, 4, 5)
    promises = found.promises(2.0)
    assert [p.epsilon for p in (promises.nearest, promises.median, promises.widest)] == [6, 8, 10]
    assert promises.whole is None and "4 texts" in promises.headline
    with pytest.raises(InvalidInputError, match="two of them"):
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
    alone = TokenDistances.of(minilm, [piece]).promises(60.0).nearest
    assert alone.what.startswith("“…pi” from “") and "##" not in alone.what
    assert (found.to_median < found.to_farthest).all()
