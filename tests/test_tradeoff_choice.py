"""The least of many upper bounds: corrected for the choice, and how often it holds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from leakscope.core.errors import InvalidInputError
from leakscope.core.metrics import mean_over_seeds, simultaneous_intervals
from leakscope.core.results import Interval, Score
from leakscope.core.studies.tradeoff.choice import (
    beside_none,
    choose,
    frontier,
    is_readable_and_worse,
    leak_of,
    simultaneous_leaks,
)
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff, shipped_tradeoff

TRUE = 40.0
"""What the attacker reads of every setting in the simulations."""
ERROR = 2.0
"""Its standard error within a seed."""


def score(value: float, half: float = 0.0, chance: float = 0.0) -> Score:
    return Score(value, Interval(value - half, value + half), 100, chance)


def setting(sigma: float, *runs: Score, name: str = "tuned") -> Point:
    """Return a setting of noise that loses no usefulness, from the scores of its seeds."""
    return Point(
        "gaussian",
        (("sigma", sigma),),
        {"MR": score(80, 1, 50)},
        {name: mean_over_seeds(runs)},
        None,
        {"MR": score(0, 0)},
        runs={"words": {name: runs}},
    )


def study(points: list[Point]) -> Tradeoff:
    base = Point(
        "none", (), {"MR": score(80, 1, 50)}, {"tuned": score(60, 1)}, None, {"MR": score(0, 0)}
    )
    return Tradeoff((base, *points), {}, {"MR": "accuracy"})


def drawn(rng: np.random.Generator, n: int, ratio: float) -> list[Point]:
    """Return settings that leak alike, under three seeds.

    Parameters
    ----------
    ratio : float
        Of the variance that seeds add to that within a seed.
    """
    values = TRUE + ERROR * math.sqrt(1 + ratio) * rng.standard_normal((n, 3))
    return [
        setting(0.01 * (i + 1), *(score(v, 1.96 * ERROR) for v in row))
        for i, row in enumerate(values)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "ratio", "n_studies"), [(10, 0.0, 500), (10, 1.0, 500), (40, 0.0, 150), (40, 1.0, 150)]
)
def test_the_bound_of_the_setting_chosen_holds_in_97_5_of_100_studies(
    n: int, ratio: float, n_studies: int
) -> None:
    rng = np.random.default_rng(n)
    holds, plain = [], []
    for _ in range(n_studies):
        points = drawn(rng, n, ratio)
        choice = choose(study(points), "MR")
        assert choice.best is not None and choice.n_compared == n
        holds.append(choice.leak(choice.best).ci95.high >= TRUE)
        plain.append(min(leak_of(p).ci95.high for p in points) >= TRUE)
    error = 3 * math.sqrt(0.975 * 0.025 / n_studies)
    assert np.mean(holds) >= 0.975 - error, "within three standard errors of the simulation"
    assert np.mean(plain) <= (0.9 if n == 10 else 0.6), "what was wrong: the ends of each alone"


def test_ends_are_those_worked_by_hand() -> None:
    same = [score(40, 1.96), score(41, 1.96), score(42, 1.96)]
    apart = [score(36, 1.96), score(40, 1.96), score(44, 1.96)]
    # Ratios of variances between and within: 1 and 16, on average 8.5, with 4 degrees of freedom.
    first, second = simultaneous_intervals([same, apart], 5)
    half = stdtrit(4, 1 - 0.025 / 5) * math.sqrt(8.5 / 3)
    assert first.high == pytest.approx(41 + half)
    assert second.low == pytest.approx(40 - 4.3027 * math.sqrt(16 / 3), abs=1e-3), (
        "its own is wider"
    )
    # Three equal seeds add nothing: the normal end of the error within.
    calm = [score(40, 1.96)] * 3
    (only,) = simultaneous_intervals([calm], 5)
    assert only.high == pytest.approx(40 + ndtri(1 - 0.025 / 5) / math.sqrt(3), rel=1e-3)
    # On the same texts errors within do not average out, and both variances add up.
    (same_texts,) = simultaneous_intervals([apart], 5, is_same_sample=True)
    normal, student = ndtri(1 - 0.025 / 5), stdtrit(2, 1 - 0.025 / 5)
    assert same_texts.high == pytest.approx(40 + math.sqrt(normal**2 + student**2 * 16 / 3))
    with pytest.raises(InvalidInputError, match="n_compared must be 1 or more, got 0"):
        simultaneous_intervals([calm], 0)


def test_no_end_is_nearer_than_that_of_the_setting_alone() -> None:
    rng = np.random.default_rng(3)
    for ratio in (0.0, 1.0, 9.0):
        points = drawn(rng, 12, ratio)
        for point, leak in zip(points, simultaneous_leaks(points), strict=True):
            own = leak_of(point).ci95
            assert leak.ci95.low <= own.low and leak.ci95.high >= own.high
            assert leak.value == leak_of(point).value
    one = drawn(rng, 1, 0.0)
    assert simultaneous_leaks(one) == [leak_of(one[0])], "nothing was chosen"


def test_the_strongest_attacker_has_the_highest_upper_end() -> None:
    point = replace(
        setting(0.1, score(40, 1)), leaks={"tuned": score(40, 1), "search": score(39, 4)}, runs={}
    )
    assert point.attacker == "search" and point.leakage.value == 39
    assert point.strongest("words") == ("search", score(39, 4))
    tied = replace(point, leaks={"tuned": score(40, 1), "search": score(38, 3)})
    assert tied.attacker == "tuned", "the greater value where ends are equal"
    other = setting(0.2, score(50, 1))
    first, _ = simultaneous_leaks([point, other])
    assert first.value == 39 and first.ci95.high == pytest.approx(
        39 + 4 * ndtri(1 - 0.0125) / 1.96, rel=1e-3
    )
    assert leak_of(point).ci95.high == 43


def test_a_gain_that_the_choice_explains_is_no_help() -> None:
    """One of ten settings is below no defence by its own interval, and not after correction."""
    points = [setting(0.01 * (i + 1), score(57.0 if i == 3 else 60.0, 1.9)) for i in range(10)]
    chosen = choose(study(points), "MR")
    assert chosen.best is points[3]
    assert not beside_none(leak_of(points[3]), leak_of(chosen.base)), "alone it would be less"
    assert not chosen.helps
    assert chosen.beside_none(points[3]) == "not significantly less than without a defence"
    assert choose(study([points[3]]), "MR").helps, "measured alone, it needs no correction"


def test_the_frontier_is_corrected_for_all_settings_shown() -> None:
    points = [setting(0.01 * (i + 1), score(40, 1.96)) for i in range(9)]
    edge = frontier(study(points), "MR")
    assert edge.surely[0][1] == pytest.approx(40 + ndtri(1 - 0.025 / 10), rel=1e-3)


def test_what_releases_readable_tokens_and_leaks_more_is_told_by_the_rows() -> None:
    found = shipped_tradeoff()
    base = found.undefended
    worse = {(p.defence, p.label) for p in found.points if is_readable_and_worse(p, base)}
    assert ("text_to_text", "η 120") in worse and ("token_representation", "η 240") in worse
    assert not worse & {("text_to_text", "η 45"), ("binary", ""), ("text_to_text+int8", "η 75")}
    for point in found.points:
        if point.leakage.ci95.low > base.leakage.ci95.high:
            assert (point.defence, point.label) in worse, "no vector leaks more than undefended"
