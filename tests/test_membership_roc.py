"""How membership attacks are scored, against values worked by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm, t
from sklearn import metrics

from leakscope.core.attacks.membership.ranking import shuffled
from leakscope.core.attacks.membership.rates import (
    melded_curve_interval,
    melded_interval,
    predictive_value,
)
from leakscope.core.attacks.membership.roc import (
    Ranking,
    _Bootstrap,
    advantage,
    auc,
    auc_difference,
    best_threshold,
    roc_curve,
    tpr_at_fpr,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import clopper_pearson

MEMBERS = np.array([True, True, True, False, False, False])


def normal(n: int, shift: float, seed: int) -> Ranking:
    rng = np.random.default_rng(seed)
    members = np.arange(n) % 2 == 0
    return Ranking(rng.standard_normal(n) + shift * members, members)


def test_the_area_counts_pairs_and_halves_ties() -> None:
    # Pairs: 3 above 2, 1, 0 (3); 2 ties with 2, above 1, 0 (2.5); 0 below 2, 1, tie (0.5) = 6 of 9.
    ranking = Ranking(np.array([3.0, 2.0, 0.0, 2.0, 1.0, 0.0]), MEMBERS)
    assert auc(ranking).value == pytest.approx(6 / 9)
    infinite = Ranking(np.array([math.inf, 2.0, -math.inf, 2.0, 1.0, -math.inf]), MEMBERS)
    assert auc(infinite).value == pytest.approx(6 / 9)


def test_area_and_curve_are_scikit_learns() -> None:
    ranking = normal(301, 0.7, 3)
    scores = ranking.scores.round(1)
    ranking = Ranking(scores, ranking.members)
    assert auc(ranking).value == pytest.approx(metrics.roc_auc_score(ranking.members, scores))
    false, true, _ = metrics.roc_curve(ranking.members, scores, drop_intermediate=False)
    ours = roc_curve(ranking)
    np.testing.assert_allclose(ours[0], false)
    np.testing.assert_allclose(ours[1], true)


def test_random_scores_are_one_half_within_the_interval_as_often_as_it_says() -> None:
    held = 0
    for seed in range(200):
        found = auc(normal(120, 0.0, seed), seed=seed, n_resamples=400)
        held += found.ci95.low <= 0.5 <= found.ci95.high
    low, high = binom.ppf([0.001, 0.999], 200, 0.95)
    assert low <= held <= high


def test_samples_of_one_user_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(40), 25)
    members = users % 2 == 0
    scores = rng.standard_normal(40)[users] + 0.1 * rng.standard_normal(1000) + 0.5 * members
    alone = auc(Ranking(scores, members))
    together = auc(Ranking(scores, members, users.tolist()))
    assert alone.value == together.value
    widths = [s.ci95.high - s.ci95.low for s in (alone, together)]
    assert widths[1] > 3 * widths[0]


def test_an_interval_of_users_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 9])
        users = np.repeat(np.arange(24), 10)
        scores = rng.standard_normal(24)[users] + 0.3 * rng.standard_normal(240)
        ranking = Ranking(scores, users % 2 == 0, users.tolist())
        found = auc(ranking, seed=seed, n_resamples=400)
        held += found.ci95.low <= 0.5 <= found.ci95.high
    assert 180 <= held <= 199


def test_a_perfect_attack_on_few_is_not_certain() -> None:
    found = auc(Ranking(np.arange(6.0)[::-1], MEMBERS))
    assert found.value == 1.0
    assert found.ci95.low == pytest.approx(0.025 ** (1 / 3)) and found.ci95.high == 1.0
    wrong = auc(Ranking(np.arange(6.0), MEMBERS))
    assert wrong.value == 0.0 and wrong.ci95.high == pytest.approx(1 - 0.025 ** (1 / 3))


def test_one_user_of_a_kind_says_nothing() -> None:
    found = auc(Ranking(np.arange(6.0)[::-1], MEMBERS, list("aaabcd")))
    assert (found.ci95.low, found.ci95.high) == (0.0, 1.0)


def test_clopper_pearson_is_the_inversion_of_the_binomial() -> None:
    for k, n in ((0, 7), (3, 7), (7, 7), (40, 1000)):
        found = clopper_pearson(k, n)
        if k:
            assert binom.sf(k - 1, n, found.low) == pytest.approx(0.025)
        if k < n:
            assert binom.cdf(k, n, found.high) == pytest.approx(0.025)
    assert clopper_pearson(0, 7).low == 0 and clopper_pearson(7, 7).high == 1
    with pytest.raises(InvalidInputError, match="8 of 7"):
        clopper_pearson(8, 7)


def test_the_rate_at_a_small_false_positive_rate() -> None:
    outside, inside = np.arange(1000.0), np.array([2000.0, 995.5, 989.5, 10.0])
    members = np.arange(1004) >= 1000
    ranking = Ranking(np.concatenate([outside, inside]), members)
    at = tpr_at_fpr(ranking, 0.01)  # ten of the thousand may lie above: 990 to 999
    assert at.threshold == 989.0 and at.tpr.value == 0.75
    exact = clopper_pearson(3, 4)
    assert at.tpr.ci95.low < exact.low and at.tpr.ci95.high == pytest.approx(exact.high, abs=0.01)
    assert at.tpr.chance == 0.01
    assert at.resolution == "resolvable" and at.format().startswith("0.750 [0.")
    coarse = tpr_at_fpr(Ranking(ranking.scores[1:], members[1:]), 0.01)
    assert coarse.resolution == "coarse" and coarse.is_shown
    assert coarse.format().endswith("] (coarse)")
    assert tpr_at_fpr(ranking, 0.001).resolution == "coarse"
    few = tpr_at_fpr(Ranking(ranking.scores[2:], members[2:]), 0.001)
    assert few.resolution == "not resolvable" and not few.is_shown
    assert few.format() == "not resolvable with 998 non-members"


def by_hand(inside: list[float], outside: list[float], fpr: float, rate: float) -> list[float]:
    """Return the two mixtures of a melded interval at a rate, summed one by one."""
    n, m = len(outside), len(inside)
    ranked = [math.inf, *sorted(outside, reverse=True), -math.inf]
    low = high = 0.0
    for above in range(n + 1):
        weight = binom.pmf(above, n, fpr)
        fewest = sum(score > ranked[above] for score in inside)
        most = sum(score > ranked[above + 1] for score in inside)
        low += weight * (beta.cdf(rate, fewest, m - fewest + 1) if fewest else 1.0)
        high += weight * (beta.cdf(rate, most + 1, m - most) if most < m else 0.0)
    return [low, high]


@pytest.mark.parametrize("fpr", [0.1, 0.25])
def test_the_interval_melds_the_rank_of_the_threshold_with_clopper_pearson(fpr: float) -> None:
    rng = np.random.default_rng(3)
    inside, outside = rng.normal(1, 1, 12), rng.normal(0, 1, 20)
    found = melded_interval(inside, outside, fpr)
    below = by_hand(inside.tolist(), outside.tolist(), fpr, found.low)[0]
    is_free = found.low == 0 and below > 0.025  # no non-member may lie above the threshold
    assert is_free or below == pytest.approx(0.025)
    assert is_free == (fpr == 0.1)
    assert by_hand(inside.tolist(), outside.tolist(), fpr, found.high)[1] == pytest.approx(0.975)


def test_samples_of_one_unit_count_by_their_effective_number() -> None:
    rng = np.random.default_rng(4)
    inside, outside = rng.normal(1, 1, 200), rng.normal(0, 1, 200)
    alone = melded_interval(inside, outside, 0.1)
    each = np.arange(200)
    assert melded_interval(inside, outside, 0.1, units=(each, each + 200)) == alone
    copies = np.repeat(inside[:40], 5), np.repeat(outside[:40], 5)
    units = np.repeat(np.arange(40), 5)
    copied = melded_interval(*copies, 0.1, units=(units, units + 40))
    once = melded_interval(inside[:40], outside[:40], 0.1)
    assert copied.low <= once.low + 0.02 and copied.high >= once.high - 0.02, "copies add nothing"
    one = melded_interval(inside, outside, 0.1, units=(each * 0, each + 200))
    assert (one.low, one.high) == (0.0, 1.0), "a single user says nothing of others"
    found = melded_interval(inside, outside, 0.1, units=(each // 2, each // 2 + 100))
    assert found.low < alone.low + 0.02 and found.high > alone.high - 0.02


def test_a_stored_curve_has_about_the_interval_of_its_scores() -> None:
    rng = np.random.default_rng(5)
    inside, outside = rng.normal(1, 1, 400), rng.normal(0, 1, 400)
    false, true = roc_curve(Ranking(np.r_[inside, outside], np.arange(800) < 400))
    points = list(zip(false.tolist(), true.tolist(), strict=True))[1:]
    found = melded_curve_interval(points, 0.1, 400, 400)
    exact = melded_interval(inside, outside, 0.1)
    assert found.low == pytest.approx(exact.low, abs=0.01)
    assert found.high == pytest.approx(exact.high, abs=0.01)
    coarse = melded_curve_interval([*points[::20], points[-1]], 0.1, 400, 400)
    assert coarse.low <= found.low and coarse.high >= found.high


def test_tied_non_members_are_not_accused_beyond_the_rate() -> None:
    scores = np.array([5.0] * 20 + [5.0, 6.0, 4.0])
    at = tpr_at_fpr(Ranking(scores, np.arange(23) >= 20), 0.1)
    assert at.threshold == 5.0 and at.tpr.value == pytest.approx(1 / 3)


def test_rates_are_resolved_by_users_where_they_are_the_unit() -> None:
    users = np.repeat(np.arange(20), 100)
    ranking = Ranking(np.random.default_rng(1).standard_normal(2000), users < 10, users.tolist())
    assert tpr_at_fpr(ranking, 0.1).resolution == "coarse", "ten users, of whom one is expected"
    assert tpr_at_fpr(ranking, 0.01).resolution == "not resolvable"


def test_the_best_threshold_is_the_largest_gain_and_lies_between_scores() -> None:
    scores = np.array([5.0, 4.0, 1.0, 3.0, 2.0, 0.0])
    # Above 3.5: 2 of 3 against 0 of 3. Above 0.5: 3 of 3 against 2 of 3.
    assert best_threshold(scores, MEMBERS) == 3.5
    assert best_threshold(-scores, MEMBERS) == math.inf, "the wrong way round, nobody is called"
    ends = best_threshold(np.array([math.inf, -math.inf]), np.array([True, False]))
    assert ends == -math.inf, "above it lies the member alone"
    assert best_threshold(np.array([0.0, 1.0]), np.array([True, False])) == math.inf
    above = np.nextafter(1.0, 2.0)
    close = best_threshold(np.array([above, 1.0]), np.array([True, False]))
    assert 1.0 <= close < above


def test_the_advantage_is_of_decisions_made() -> None:
    decided = np.array([True, True, False, True, False, False])
    found = advantage(decided, MEMBERS)
    assert found.value == pytest.approx(2 / 3 - 1 / 3) and found.chance == 0.0
    assert found.ci95.low < found.value < found.ci95.high
    assert advantage(~decided, MEMBERS).value == pytest.approx(-1 / 3)


def test_a_paired_difference_is_narrower_than_two_intervals() -> None:
    one = normal(400, 0.8, 5)
    other = Ranking(one.scores + 0.2 * np.random.default_rng(6).standard_normal(400), one.members)
    found = auc_difference(one, other)
    assert found.value == pytest.approx(auc(one).value - auc(other).value)
    alone = auc(one).ci95
    assert found.ci95.high - found.ci95.low < (alone.high - alone.low) / 2
    with pytest.raises(InvalidInputError, match="same samples"):
        auc_difference(one, Ranking(one.scores, ~one.members))


def test_what_an_accusation_is_worth_falls_with_the_prior() -> None:
    assert predictive_value(0.5, 0.01, 0.5) == pytest.approx(0.5 / 0.51)
    assert predictive_value(0.5, 0.01, 1 / 101) == pytest.approx(0.5 / 1.5)
    assert math.isnan(predictive_value(0.0, 0.0, 0.5))
    with pytest.raises(InvalidInputError, match="prior"):
        predictive_value(0.5, 0.1, 2)


def test_shuffled_members_are_as_many_and_whole_users() -> None:
    dealt = shuffled(MEMBERS, seed=1)
    assert dealt.sum() == 3 and not np.array_equal(dealt, MEMBERS)
    users = np.repeat(np.arange(10), 4)
    dealt = shuffled(users < 5, users.tolist(), seed=2)
    assert dealt.sum() == 20 and set(np.bincount(users, weights=dealt)) == {0.0, 4.0}
    with pytest.raises(InvalidInputError, match="holds members and non-members"):
        shuffled(users % 2 == 0, [0] * 40)


@pytest.mark.parametrize(
    ("scores", "members", "units", "said"),
    [
        (np.zeros(2), np.array([True, True]), None, "All 2 samples are members"),
        (np.zeros(2), np.array([False, False]), None, "All 2 samples are non-members"),
        (np.zeros(0), np.zeros(0, dtype=bool), None, "All 0 samples"),
        (np.array([math.nan, 0]), np.array([True, False]), None, "NaN in sample 0"),
        (np.zeros(3), np.array([True, False]), None, "shape"),
        (np.zeros(2), np.array([True, False]), ["a"], "1 units for 2 samples"),
        (np.zeros(2), np.array([1, 0]), None, "yes or no"),
    ],
)
def test_what_cannot_be_ranked_is_refused(
    scores: np.ndarray, members: np.ndarray, units: list[str] | None, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Ranking(scores, members, units)


def test_intervals_are_the_seeds() -> None:
    ranking = normal(80, 0.5, 8)
    assert auc(ranking, seed=1) == auc(ranking, seed=1)
    assert auc(ranking, seed=1).ci95 != auc(ranking, seed=2).ci95


@pytest.mark.parametrize("n_units", [2, 5, 40])
def test_the_ends_of_an_auc_stand_as_far_as_students_t_by_hand(n_units: int) -> None:
    draws = _Bootstrap(np.arange(4), np.ones((1, 4)), n_units)
    found = np.linspace(0.4, 0.6, 1001)  # its quantiles lie .095 from the middle
    half = 0.095 * t.ppf(0.975, n_units - 1) / norm.ppf(0.975)
    assert draws.ends(found, 0.5) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-4)
