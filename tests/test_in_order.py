"""The paper's order and goals, judged by intervals: text above token, the losses, half won back."""

from __future__ import annotations

import pytest

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.training import adaptive, constrained
from leakscope.core.studies.training.privacy_tables import change_from


def score(value: float, half: float = 2.0, chance: float = 50.0) -> Score:
    return Score(value, Interval(value - half, value + half), 100, chance)


def adapted_row(objective: str, accuracy: float, **changes: Score) -> Row:
    cell = {
        "task": "sst2",
        "reader": "transformer",
        "defence": "token_representation",
        "seed": 0,
        "defence_settings": {"eta": 65.0},
        "objective": objective,
    }
    scores = {
        "accuracy": score(accuracy),
        "constrained_accuracy": score(55.0),
        "null_accuracy": score(85.0),
        "gain": score(accuracy - 55),
        "won_back": score(100 * (accuracy - 55) / 30, 10.0),
    }
    scores |= {change_from(other): change for other, change in changes.items()}
    facts = {
        "n": 100,
        "n_train": 50,
        "minutes": 1.0,
        "pretraining_minutes": 2.0,
        "eta": 65.0,
        "tokens_seen": 10**6,
        "all_tokens_seen": 2 * 10**6,
        "distinct_tokens_seen": 10**6,
        "paper_tokens": 10**9,
        "loss_by_tokens": [[0, 7.0], [10**6, 5.0]],
        "paper_eta": 100,
    }
    return Row(cell, scores, facts)


@pytest.mark.parametrize(
    ("probability", "beside_vanilla", "beside_probability", "judged"),
    [
        (1.0, 3.0, 2.0, "confirmed"),
        (-1.0, 3.0, 4.0, "contradicted"),
        (1.0, 1.2, 0.2, "neither confirmed nor contradicted"),
        (0.2, 2.0, 0.2, "neither confirmed nor contradicted"),
    ],
)
def test_the_order_of_the_losses_is_judged_by_their_changes_on_the_same_texts(
    probability: float, beside_vanilla: float, beside_probability: float, judged: str
) -> None:
    """The accuracies' own intervals reach over each other: nothing is told by them."""
    rows = [
        adapted_row("vanilla", 60.0),
        adapted_row("probability", 61.0, vanilla=score(probability, 0.5)),
        adapted_row(
            "denoising",
            62.0,
            vanilla=score(beside_vanilla, 0.5),
            probability=score(beside_probability, 0.5),
        ),
    ]
    said = adaptive.markdown(rows)
    told = {True: "significantly better than", False: "not significantly different from"}
    value, ends = score(beside_probability, 0.5).parts()
    assert (
        f"- η 65: Denoising MLM is {told[beside_probability > 0.5]} Probability MLM ({value} "
        f"points, 95 % CI {ends}); Denoising MLM is significantly better than Vanilla MLM ("
    ) in said
    assert f". The paper's order is {judged}.\n" in said and said.count("paper's order") == 1
    assert ("significantly worse than" in said) is (probability == -1.0)


def test_losses_of_rows_without_a_change_are_in_order_where_intervals_are_apart() -> None:
    far = [adapted_row("vanilla", 60.0), adapted_row("denoising", 64.1)]
    order = "The paper's order is"
    assert f"better than Vanilla MLM. {order} confirmed." in adaptive.markdown(far)
    near = [adapted_row("vanilla", 60.0), adapted_row("denoising", 63.9)]
    assert (
        f"not significantly different from Vanilla MLM. {order} neither confirmed nor contradicted."
        in adaptive.markdown(near)
    )
    turned = [adapted_row("vanilla", 70.0), adapted_row("probability", 60.0)]
    assert f"worse than Vanilla MLM. {order} contradicted." in adaptive.markdown(turned)


@pytest.mark.parametrize(
    ("accuracy", "judged"),
    [
        (73.1, "significantly met"),
        (72.9, "neither significantly met nor missed"),  # 60 [50, 70], less a hair
        (67.1, "neither significantly met nor missed"),
        (66.9, "significantly missed"),
    ],
)
def test_the_goal_of_half_is_judged_by_the_ends_of_the_share(accuracy: float, judged: str) -> None:
    said = adaptive.markdown([adapted_row("denoising", accuracy)])
    assert f"%; the goal of 50 % is {judged}.\n" in said
    assert "the goal of 50 %" not in adaptive.markdown([adapted_row("vanilla", accuracy)])


def test_a_share_without_an_interval_decides_no_goal() -> None:
    (row,) = (adapted_row("denoising", 84.0),)
    row.scores["won_back"] = Score(96.0, n=100, chance=0.0)
    assert "is neither significantly met nor missed" in adaptive.markdown([row])


def constrained_row(mechanism: str, accuracy: float, **changes: Score) -> Row:
    cell = {
        "task": "sst2",
        "reader": "bilstm",
        "defence": mechanism,
        "seed": 0,
        "defence_settings": {"eta": 65.0},
    }
    scores = {
        "accuracy": score(accuracy),
        "null_accuracy": score(80.0),
        "change": score(accuracy - 80),
        "noiseless_accuracy": score(80.0),
        "change_by_noise": score(accuracy - 80),
    }
    scores |= {change_from(other): change for other, change in changes.items()}
    facts = {"n": 100, "n_train": 50, "minutes": 1.0, "eta": 65.0, "paper_eta": 100}
    return Row(cell, scores, facts)


@pytest.mark.parametrize(
    ("accuracy", "change", "told"),
    [
        (61.0, score(1.0, 0.5), "at 1 of 1 η. Points on the same texts: 1.0 [0.5, 1.5] at η 65."),
        (
            66.0,
            score(6.0, 7.0),
            "at 0 of 1 η; not significantly different at η 65. Points on the same",
        ),
        (59.0, score(-1.0, 0.5), "at 0 of 1 η; below at η 65. Points on the same"),
        (64.1, None, "at 1 of 1 η.\n"),
        (63.9, None, "at 0 of 1 η; not significantly different at η 65.\n"),
    ],
)
def test_text_is_held_against_token_on_the_same_texts_where_rows_tell(
    accuracy: float, change: Score | None, told: str
) -> None:
    changes = {} if change is None else {"token_representation": change}
    rows = [
        constrained_row("token_representation", 60.0),
        constrained_row("text_to_text", accuracy, **changes),
    ]
    said = constrained.markdown(rows)
    line = "text to text is significantly above token representation"
    assert f"BiLSTM, noise drawn in every epoch: {line} {told}" in said


@pytest.mark.parametrize(("chance", "is_told"), [(78.4, False), (78.6, True), (95.0, True)])
def test_a_network_that_guesses_without_noise_tells_no_mechanism_from_another(
    chance: float, is_told: bool
) -> None:
    null = constrained_row("none", 80.0)
    null.cell["defence_settings"], null.facts["eta"] = {}, None
    null.scores["accuracy"] = Score(80.0, Interval(78.5, 81.5), 100, chance)
    text = constrained_row("text_to_text", 66.0, token_representation=score(6.0, 1.0))
    said = constrained.markdown([null, constrained_row("token_representation", 60.0), text])
    assert ("so the mechanisms cannot be compared here." in said) == is_told
