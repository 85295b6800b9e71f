"""LiRA, RMIA and BaVarIA against values worked by hand and against plain Python of their own."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from scipy import stats

from leakscope.core.attacks.membership.classifiers.bavaria import (
    BaVarIA,
    Prior,
    compute_posterior,
    fit_prior,
    log_student_t,
)
from leakscope.core.attacks.membership.classifiers.evaluation import (
    Plan,
    calibrated_threshold,
    evaluate,
    plans,
)
from leakscope.core.attacks.membership.classifiers.features import FEATURES
from leakscope.core.attacks.membership.classifiers.lira import LiRA, deviation, offline, online
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS, make_attack
from leakscope.core.attacks.membership.classifiers.rmia import (
    RMIA,
    offline_mean,
    online_mean,
    rmia_scores,
    tune_a,
)
from leakscope.core.attacks.membership.classifiers.shadow_model_attack import split_in_out
from leakscope.core.attacks.membership.classifiers.user_likelihood import (
    SummedLikelihood,
    UserInference,
)
from leakscope.core.attacks.membership.roc import Ranking, auc
from leakscope.core.errors import InvalidInputError, NotFittedError

# Two samples, four models; models 0 and 1 were trained on both.
PHI = np.array([[2.0, 5.0], [4.0, 5.0], [0.0, 1.0], [2.0, 3.0]])
INSIDE = np.array([[True] * 2] * 2 + [[False] * 2] * 2)


def models(phi: Any, members: Any, users: Any = None) -> tuple[Outputs, Shadows]:
    """Return a target, the first row, and shadows, whose answers of two classes have these φ."""
    phi, members = np.asarray(phi, float), np.asarray(members, bool)
    confidence = 1 / (1 + np.exp(-phi))
    array = np.stack([confidence, 1 / (1 + np.exp(phi))], axis=-1)
    labels = np.zeros(phi.shape[1], dtype=int)
    return (
        Outputs(array[0], labels, members[0], users),
        Shadows(array[1:], labels, members[1:], users),
    )


def world(seed: int, n: int = 3000, k: int = 4, kind: str = "plain") -> tuple[Outputs, Shadows]:
    """Return samples that differ in how hard they are, in what training does and in noise."""
    rng = np.random.default_rng(seed)
    level, effect, noise = rng.normal(0, 2, n), np.ones(n), np.ones(n)
    if kind != "plain":
        effect, noise = rng.gamma(2, 0.6, n), 1 / np.sqrt(rng.gamma(3, 0.5, n))
    members = rng.random((k + 1, n)) < 0.5
    inner = 0.7 if kind == "tighter inside" else 1.0
    spread = np.where(members, inner * noise, noise)
    return models(level + effect * members + spread * rng.normal(size=(k + 1, n)), members)


def area(scores: np.ndarray, target: Outputs) -> float:
    return auc(Ranking(scores, target.members), n_resamples=1).value


# LiRA


def test_lira_is_as_worked_by_hand() -> None:
    sides = split_in_out(PHI, INSIDE)
    assert sides.inside.mean.tolist() == [3, 5] and sides.outside.mean.tolist() == [1, 2]
    assert sides.inside.variance() == 1 and sides.outside.variance() == 2  # (2 + 0)/2, (2 + 2)/2
    found = online(np.array([3.0, 2.0]), sides)
    assert found == pytest.approx([0.5 * math.log(2) + 1, 0.5 * math.log(2) - 4.5])
    tail = 0.5 * math.erfc(1)  # of N(1, √2) above 3
    assert offline(np.array([3.0, 2.0]), sides) == pytest.approx([-math.log(tail), math.log(2)])


def test_offline_scores_do_not_run_together_far_out() -> None:
    found = offline(np.array([60.0, 68.0]), split_in_out(PHI, INSIDE))
    assert np.isfinite(found).all() and found[1] > found[0] + 1


def test_each_sample_has_its_own_variance_where_models_are_many() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, [1, 5], size=(64, 2))
    many = split_in_out(values, np.zeros((64, 2), bool)).outside
    assert deviation(many) == pytest.approx(values.std(axis=0, ddof=1))
    few = split_in_out(values[:31], np.zeros((31, 2), bool)).outside
    assert deviation(few)[0] == deviation(few)[1] > 3


def oracle_lira(phi: Any, shadows: Any, members: Any, is_online: bool) -> list[float]:
    """Plain Python, sample by sample; every sample has a model of either side."""
    n = len(phi)

    def of(side: bool, i: int) -> list[float]:
        return [row[i] for row, m in zip(shadows, members, strict=True) if m[i] == side]

    sigma = {}
    for side in (True, False):
        squares = sum(
            (v - statistics.fmean(of(side, i))) ** 2 for i in range(n) for v in of(side, i)
        )
        sigma[side] = math.sqrt(squares / sum(len(of(side, i)) - 1 for i in range(n)))
    found = []
    for i in range(n):
        inside = statistics.NormalDist(statistics.fmean(of(True, i)), sigma[True])
        outside = statistics.NormalDist(statistics.fmean(of(False, i)), sigma[False])
        if is_online:
            found.append(math.log(inside.pdf(phi[i])) - math.log(outside.pdf(phi[i])))
        else:
            found.append(outside.cdf(phi[i]))
    return found


def toy(seed: int, n: int = 12, k: int = 6, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return φ and membership of a target and k models, half of which hold each sample."""
    rng = np.random.default_rng(seed)
    members = np.stack([rng.permutation(k) < k // 2 for _ in range(n)], axis=1)
    members = np.concatenate([rng.permutation(n)[None] < n // 2, members])
    return scale * rng.normal(size=(k + 1, n)) + members, members


@pytest.mark.parametrize("seed", range(3))
def test_lira_agrees_with_plain_python(seed: int) -> None:
    phi, members = toy(seed)
    target, shadows = models(phi, members)
    online_scores = LiRA().fit(shadows).scores(target)
    assert online_scores == pytest.approx(oracle_lira(phi[0], phi[1:], members[1:], True))
    seldom = 1 - np.exp(-LiRA(is_online=False).fit(shadows).scores(target))
    assert seldom == pytest.approx(oracle_lira(phi[0], phi[1:], members[1:], False))


# RMIA


def test_rmia_is_as_worked_by_hand() -> None:
    said = np.array([[0.8, 0.5, 0.9], [0.4, 0.5, 0.7]])
    sides = split_in_out(said, np.array([[True] * 3, [False] * 3]))
    assert online_mean(sides) == pytest.approx([0.6, 0.5, 0.8])
    assert offline_mean(sides, 0.5) == pytest.approx([0.55, 0.625, 0.775])
    ratios = np.array([0.9, 0.5, 0.4]) / online_mean(sides)  # 1.5, 1, .5
    assert rmia_scores(ratios, 1).tolist() == [1.0, 0.5, 0.0]
    assert rmia_scores(ratios, 2).tolist() == [0.5, 0.5, 0.0]
    crowd = np.array([False, True, False])
    assert rmia_scores(np.array([1.5, 1.0, 0.5, 2.0])[:3], 1, ~crowd).tolist() == [1.0, 0.5, 0.0]
    with pytest.raises(InvalidInputError, match="at least two"):
        rmia_scores(np.array([1.0]), 1)


def oracle_rmia(p: Any, shadows: Any, members: Any, gamma: float, a: float | None) -> list[float]:
    """Plain Python, pair by pair."""
    ratios = []
    for i, own in enumerate(p):
        sides: dict[bool, list[float]] = {True: [], False: []}
        for row, m in zip(shadows, members, strict=True):
            sides[bool(m[i])].append(row[i])
        outside = statistics.fmean(sides[False])
        mean = (statistics.fmean(sides[True]) + outside) / 2
        if a is not None:
            mean = ((1 + a) * outside + 1 - a) / 2
        ratios.append(own / mean)
    n = len(ratios)
    return [
        sum(ratios[i] / ratios[j] >= gamma for j in range(n) if j != i) / (n - 1) for i in range(n)
    ]


@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("a", [None, 0.3])
def test_rmia_agrees_with_plain_python(gamma: float, a: float | None) -> None:
    phi, members = toy(7, scale=3.0)
    target, shadows = models(phi, members)
    p = 1 / (1 + np.exp(-phi))
    found = RMIA(is_online=a is None, gamma=gamma, a=a).fit(shadows).scores(target)
    assert found == pytest.approx(oracle_rmia(p[0], p[1:], members[1:], gamma, a))
    assert len(set(found)) > 3


def test_a_is_tuned_on_shadow_models_and_a_single_one_leaves_it() -> None:
    _, shadows = world(0, n=500)
    confidences = RMIA.confidences_of(shadows)
    assert tune_a(confidences[:1], shadows.members[:1]) == 0.5
    # Where models agree but for what they were trained on, their own odds are all there is.
    rng = np.random.default_rng(1)
    members = rng.random((5, 400)) < 0.5
    level = rng.uniform(0.05, 0.6, 400)
    assert tune_a(np.where(members, level * 1.2, level), members) == 1.0
    assert tune_a(np.where(members, 0.9 * level + 0.1, level), members) < 1.0
    fitted = RMIA(is_online=False).fit(shadows)
    assert fitted.a_ == tune_a(confidences, shadows.members)


def oracle_a(p: Any, members: Any) -> float:
    """The `a` of the highest mean AUC, by the models other than the one that plays the target."""
    totals = dict.fromkeys(np.round(np.arange(11) / 10, 1).tolist(), 0.0)
    for shadow_ranking in range(min(len(p), 4)):
        others = [k for k in range(len(p)) if k != shadow_ranking]
        known = [i for i in range(p.shape[1]) if not all(members[k][i] for k in others)]
        for a in totals:
            told: dict[bool, list[float]] = {True: [], False: []}
            for i in known:
                outside = statistics.mean(p[k][i] for k in others if not members[k][i])
                told[bool(members[shadow_ranking][i])].append(
                    p[shadow_ranking][i] / (0.5 * ((1 + a) * outside + (1 - a)))
                )
            pairs = [(x > y) + (x == y) / 2 for x in told[True] for y in told[False]]
            totals[a] += statistics.mean(pairs)
    best = max(totals.values())
    return min(a for a, total in totals.items() if total > best - 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_is_tuned_without_what_the_played_model_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = rng.random((3, 40)) < 0.5
    level = rng.uniform(0.02, 0.9, 40)
    p = np.clip(level * np.where(members, 1.15, 1.0) * rng.uniform(0.7, 1.3, (3, 40)), 0.01, 0.99)
    assert tune_a(p, members) == oracle_a(p, members)


# BaVarIA


def test_a_side_alone_is_the_textbook_s_normal_inverse_gamma() -> None:
    sides = split_in_out(np.array([[1.0], [3.0]]), np.zeros((2, 1), bool))
    prior = Prior(np.array([0.0, 1.0]), np.eye(2), 1.0, 2.0, 1.0)
    found = compute_posterior(prior, sides)
    # κ' 3, μ' 4/3, α' 3, β' = 1 + ½ · 2 + 1 · 2 · 2² / (2 · 3) = 10/3
    assert found.location[0] == pytest.approx([4 / 3, 1.0])
    assert found.freedom.tolist() == [6.0]
    assert found.scale2[0] == pytest.approx([10 / 9 * 4 / 3, 10 / 9 * 2])
    expected = stats.t(6, 1.0, math.sqrt(20 / 9)).logpdf(2) - stats.t(
        6, 4 / 3, math.sqrt(40 / 27)
    ).logpdf(2)
    assert found.log_odds(np.array([2.0])) == pytest.approx(expected)


@pytest.mark.parametrize("n_in", [0, 1, 3])
def test_the_prediction_is_the_quotient_of_marginal_likelihoods(n_in: int) -> None:
    """P(φ | shadows) = P(φ, shadows) / P(shadows), each a multivariate t of its own."""
    rng = np.random.default_rng(n_in)
    values = rng.normal(size=5)
    inside = np.arange(5) < n_in
    precision = np.array([[1.5, -0.4], [-0.4, 0.8]])
    prior = Prior(np.array([0.2, 0.9]), precision, 0.6, 2.5, 1.3)
    found = compute_posterior(prior, split_in_out(values[:, None], inside[:, None]))

    def joint(phi: np.ndarray, is_in: np.ndarray) -> float:
        design = np.stack([~is_in, is_in], axis=1).astype(float)
        noise = np.diag(np.where(is_in, prior.ratio, 1.0))
        shape = noise + design @ np.linalg.inv(precision) @ design.T
        return float(
            stats.multivariate_t(
                design @ prior.mean, prior.beta / prior.alpha * shape, df=2 * prior.alpha
            ).logpdf(phi)
        )

    for side in (False, True):
        i = int(side)
        more, kinds = np.r_[values, 1.7], np.r_[inside, side]
        expected = joint(more, kinds) - joint(values, inside)
        predicted = log_student_t(
            np.array([1.7]), found.freedom, found.location[:, i], found.scale2[:, i]
        )
        assert predicted == pytest.approx(expected)


def test_the_prior_finds_what_the_samples_were_drawn_from() -> None:
    rng = np.random.default_rng(3)
    n, k = 20_000, 8
    level = rng.multivariate_normal([1.0, 2.0], [[4.0, 3.0], [3.0, 3.0]], n).T
    variance = 1 / rng.gamma(4.0, 1 / 6.0, n)  # α 4, β 6: mean 2
    members = rng.random((k, n)) < 0.5
    noise = rng.normal(size=(k, n)) * np.sqrt(variance * np.where(members, 0.5, 1.0))
    prior = fit_prior(split_in_out(np.where(members, level[1], level[0]) + noise, members))
    assert prior.mean == pytest.approx([1.0, 2.0], abs=0.1)
    assert prior.ratio == pytest.approx(0.5, abs=0.05)
    assert prior.beta / (prior.alpha - 1) == pytest.approx(2.0, abs=0.1)
    assert prior.alpha == pytest.approx(4.0, abs=0.8)
    spread = 2.0 * np.linalg.inv(prior.precision)
    assert spread == pytest.approx(np.array([[4.0, 3.0], [3.0, 3.0]]), abs=0.3)


@pytest.mark.parametrize("kind", ["plain", "uneven", "tighter inside"])
@pytest.mark.parametrize("k", [2, 4])
def test_few_shadow_models_are_enough_for_bavaria(kind: str, k: int) -> None:
    found: dict[str, list[float]] = {
        name: [] for name in ("lira_online", "lira_offline", "rmia_online", "bavaria")
    }
    for seed in range(3):
        target, shadows = world(seed, k=k, kind=kind)
        for name, areas in found.items():
            areas.append(area(make_attack(name).fit(shadows).scores(target), target))
    means = {name: statistics.fmean(areas) for name, areas in found.items()}
    assert means["bavaria"] >= max(means.values()) - 0.005
    assert means["bavaria"] > 0.65


# All of them


ALIGNED = [name for name, entry in CLASSIFIER_ATTACKS.items() if entry.needs == "the same samples"]
OF_SAMPLES = [name for name in ALIGNED if CLASSIFIER_ATTACKS[name].level == "sample"]


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_certain_answers_one_shadow_model_and_missing_sides_stay_finite(name: str) -> None:
    rng = np.random.default_rng(0)
    phi = rng.normal(0, 30, size=(4, 40))  # far beyond what a float32 tells from 1
    members = rng.random((4, 40)) < 0.5
    target, shadows = models(phi, members)
    rounded = Shadows(shadows.probabilities.astype(np.float32), shadows.labels, shadows.members)
    alike = Shadows(np.full((3, 40, 2), 0.5), shadows.labels, shadows.members)
    hard = Shadows(np.round(shadows.probabilities), shadows.labels, shadows.members)
    alone = shadows.without(0).without(0)
    for each in (shadows, rounded, alike, hard, alone):
        scores = make_attack(name).fit(each).scores(target)
        assert scores.shape == (40,) and np.isfinite(scores).all()


@pytest.mark.parametrize("name", ALIGNED)
def test_other_samples_than_those_of_the_shadow_models_are_refused(name: str) -> None:
    target, shadows = models(*toy(0), users=tuple("abcdef" * 2))
    other = Outputs(target.probabilities[:5], target.labels[:5], target.members[:5], tuple("abcde"))
    attack = make_attack(name)
    with pytest.raises(NotFittedError):
        attack.scores(target)
    with pytest.raises(InvalidInputError, match="same one"):
        attack.fit(shadows).scores(other)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_shadow_models_of_one_side_are_refused_where_both_are_needed(
    name: str, inside: bool
) -> None:
    target, shadows = models(*toy(0))
    one = Shadows(shadows.probabilities, shadows.labels, np.full_like(shadows.members, inside))
    if name in ("lira_offline", "rmia_offline") and not inside:
        assert np.isfinite(make_attack(name).fit(one).scores(target)).all()
    else:
        with pytest.raises(InvalidInputError, match="half of them, drawn at random"):
            make_attack(name).fit(one)


def of_users(seed: int = 0, effect: float = 0.3) -> tuple[Outputs, Shadows]:
    """Return 60 users of 10 texts each, each user whole within or without a model."""
    rng = np.random.default_rng(seed)
    members = np.repeat(rng.random((5, 60)) < 0.5, 10, axis=1)
    phi = rng.normal(0, 2, 600) + effect * members + rng.normal(0, 0.7, size=(5, 600))
    return models(phi, members, tuple(f"u{i // 10}" for i in range(600)))


def test_sums_and_means_of_a_user_s_texts() -> None:
    target, shadows = of_users()
    each = BaVarIA().fit(shadows).scores(target)
    summed = SummedLikelihood().fit(shadows).scores(target)
    order = sorted(f"u{i}" for i in range(60))
    assert summed[order.index("u7")] == pytest.approx(each[70:80].sum())
    other = SummedLikelihood("lira").fit(shadows).scores(target)
    assert not np.allclose(other, summed)
    said = np.log(shadows.probabilities[:, 70:80, 0])
    without = ~shadows.members[:, 70]
    expected = np.log(target.probabilities[70:80, 0]) - said[without].mean(axis=0)
    found = UserInference().fit(shadows).scores(target)
    assert found[order.index("u7")] == pytest.approx(expected.mean())


@pytest.mark.slow
def test_users_are_told_better_than_their_texts() -> None:
    target, shadows = of_users()
    found = {o.plan.name: o for o in evaluate(target, shadows)}
    sample = max(o.auc.value for o in found.values() if o.plan.level == "sample")
    user = max(o.auc.value for o in found.values() if o.plan.level == "user")
    assert user > sample + 0.1
    assert found["user_likelihood bavaria"].auc.n == 60 and found["bavaria"].auc.n == 600


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_answers_without_membership_give_one_half(seed: int) -> None:
    target, shadows = of_users(seed, effect=0.0)
    for outcome in evaluate(target, shadows, seed=seed):
        assert outcome.auc.ci95.low - 0.05 < 0.5 < outcome.auc.ci95.high + 0.05, outcome.plan
        assert outcome.control.value == pytest.approx(0.5, abs=0.05)
        gain = outcome.advantage
        assert gain is None or gain.ci95.low - 0.1 < 0 < gain.ci95.high + 0.1


def test_the_control_is_one_half_where_the_attack_is_not() -> None:
    target, shadows = world(0, n=2000, k=4)
    (outcome,) = evaluate(target, shadows, chosen=[Plan("bavaria")])
    assert outcome.auc.value > 0.7 and abs(outcome.control.value - 0.5) < 0.02
    assert outcome.advantage is not None and outcome.advantage.value > 0.2
    assert outcome.accuracy is not None and outcome.accuracy.value > 0.6
    assert outcome.decided is not None
    assert outcome.accuracy.value == np.mean(outcome.decided == target.members)


@pytest.mark.slow
def test_thresholds_know_nothing_of_the_target_s_members() -> None:
    target, shadows = world(1, n=200)
    flipped = Outputs(target.probabilities, target.labels, ~target.members)
    for plan in plans(shadows, has_users=False):
        one, other = (evaluate(t, shadows, chosen=[plan])[0] for t in (target, flipped))
        assert np.array_equal(one.ranking.scores, other.ranking.scores)
        assert one.auc.value == pytest.approx(1 - other.auc.value)
        if one.accuracy is not None and other.accuracy is not None:
            assert one.accuracy.value == pytest.approx(1 - other.accuracy.value)


def test_a_lone_shadow_model_gives_no_threshold_by_others() -> None:
    target, shadows = world(1, n=100, k=1)
    assert calibrated_threshold(Plan("lira_online"), shadows) is None
    (outcome,) = evaluate(target, shadows, chosen=[Plan("lira_online")])
    assert outcome.accuracy is None and outcome.auc.value > 0.5


def test_an_attack_that_was_asked_for_says_what_it_lacks() -> None:
    target, shadows = world(0, n=60)
    alike = Shadows(shadows.probabilities, shadows.labels, np.zeros_like(shadows.members))
    with pytest.raises(InvalidInputError, match="half of them, drawn at random"):
        evaluate(target, alike, chosen=[Plan("lira_online")])
    with pytest.raises(InvalidInputError, match="all non-members"):
        evaluate(target, alike, chosen=[Plan("threshold", {"feature": "loss"})])
    assert {p.attack for p in plans(alike, has_users=False)} == {
        "feature",
        "lira_offline",
        "rmia_offline",
    }


def test_what_can_be_run_depends_on_what_is_given() -> None:
    target, shadows = of_users()
    by_needs = {
        "nothing": plans(None, has_users=True),
        "shadows": plans(shadows.models(), has_users=True),
        "the same samples": plans(shadows, has_users=True),
    }
    assert {p.attack for p in by_needs["nothing"]} == {"feature", "user_statistic"}
    assert {p.attack for p in by_needs["the same samples"]} == set(CLASSIFIER_ATTACKS)
    assert not {p.attack for p in by_needs["shadows"]} & set(ALIGNED)
    assert {p.level for p in plans(shadows, has_users=False)} == {"sample"}
    every = plans(None, has_users=True, every_statistic=True)
    assert len(every) == len(FEATURES) * 5
    evaluate(target, shadows.models(), chosen=by_needs["shadows"][-1:])
