"""Attribute inference: each formula by hand, splits that hold, planted labels that are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.attacks.attributes.answers import (
    Answers,
    difference,
    label_ranks,
    most_confused,
    ratio,
    topic_share,
)
from leakscope.core.attacks.attributes.attack import AttributeAttack, probabilities
from leakscope.core.attacks.attributes.draw import GAP, SPLITS, Draw, Plan, draw
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.experiment import Case, SharedVectors, run_cases, top_labels
from leakscope.core.attacks.attributes.linear import (
    Discriminant,
    LinearProbe,
    fit_discriminant,
    ledoit_wolf_shrinkage,
)
from leakscope.core.attacks.attributes.parts import TopicMap, cross_fitted, explain_label
from leakscope.core.attacks.attributes.program import (
    Linear,
    Problem,
    Recipe,
    adam_step,
    batch_schedule,
    centre_and_scale,
    train_many,
    train_sparse,
)
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from leakscope.core.errors import InvalidInputError, NotFittedError

QUICK: dict[str, dict[str, Any]] = {
    "textcnn": {"n_filters": 8, "dimension": 16, "max_tokens": 8, "batch_size": 16},
}


def labelled(n: int, n_labels: int = 2) -> NDArray[np.int64]:
    return np.arange(n) % n_labels


# The tensor program


def test_two_steps_of_adam_are_those_worked_by_hand() -> None:
    weight, mean, square = (torch.zeros(1) for _ in range(3))
    adam_step(weight, torch.tensor([1.0]), mean, square, 0, 0.01)
    assert weight.item() == pytest.approx(-0.01), "m̂ / √v̂ = 0.1/0.1 / √(0.001/0.001) = 1"
    adam_step(weight, torch.tensor([3.0]), mean, square, 1, 0.01)
    # m = 0.9·0.1 + 0.1·3 = 0.39, v = 0.999·0.001 + 0.001·9 = 0.009999;
    # m̂ = 0.39/0.19 = 2.052632, v̂ = 0.009999/0.001999 = 5.002001, m̂/√v̂ = 0.917771
    assert weight.item() == pytest.approx(-0.01 * (1 + 0.917771), rel=1e-5)


def test_batches_are_permutations_cut_into_pieces_that_count_by_their_size() -> None:
    problem = Problem(np.arange(3), labelled(3), 2, seed=4)
    places, weights = batch_schedule(problem, Recipe(epochs=2, batch_size=2))
    assert places.shape == (4, 2)
    assert weights.tolist() == [[0.5, 0.5], [1, 0]] * 2
    assert [sorted([*places[i], places[i + 1, 0]]) for i in (0, 2)] == [[0, 1, 2]] * 2
    assert problem.n_steps(Recipe(epochs=2, batch_size=2)) == 4


def test_the_first_step_moves_each_weight_by_the_rate_against_its_gradient() -> None:
    features = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    problem = Problem(np.arange(2), np.array([0, 1]), 2)
    (found,) = train_many(features, [problem], Recipe(rate=0.25, epochs=1))
    # Mean (0, 0), variances (1, 0): divided by √½. The error is ±½/2, so the gradient of w_1 is
    # (-½, ½)·√2 and that of w_2 is 0.
    assert found.scale == pytest.approx(2**0.5)
    assert found.weights.tolist() == pytest.approx(np.array([[0.25, -0.25], [0, 0]]), abs=1e-6)
    assert found.bias.tolist() == pytest.approx([0, 0], abs=1e-6)
    scores = found.scores(np.array([[2.0, 9.0]], np.float32))
    assert scores[0].tolist() == pytest.approx([2 * 2**0.5 * 0.25, -2 * 2**0.5 * 0.25])


def by_pytorch(x: Any, problem: Problem, recipe: Recipe) -> torch.nn.Linear:
    """Return a layer trained by PyTorch's own gradients and Adam: the oracle."""
    x, y = torch.from_numpy(x), torch.from_numpy(problem.labels)
    layer = torch.nn.Linear(x.shape[1], problem.n_labels)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(layer.parameters(), lr=recipe.rate)
    for places, weights in zip(*batch_schedule(problem, recipe), strict=True):
        rows = places[weights > 0]
        loss = torch.nn.functional.cross_entropy(layer(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer.requires_grad_(False)


@pytest.mark.parametrize("most_weights", [2**21, 1], ids=["together", "in turn"])
def test_many_together_end_where_each_ends_alone_and_where_pytorch_ends(
    most_weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 7)).astype(np.float32)
    recipe = Recipe(rate=0.01, epochs=4, batch_size=8)
    problems = [
        Problem(rng.permutation(60)[:n], labelled(n, n_labels), n_labels, seed)
        for n, n_labels, seed in [(20, 3, 0), (41, 3, 1), (9, 3, 2), (16, 2, 0), (30, 2, 5)]
    ]
    monkeypatch.setattr("leakscope.core.attacks.attributes.program._MOST_WEIGHTS", most_weights)
    together = train_many(features, problems, recipe)
    for problem, found in zip(problems, together, strict=True):
        (alone,) = train_many(features, [problem], recipe)
        x = features[problem.rows]
        centre, scale = centre_and_scale(x)
        theirs = by_pytorch((x - centre) * np.float32(scale), problem, recipe)
        for other in (alone.weights, theirs.weight.numpy().T):
            np.testing.assert_allclose(found.weights, other, atol=2e-5)
        np.testing.assert_allclose(found.bias, theirs.bias.numpy(), atol=2e-5)


def test_sparse_features_are_trained_as_dense_ones_are_but_for_the_centre() -> None:
    rng = np.random.default_rng(2)
    # Numbers of all sizes: where a gradient is 0 but for rounding, Adam takes a whole step.
    dense = ((rng.random((30, 12)) < 0.3) * (0.5 + rng.random((30, 12)))).astype(np.float32)
    dense[:, 5] = 0
    problem = Problem(np.arange(30), labelled(30, 3), 3)
    recipe = Recipe(epochs=5, batch_size=7)
    found = train_sparse(sparse.csr_array(dense), problem, recipe)
    assert found.columns is not None and 5 not in found.columns.tolist()
    assert found.scale == pytest.approx(np.sqrt(11 / ((dense**2).sum() / 30)))
    scaled = dense * np.float32(found.scale)
    theirs = by_pytorch(scaled, problem, recipe)(torch.from_numpy(scaled)).numpy()
    np.testing.assert_allclose(found.scores(sparse.csr_array(dense)), theirs, atol=1e-4)


def test_texts_without_a_known_word_say_nothing() -> None:
    nothing = sparse.csr_array((4, 9), dtype=np.float32)
    found = train_sparse(nothing, Problem(np.arange(4), labelled(4), 2), Recipe(epochs=1))
    assert found.scores(nothing).tolist() == [[0, 0]] * 4


# The discriminant


def test_the_discriminant_is_that_worked_by_hand() -> None:
    # Two labels around (2, 0) and (-2, 0), each spread by ±1 along both axes: S = I, a sphere
    # already, which no shrinkage changes. Means ±(2, 0), so that w = ±(2, 0) and b = -2 + log ½.
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], np.float32)
    away = np.array([[2, 0]], np.float32)
    features = np.concatenate([corners + away, corners - away])
    found = fit_discriminant(features, Problem(np.arange(8), np.arange(8) // 4, 2))
    assert found.weights.T.tolist() == pytest.approx(np.array([[2, 0], [-2, 0]]), abs=1e-5)
    assert found.bias.tolist() == pytest.approx([-2 + np.log(0.5)] * 2, abs=1e-5)


def test_the_shrinkage_is_that_of_an_independent_implementation() -> None:
    from sklearn.covariance import ledoit_wolf

    rng = np.random.default_rng(0)
    for n, p in ((30, 8), (9, 20), (400, 3)):
        x = (rng.standard_normal((n, p)) @ rng.standard_normal((p, p))).astype(np.float32)
        _, theirs = ledoit_wolf(x, assume_centered=True)
        assert ledoit_wolf_shrinkage(x, x.T @ x / n) == pytest.approx(theirs, abs=1e-4)


def test_vectors_that_are_all_alike_leave_a_discriminant() -> None:
    vectors = np.repeat(np.eye(2, 3, dtype=np.float32), 5, 0)
    labels = np.arange(10) // 5
    attack = Discriminant().fit(["x"] * 10, labels, vectors, n_labels=2)
    assert attack.scores(["x"] * 10, vectors).argmax(1).tolist() == labels.tolist()
    with pytest.raises(InvalidInputError, match="sparse"):
        attack.fit(["x"] * 10, labels, sparse.csr_array(vectors), n_labels=2)


# Answers


def test_accuracy_and_chance_are_those_counted_by_hand() -> None:
    answers = Answers(np.array([0, 4, 5, 0, 2]), np.array([0, 0, 1, 2, 0]), tuple("aabbc"))
    one, five = answers.top(1), answers.top(5)
    assert (one.value, five.value, one.n) == (0.4, 0.8, 5)
    assert (one.chance, answers.chance(2), five.chance) == (0.6, 0.8, 1.0)
    assert 0 <= one.ci95.low < 0.4 < one.ci95.high <= 1
    same = Answers(answers.ranks, answers.truth, tuple("aaaaa")).top(1)
    assert not same.has_interval, "one group says nothing of others"


def test_balanced_accuracy_is_the_mean_over_labels() -> None:
    truth = np.repeat([0, 1, 2], [6, 3, 3])
    ranks = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1])  # 6 of 6, 1 of 3, 2 of 3
    answers = Answers(ranks, truth)
    balanced = answers.balanced()
    assert answers.is_unequal and answers.top(1).value == 9 / 12
    assert balanced.value == pytest.approx((1 + 1 / 3 + 2 / 3) / 3)
    assert balanced.chance == pytest.approx(1 / 3) and answers.top(1).chance == 1 / 2
    assert 0 <= balanced.ci95.low < balanced.value < balanced.ci95.high <= 1
    assert not Answers(ranks[3:9], truth[3:9]).is_unequal
    # A label that nobody tests counts for nothing.
    gap = Answers(ranks, np.where(truth == 2, 5, truth)).balanced()
    assert gap.value == pytest.approx(balanced.value)


def test_the_majority_baseline_knows_how_frequent_labels_are_among_the_targets() -> None:
    known = examples(n_labels=3, n_groups=1, n_texts=40)
    kept = [i for i, label in enumerate(known.labels) if label != "Author 1" or i % 3 == 0]
    uneven = Examples(
        "books",
        tuple(known.texts[i] for i in kept if known.labels[i] != "Author 2" or i % 5 == 0),
        tuple(known.labels[i] for i in kept if known.labels[i] != "Author 2" or i % 5 == 0),
        None,
    )
    for seed in range(6):  # labels are drawn in an order of chance
        drawn = draw(uneven, Plan(n_per_label=2, seed=seed))
        case = Case(seed, "row", 3, 2)
        (found,) = run_cases(make_attribute_attack("majority"), [case], uneven, {seed: drawn})
        assert found.answers.top(1).value == found.answers.chance(1) > 0.6
        assert sorted(drawn.n_drawn, reverse=True)[0] == drawn.n_drawn[found.predicted[0]]


def test_an_interval_is_of_groups() -> None:
    hits = np.repeat(np.arange(20) % 2, 50)
    truth = np.zeros(1000, np.int64)
    alone = Answers(hits, truth).top(1)
    grouped = Answers(hits, truth, [f"{i // 50}" for i in range(1000)]).top(1)
    width = [s.ci95.high - s.ci95.low for s in (alone, grouped)]
    assert width[1] > 5 * width[0], "texts of one group are alike"


def test_the_share_of_topic_is_that_worked_by_hand() -> None:
    truth = np.arange(10).repeat(10)  # guessing: 0.1
    same = Answers(np.where(np.arange(100) % 10 < 9, 0, 1), truth, tuple(map(str, truth)))
    other = Answers(np.where(np.arange(100) % 10 < 5, 0, 1), truth, tuple(map(str, truth)))
    found = topic_share(same, other)
    assert found.value == pytest.approx(0.5), "1 - (0.5 - 0.1) / (0.9 - 0.1)"
    assert found.ci95.low == pytest.approx(0.5) == found.ci95.high, "each group is like the other"
    lost = difference(same, other, 1)
    assert lost.value == pytest.approx(0.4)
    assert np.isnan(topic_share(replace(same, ranks=np.ones(100, int)), other).value)
    with pytest.raises(InvalidInputError, match="different targets"):
        topic_share(same, replace(other, truth=truth[::-1].copy()))


def test_a_ratio_of_attacks_is_that_worked_by_hand() -> None:
    truth = np.zeros(8, np.int64)
    # Hits of two books: 3 and 1 of one attack, 2 and 1 of the other.
    groups = tuple("aaaabbbb")
    one = Answers(np.array([0, 0, 0, 9, 0, 9, 9, 9]), truth, groups)
    other = Answers(np.array([0, 0, 9, 9, 9, 9, 9, 0]), truth, groups)
    found = ratio(one, other, 5)
    assert found.value == pytest.approx(4 / 3) and found.n == 8
    # Draws: a a gives 6/4, b b 2/2 and a b 4/3; the ends of two groups are set t/z · √2 wider.
    wider = 12.7062047 / 1.9599640 * 2**0.5
    assert found.ci95.high == pytest.approx(4 / 3 + wider * (3 / 2 - 4 / 3))
    assert found.ci95.low == 0.0, "4/3 - wider / 3 is below nothing"
    alone = ratio(replace(one, groups=None), replace(other, groups=None), 5)
    assert 0 < alone.ci95.low < 1 < alone.ci95.high
    twice = ratio(one, one, 5)
    assert (twice.value, twice.ci95.low, twice.ci95.high) == pytest.approx((1, 1, 1))
    assert np.isnan(ratio(one, replace(other, ranks=np.full(8, 9)), 5).value)
    with pytest.raises(InvalidInputError, match="different targets"):
        ratio(one, replace(other, groups=None), 5)


def test_labels_that_are_mixed_up_are_those_counted_by_hand() -> None:
    truth = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    said = np.array([1, 1, 0, 1, 2, 2, 2, 0])
    found = most_confused(truth, said, ["Ana", "Bea", "Cy"], 2)
    assert found.labels == ("Ana", "Bea")
    assert found.shares.tolist() == [[0, 1, 0], [0.5, 0.5, 0]]
    assert found.pairs == (("Ana", "Bea", 1.0), ("Bea", "Ana", 0.5))


def test_ranks_are_the_same_however_many_targets_are_ranked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = np.random.default_rng(0).integers(0, 4, (50, 6)).astype(np.float32)
    truth = labelled(50, 6)
    usual = label_ranks(scores, truth)
    expected = [
        list(np.argsort(-row, kind="stable")).index(t) for row, t in zip(scores, truth, strict=True)
    ]
    assert usual.tolist() == expected
    monkeypatch.setattr("leakscope.core.attacks.attributes.answers._CHUNK", 7)
    assert label_ranks(scores, truth).tolist() == expected


def test_the_five_likeliest_come_with_probabilities() -> None:
    linear = Linear(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), np.zeros(3, np.float32))
    vector = np.log(np.array([1.0, 6.0, 3.0], np.float32))
    found = top_labels(linear, ["Ana", "Bea", "Çelik"], vector, 2)
    assert [guess.label for guess in found] == ["Bea", "Çelik"]
    assert [guess.probability for guess in found] == pytest.approx([0.6, 0.3])
    assert probabilities(np.array([[1000.0, 0.0]], np.float32)).tolist() == [[1.0, 0.0]]


# Draws


def examples(n_labels: int = 4, n_groups: int = 2, n_texts: int = 120) -> Examples:
    """Return texts of their own words: labels, groups of each, and texts of each in their order."""
    texts, labels, groups = [], [], []
    for a in range(n_labels):
        for g in range(n_groups):
            for i in range(n_texts):
                texts.append(f"one{a} two{g} three{i} of{a * 7 + i} again{i * 3}")
                labels.append(f"Author {a}")
                groups.append(f"Book {a}.{g}")
    return Examples("books", tuple(texts), tuple(labels), tuple(groups))


def plan(split: str, **more: Any) -> Plan:
    return Plan(**({"n_per_label": 12, "n_targets": 30, "split": split, "run_length": 20} | more))


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_labelled_and_what_is_attacked_have_the_right_label(split: str) -> None:
    known = examples()
    found = draw(known, plan(split))
    assert sorted(found.labels) == [f"Author {i}" for i in range(4)]
    for rows in found.known.values():
        assert rows.shape == (4, 12) and len(np.unique(rows)) == 48
        assert not np.intersect1d(rows, found.targets).size
        told = [[known.labels[i] for i in row] for row in rows]
        assert told == [[label] * 12 for label in found.labels]
    assert [known.labels[i] for i in found.targets] == [found.labels[t] for t in found.truth]
    assert np.bincount(found.truth).max() <= 30
    assert found.groups == tuple(known.groups[i] for i in found.targets)  # type: ignore[index]


@pytest.mark.parametrize("split", ["group", "contrast"])
@pytest.mark.parametrize("seed", range(3))
def test_no_group_stands_on_both_sides(split: str, seed: int) -> None:
    known = examples()
    found = draw(known, plan(split, seed=seed))
    labelled_groups = {known.groups[i] for i in found.known["group"].ravel()}  # type: ignore[index]
    assert not labelled_groups & set(found.groups or ())


@pytest.mark.parametrize("split", ["run", "contrast"])
@pytest.mark.parametrize("seed", range(3))
def test_no_text_that_is_attacked_stands_near_a_labelled_one(split: str, seed: int) -> None:
    known = examples(n_groups=2)
    found = draw(known, plan(split, seed=seed))
    rows = found.known["run" if split == "run" else "same_group"].ravel()
    near = np.abs(rows[:, None] - found.targets[None])
    same = np.array([[known.groups[i] == known.groups[j] for j in found.targets] for i in rows])  # type: ignore[index]
    assert (near[same] > GAP).all() and same.any()
    blocks = {int(i) % 120 // 20 for i in rows}
    assert len(blocks) > 1, "labelled texts are of several runs"


def test_a_contrast_attacks_the_same_targets_from_two_sources() -> None:
    known = examples(n_groups=3)
    found = draw(known, plan("contrast"))
    assert found.known.keys() == {"same_group", "group"}
    for label, same in enumerate(found.known["same_group"]):
        own = {known.groups[i] for i in found.targets[found.truth == label]}  # type: ignore[index]
        assert {known.groups[i] for i in same} <= own  # type: ignore[index]


def test_a_smaller_draw_is_a_part_of_the_larger() -> None:
    found = draw(examples(), plan("group"))
    rows, labels = found.training("group", 3, 5)
    assert rows.tolist() == found.known["group"][:3, :5].ravel().tolist()
    assert labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert set(found.truth[found.target_indices(3)]) == {0, 1, 2}


def test_seeds_draw_other_labels_and_texts() -> None:
    one, two = (draw(examples(8), plan("run", n_labels=3, seed=seed)) for seed in (0, 1))
    assert one.labels != two.labels and len(one.labels) == 3
    again = draw(examples(8), plan("run", n_labels=3, seed=0))
    assert again.labels == one.labels and (again.targets == one.targets).all()


def test_a_few_texts_are_enough_where_all_but_one_are_labelled() -> None:
    known = Examples("few", tuple(f"word{i} alone" for i in range(12)), ("a", "b") * 6)
    found = draw(known, Plan(n_per_label=5))
    assert found.known["row"].shape == (2, 5) and len(found.targets) == 2
    with pytest.raises(InvalidInputError, match="0 of 2 labels have 6 labelled texts"):
        draw(known, Plan(n_per_label=6))


def test_labels_of_too_few_texts_are_left_out_and_counted() -> None:
    known = examples(3)
    few = Examples("few", (*known.texts, "lonely"), (*known.labels, "Z"), (*known.groups, "z"))  # type: ignore[misc]
    found = draw(few, plan("run"))
    assert "Z" not in found.labels and found.n_left_out == 1


def test_targets_that_nearly_repeat_a_labelled_text_are_left_out() -> None:
    said = "The minister of state met the doctors near the old harbour on monday"
    texts = [f"{said} {'again' if i % 2 else 'now'}" for i in range(40)]
    fresh = [f"unlike{i} other{i} word{i} here{i} there{i}" for i in range(40)]
    known = Examples("echo", (*texts, *fresh), ("a",) * 40 + ("b",) * 40)
    found = draw(known, Plan(n_per_label=5))
    assert set(found.truth) == {found.labels.index("b")} and found.n_near_duplicates == 20


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"split": "book"}, "split must be one of"),
        ({"n_per_label": 0}, r"n_per_label must lie in \[1, "),
        ({"n_labels": 1}, "Ask for 2 to 2,000 labels"),
        ({"n_labels": 9}, "4 of 4 labels have 12 labelled texts"),
        ({"n_per_label": 200}, "of two groups"),
        ({}, "Name a column of groups"),
    ],
)
def test_draws_that_cannot_be_made_are_refused(changed: dict[str, Any], told: str) -> None:
    known = examples() if changed else replace(examples(), groups=None)
    with pytest.raises(InvalidInputError, match=told):
        draw(known, plan(**({"split": "group"} | changed)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((("x",), ("a",)), "only one: 'a'"),
        (((), ()), "but has none"),
        ((("x", "y"), ("a", "b"), ("g", "g")), "group 'g' contains texts of several labels"),
        ((("x", "y"), ("a",)), "the same length"),
    ],
)
def test_examples_that_say_nothing_are_refused(given: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Examples("x", *given)


# Attacks


def planted(n: int = 40, n_labels: int = 3) -> tuple[list[str], NDArray[np.int64], Any]:
    labels = labelled(n * n_labels, n_labels)
    rng = np.random.default_rng(3)
    texts = [f"word{label} common{rng.integers(9)} the and" for label in labels]
    vectors = (3 * np.eye(n_labels, 8)[labels] + rng.standard_normal((len(labels), 8))).astype("f4")
    return texts, labels, vectors


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTRIBUTE_ATTACKS)
def test_every_attack_keeps_the_contract(name: str) -> None:
    texts, labels, vectors = planted()
    attack = make_attribute_attack(name, QUICK.get(name))
    assert isinstance(attack, AttributeAttack)
    with pytest.raises(NotFittedError):
        attack.scores(texts, vectors)
    assert attack.fit(texts[:90], labels[:90], vectors[:90], n_labels=3, seed=1) is attack
    scores = attack.scores(texts[90:], vectors[90:])
    again = make_attribute_attack(name, QUICK.get(name))
    again.fit(texts[:90], labels[:90], vectors[:90], n_labels=3, seed=1)
    np.testing.assert_array_equal(again.scores(texts[90:], vectors[90:]), scores)
    assert scores.shape == (30, 3) and np.isfinite(scores).all()
    right = float((scores.argmax(1) == labels[90:]).mean())
    assert right > 0.8 if name != "majority" else right < 0.5
    for wrong in (labels[:5], labels[:90] + 9, labels[:90] * 0.5):
        with pytest.raises(InvalidInputError):
            attack.fit(texts[:90], wrong, vectors[:90], n_labels=3)


@pytest.mark.slow
def test_the_order_of_words_is_read_by_the_network_and_not_by_a_bag() -> None:
    fillers = np.random.default_rng(0).choice(list("pqrstuv"), (120, 4))
    texts = [
        " ".join([*row, "left right" if i % 2 else "right left"]) for i, row in enumerate(fillers)
    ]
    labels = labelled(120)
    network = make_attribute_attack("textcnn", QUICK["textcnn"]).fit(
        texts[:80], labels[:80], n_labels=2
    )
    bag = make_attribute_attack("words").fit(texts[:80], labels[:80], n_labels=2)
    right = [float((a.scores(texts[80:]).argmax(1) == labels[80:]).mean()) for a in (network, bag)]
    assert right[0] > 0.9 and right[1] < 0.75


def test_the_majority_is_worked_by_hand() -> None:
    attack = make_attribute_attack("majority").fit(["a"] * 4, np.array([1, 1, 1, 0]), n_labels=3)
    np.testing.assert_allclose(np.exp(attack.scores(["x"]))[0], [2 / 7, 4 / 7, 1 / 7], rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_no_numbers_are_refused(bad: float) -> None:
    texts, labels, vectors = planted()
    probe = LinearProbe().fit(texts, labels, vectors, n_labels=3)
    vectors[2, 1] = bad
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        probe.scores(texts, vectors)
    with pytest.raises(InvalidInputError, match="needs vectors"):
        probe.fit(texts, labels, n_labels=3)
    with pytest.raises(InvalidInputError, match="8 entries"):
        probe.scores(texts, vectors[:, :5])


# Guards of the experiment


def sweep(known: Examples, drawn: Draw, source: str, vectors: Any, shuffled: bool = False) -> float:
    case = Case(0, source, len(drawn.labels), drawn.known[source].shape[1], shuffled)
    shared = SharedVectors(np.arange(len(known.texts)), vectors)
    (found,) = run_cases(LinearProbe(), [case], known, {0: drawn}, shared)
    return found.answers.top(1).value


def test_an_attack_that_knows_groups_by_heart_finds_nothing_where_groups_are_others() -> None:
    known = examples(n_labels=6, n_groups=2)
    rng = np.random.default_rng(0)
    of_group = {group: rng.standard_normal(64) for group in known.groups or ()}
    vectors = np.array([of_group[g] for g in known.groups or ()], np.float32)
    vectors += 0.1 * rng.standard_normal(vectors.shape).astype(np.float32)
    parted = sweep(known, draw(known, plan("group")), "group", vectors)
    leaking = sweep(known, draw(known, plan("row")), "row", vectors)
    assert leaking > 0.95, "a split by text would call the book the author"
    assert parted < 0.5
    contrast = draw(known, plan("contrast"))
    assert sweep(known, contrast, "same_group", vectors) > 0.95
    assert sweep(known, contrast, "group", vectors) < 0.5


def test_shuffled_labels_leave_nothing_to_learn() -> None:
    known = examples(n_labels=6)
    of_label = np.random.default_rng(0).standard_normal((6, 64))
    vectors = of_label[[int(label[-1]) for label in known.labels]].astype(np.float32)
    vectors += np.random.default_rng(1).standard_normal(vectors.shape).astype(np.float32)
    drawn = draw(known, plan("run", n_per_label=30))
    assert sweep(known, drawn, "run", vectors) > 0.95
    assert sweep(known, drawn, "run", vectors, shuffled=True) < 0.45


# Topic or style

TOPICS = ["river bridge harbour", "doctor needle fever", "banker money market"]
MANNERS = ["the of and", "but not so", "with from by"]


def world(by: str, n: int = 900) -> tuple[list[str], NDArray[np.float32], NDArray[np.int64], Any]:
    """Return texts whose vectors hold what they are about and how they are said, and labels."""
    rng = np.random.default_rng(5)
    topic, manner = rng.integers(0, 3, n), rng.integers(0, 3, n)
    texts = [
        " ".join([*rng.permutation(TOPICS[t].split())[:2], *rng.permutation(MANNERS[m].split())])
        for t, m in zip(topic, manner, strict=True)
    ]
    vectors = np.concatenate([np.eye(3, 10)[topic], np.eye(3, 10)[manner]], 1)
    vectors = vectors @ rng.standard_normal((20, 20)) + 0.1 * rng.standard_normal((n, 20))
    groups = [f"g{i // 30}" for i in range(n)]
    return texts, vectors.astype(np.float32), topic if by == "topic" else manner, groups


@pytest.mark.parametrize("by", ["topic", "manner"])
def test_what_tells_a_planted_label_is_found_and_each_part_alone_tells_what_it_holds(
    by: str,
) -> None:
    texts, vectors, labels, groups = world(by)
    (linear,) = train_many(vectors, [Problem(np.arange(300), labels[:300], 3)], Recipe(epochs=100))
    fitted = TopicMap().fit(texts[300:], vectors[300:], groups[300:])
    predicted = fitted.predict(texts[:300])
    found = [explain_label(linear, vectors[i], predicted[i], int(labels[i])) for i in range(300)]
    shares = np.array([each.topic_share for each in found])
    assert np.median(shares) > 0.9 if by == "topic" else np.median(shares) < 0.1
    scores = linear.scores(vectors[:300])
    for each, row in zip(found, scores, strict=True):
        told = each.topic + each.rest + each.before
        assert told == pytest.approx(float(row[each.label] - row.mean()), abs=1e-3)
    assert 0.2 < fitted.r2_ < 0.8, "half of each vector is what its text is about"
    crossed, explained = cross_fitted(texts[300:], vectors[300:], groups[300:])
    rest = vectors[300:] - crossed + linear.centre
    topic, manner = (
        (linear.scores(part).argmax(1) == labels[300:]).mean() for part in (crossed, rest)
    )
    assert 0.2 < explained < 0.8
    right, wrong = (topic, manner) if by == "topic" else (manner, topic)
    assert right > 0.9 and wrong < 0.6


def test_a_map_of_too_few_texts_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 20 texts"):
        TopicMap().fit(["a b"] * 5, np.zeros((5, 2)))
    with pytest.raises(InvalidInputError, match="No content word"):
        TopicMap().fit(["the and"] * 30, np.zeros((30, 2)))
    with pytest.raises(InvalidInputError, match="two groups"):
        cross_fitted(["river"] * 30, np.zeros((30, 2)), ["one"] * 30)


def test_labels_of_which_no_target_is_left_come_last() -> None:
    own = {
        f"user {i}": [f"{word} {i} says {word} {n} of it" for n, word in enumerate(WORDS)]
        for i in range(4)
    }
    for stock in ("user 0", "user 1"):  # whoever they are attacked by, it is a stock phrase
        own[stock] = ["the very same phrase as ever"] * len(WORDS)
    texts = [text for said in own.values() for text in said]
    labels = [user for user, said in own.items() for _ in said]
    for seed in range(6):  # some order of chance begins with them
        drawn = draw(Examples("users", tuple(texts), tuple(labels)), Plan(n_per_label=3, seed=seed))
        assert set(drawn.labels) == set(own) and set(drawn.labels[2:]) == {"user 0", "user 1"}
        assert len(drawn.target_indices(2)) > 0
        assert [labels[i] for i in drawn.targets] == [drawn.labels[j] for j in drawn.truth]
        known = drawn.known["row"]
        assert [[labels[i] for i in rows] for rows in known] == [
            [name] * 3 for name in drawn.labels
        ]


WORDS = ("river", "garden", "letter", "bridge", "market", "window", "forest", "dinner", "ticket")
