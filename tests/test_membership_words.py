"""Membership of windows of words: equations by hand, what may be compared, what is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.attacks.membership.registry import WORD_ATTACKS
from leakscope.core.attacks.membership.roc import GroupThresholds, Ranking, auc
from leakscope.core.attacks.membership.words.attack import (
    NO_VECTOR,
    CentredWindows,
    CosineWindows,
    WeighedWindows,
    WordVectors,
    distance_similarities,
    remove_frequency,
    sampling_weights,
    window_similarity,
)
from leakscope.core.attacks.membership.words.windows import (
    Windows,
    balanced_mask,
    extract_windows,
    frequency_deciles,
    frequent_in_both,
    number_words,
    windows_in_both,
    word_deciles,
)
from leakscope.core.errors import InvalidInputError

Rows = NDArray[np.int64]


def windows(centres: list[int], contexts: list[list[int]]) -> Windows:
    return Windows(np.array(centres), np.array(contexts), np.zeros(len(centres), dtype=np.int64))


UNITS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)


def test_the_score_is_the_mean_cosine_of_the_centre_and_those_around() -> None:
    found = windows([0, 1], [[1, 2, 1, 2], [0, 2, 0, 0]])
    scores = window_similarity(found, UNITS, np.arange(3))
    assert scores == pytest.approx([(0.6 + 0 + 0.6 + 0) / 4, (0.6 * 3 + 0.8) / 4])


def test_vectors_of_any_length_count_by_their_direction() -> None:
    words = WordVectors(UNITS * np.array([[3.0], [0.5], [7.0]], np.float32), np.arange(3))
    attack = CosineWindows().fit(words, windows([0], [[1, 2]]), np.array([True]))
    assert attack.score(windows([0], [[1, 2]])) == pytest.approx([0.3])


def test_words_without_a_vector_and_the_centre_itself_are_left_out() -> None:
    rows = np.array([0, 1, NO_VECTOR, 2])
    found = windows([0, 0, 0, 2, 0], [[1, 2], [1, 0], [2, 2], [0, 1], [0, 0]])
    scores = window_similarity(found, UNITS, rows)
    assert scores[:2] == pytest.approx([0.6, 0.6])
    assert np.isnan(scores[2:]).all(), "nothing is known of these"


def test_weights_are_of_the_words_around() -> None:
    scores = window_similarity(
        windows([0], [[1, 2]]), UNITS, np.arange(3), np.array([9.0, 1.0, 3.0])
    )
    assert scores == pytest.approx([(1 * 0.6 + 3 * 0.0) / 4])


def test_similarities_are_told_by_distance() -> None:
    units = np.vstack([UNITS, [[-1.0, 0.0]]]).astype(np.float32)
    found = windows([0], [[3, 1, 2, 3]])
    apart = distance_similarities(found, units, np.arange(4), np.ones(4))
    assert apart == pytest.approx(np.array([[(0.6 + 0.0) / 2, -1.0]]))
    rows = np.array([0, NO_VECTOR, NO_VECTOR, 3])
    assert distance_similarities(found, units, rows, np.ones(4)).tolist() == [[0.0, -1.0]]


@pytest.mark.slow
def test_weights_by_distance_find_vectors_that_part_what_stood_together() -> None:
    found, members = passages(200, 9)
    own = found.take(members)
    near = Windows(own.centres, own.contexts[:, 1:3], own.documents)
    far = Windows(own.centres, own.contexts[:, [0, 3]], own.documents)
    vectors = memorising(near, far)
    centred, weighed = (
        auc(ranking(kind, vectors, found, members, 60), n_resamples=10).value
        for kind in (CentredWindows, WeighedWindows)
    )
    assert weighed > centred + 0.1


def test_many_windows_are_scored_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.append(np.arange(50), NO_VECTOR)
    many = Windows(
        rng.integers(51, size=45_000), rng.integers(51, size=(45_000, 4)), np.zeros(45_000, int)
    )
    scores = window_similarity(many, vectors, rows)
    for i in (0, 19_999, 20_000, 44_999):
        centre, around = int(many.centres[i]), [int(w) for w in many.contexts[i]]
        cosines = [
            float(vectors[centre] @ vectors[w])
            for w in around
            if centre != 50 and w not in (50, centre)
        ]
        if cosines:
            assert scores[i] == pytest.approx(np.mean(cosines), abs=1e-6)
        else:
            assert np.isnan(scores[i])


def test_windows_lie_within_a_sentence_and_are_whole() -> None:
    numbered = number_words([["aa bb cc dd", "ee ff"], ["gg hh ii"]])
    found = extract_windows(numbered, 3)
    told = [
        [numbered.words[i] for i in (around[0], centre, around[1])]
        for centre, around in zip(found.centres, found.contexts, strict=True)
    ]
    assert told == [["aa", "bb", "cc"], ["bb", "cc", "dd"], ["gg", "hh", "ii"]]
    assert found.documents.tolist() == [0, 0, 1]
    assert len(extract_windows(numbered, 5)) == 0
    assert len(extract_windows(number_words([]), 5)) == 0


@pytest.mark.parametrize("n_words", [1, 2, 4])
def test_a_window_has_a_word_in_its_middle(n_words: int) -> None:
    with pytest.raises(InvalidInputError, match="odd"):
        extract_windows(number_words([["aa bb cc"]]), n_words)


def test_words_are_counted_by_side() -> None:
    numbered = number_words([["aa bb aa"], ["bb cc"]])
    inside = numbered.counts(np.array([True, False]))
    outside = numbered.counts(np.array([False, True]))
    assert (inside.tolist(), outside.tolist()) == ([2, 1, 0], [0, 1, 1])
    assert frequent_in_both(inside, outside, 1).tolist() == [False, True, False]


def test_a_window_that_stands_on_both_sides_is_no_evidence() -> None:
    found = windows([0, 0, 0, 5], [[1, 2], [1, 2], [2, 1], [1, 2]])
    told = windows_in_both(found, np.array([True, False, False, True]))
    assert told.tolist() == [True, True, False, False], "order and centre count"


def test_each_centre_word_has_as_many_members_as_others() -> None:
    rng = np.random.default_rng(1)
    groups, members = rng.integers(30, size=4000), rng.random(4000) < 0.8
    kept = balanced_mask(groups, members, seed=3)
    inside = np.bincount(groups[kept & members], minlength=30)
    outside = np.bincount(groups[kept & ~members], minlength=30)
    assert np.array_equal(inside, outside)
    assert np.array_equal(outside, np.bincount(groups[~members], minlength=30)), "none is wasted"
    assert not np.array_equal(kept, balanced_mask(groups, members, seed=4)), "the lot decides"


def test_deciles_run_from_frequent_to_rare_and_are_equally_full() -> None:
    frequencies = np.array([*[3.0] * 10, *range(100, 190)])
    found = frequency_deciles(frequencies)
    assert np.bincount(found).tolist() == [0, *[10] * 10]
    assert set(found[:10]) == {10} and found[-1] == 1
    assert set(frequency_deciles(np.ones(20))) == set(range(1, 11)), "equal ones are dealt"


def test_windows_have_the_decile_of_their_centre_word() -> None:
    counts = np.arange(20, 0, -1)
    centres = np.array([0, 0, 0, 9, 19, 19])
    found = word_deciles(centres, counts)
    assert found[:3].tolist() == [found[0]] * 3 and found[0] < found[3] < found[4] == found[5]
    whole = word_deciles(np.arange(20), counts)
    assert whole.tolist() == [1 + i // 2 for i in range(20)]


def test_centred_vectors_share_nothing_with_words_of_like_frequency() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(400, 10)) + np.linspace(0, 30, 400)[:, None] * np.eye(10)[0]
    found = remove_frequency(vectors.astype(np.float32), 0, 50)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(400), abs=1e-5)
    assert np.abs(found[100:150].mean(0)).max() < 0.25 < vectors[100:150].mean(0).max()
    without = remove_frequency(vectors.astype(np.float32), 3, 50)
    assert np.linalg.matrix_rank(without - without.mean(0), tol=1e-2) <= 10


def test_the_mean_taken_off_is_that_of_neighbours_by_rank() -> None:
    from leakscope.core.attacks.membership.words.attack import _moving_mean

    table = np.array([[0.0], [3.0], [6.0], [30.0]], np.float32)
    assert _moving_mean(table, 1).ravel().tolist() == [1.5, 3.0, 13.0, 18.0]


def test_sampling_keeps_rare_words_in_full() -> None:
    weights = sampling_weights(1000, 1e-3)
    assert weights[0] == pytest.approx(np.sqrt(1e-3 * sum(1 / r for r in range(1, 1001))))
    assert weights[-1] == 1.0 and (np.diff(weights) >= 0).all()


def test_thresholds_are_those_of_labelled_samples_group_by_group() -> None:
    scores = np.array([1.0, 2.0, 5.0, 6.0, 9.0])
    members = np.array([False, True, False, True, True])
    cuts = GroupThresholds.fit(scores, members, np.array([1, 1, 2, 2, 3]))
    assert cuts.by_group == {1: 1.5, 2: 5.5}
    asked = np.array([1.6, 1.6, 5.6]), np.array([1, 2, 3])
    assert cuts.decide(*asked).tolist() == [True, False, cuts.otherwise < 5.6]
    with pytest.raises(InvalidInputError, match="All"):
        GroupThresholds.fit(scores[1:2], members[1:2], np.array([1]))


def passages(n_documents: int, seed: int, sides: int = 2) -> tuple[Windows, NDArray[np.bool_]]:
    """Windows of random words, those of even documents being members."""
    rng = np.random.default_rng(seed)
    n = n_documents * 40
    documents = np.repeat(np.arange(n_documents), 40)
    found = Windows(rng.integers(300, size=n), rng.integers(300, size=(n, 4)), documents)
    return found, documents % sides == 0


ATTACKS = {name: entry.kind for name, entry in WORD_ATTACKS.items()}


def ranking(
    kind: Any,
    vectors: NDArray[np.float32],
    found: Windows,
    members: NDArray[np.bool_],
    n_known: int,
) -> Ranking:
    """Return how an attack that knows the first documents ranks the windows of the others."""
    known = found.documents < n_known
    words = WordVectors(vectors, np.arange(300))
    attack = kind().fit(words, found.take(known), members[known])
    scores = attack.score(found.take(~known))
    return Ranking(scores, members[~known], found.documents[~known].tolist())


@pytest.mark.parametrize("name", ATTACKS)
def test_vectors_that_were_not_trained_on_anything_tell_nothing(name: str) -> None:
    vectors = np.random.default_rng(6).normal(size=(300, 12)).astype(np.float32)
    area = auc(ranking(ATTACKS[name], vectors, *passages(100, 5), 20))
    assert area.ci95.low <= 0.5 <= area.ci95.high and abs(area.value - 0.5) < 0.04


@pytest.mark.parametrize("name", ATTACKS)
def test_vectors_that_memorise_their_windows_are_found_out(name: str) -> None:
    found, members = passages(100, 7)
    vectors = memorising(found.take(members))
    area = auc(ranking(ATTACKS[name], vectors, found, members, 20), n_resamples=10)
    assert area.value > 0.9


def memorising(alike: Windows, unlike: Windows | None = None) -> NDArray[np.float32]:
    """Return vectors in which words are alike that stood in one window, or unlike."""
    together = 5.0 * np.eye(300)
    for trained_on, sign in ((alike, 1.0), (unlike, -1.0)):
        for column in () if trained_on is None else trained_on.contexts.T:
            np.add.at(together, (trained_on.centres, column), sign)
            np.add.at(together, (column, trained_on.centres), sign)
    values, axes = np.linalg.eigh(together)
    return (axes * np.sqrt(np.maximum(values, 0))).astype(np.float32)


def test_what_is_chosen_is_chosen_on_labelled_windows_alone() -> None:
    found, members = passages(60, 8)
    words = WordVectors(memorising(found.take(members)), np.arange(300))
    known = found.documents < 20
    one = CentredWindows().fit(words, found.take(known), members[known])
    turned = members.copy()
    turned[~known] = ~turned[~known]
    two = CentredWindows().fit(words, found.take(known), turned[known])
    assert np.array_equal(one.score(found), two.score(found))
    assert one.n_directions_ in (0, 2, 5, 10)


@pytest.mark.parametrize("change", [lambda rows: rows, lambda rows: rows[::-1].copy()])
def test_unused_words_lose_their_vector(change: Callable[[Rows], Rows]) -> None:
    words = WordVectors.of(["aa", "bb", "cc"], ["cc", "aa"], UNITS[:2])
    assert words.rows.tolist() == [1, NO_VECTOR, 0]
    assert words.only(np.array([True, True, False])).rows.tolist() == [1, NO_VECTOR, NO_VECTOR]
