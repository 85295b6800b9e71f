"""Membership of pairs of sentences and of books: equations by hand, and what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leakscope.core.attacks.membership.registry import SENTENCE_ATTACKS
from leakscope.core.attacks.membership.roc import Ranking, auc, best_threshold
from leakscope.core.attacks.membership.sentences.learned import (
    LearnedSimilarity,
    PairSimilarity,
    membership_loss,
    pair_similarity,
)
from leakscope.core.attacks.membership.sentences.scoring import (
    BookPairs,
    cross_fitted_scores,
    mean_by_book,
    mean_by_unit,
    rarity,
)
from leakscope.core.errors import InvalidInputError, NotFittedError

Vectors = NDArray[np.float32]


def test_the_similarity_of_a_pair_is_the_dot_product() -> None:
    first = np.array([[1.0, 2.0], [0.5, -1.0]], np.float32)
    second = np.array([[3.0, -1.0], [2.0, 2.0]], np.float32)
    assert pair_similarity(first, second).tolist() == [1.0, -1.0]
    with pytest.raises(InvalidInputError, match="one shape"):
        pair_similarity(first, second[:1])


def test_a_book_has_the_mean_of_its_pairs() -> None:
    means, books = mean_by_unit(np.array([1.0, -2.0, 4.0, 10.0]), np.array([2, 2, 2, 0]))
    assert (means.tolist(), books.tolist()) == ([10.0, 1.0], [0, 2])
    with pytest.raises(InvalidInputError, match="units"):
        mean_by_unit(np.ones(2), np.ones(3, dtype=np.int64))


def test_a_book_has_a_mean_for_each_tenth_of_its_pairs() -> None:
    scores, books = np.array([1.0, 3.0, 5.0, 7.0]), np.array([1, 1, 0, 1])
    found = mean_by_book(scores, books, np.array([0, 0, 0, 4]))
    assert [each.tolist() for each in found] == [[5.0, 2.0, 7.0], [0, 1, 1], [0, 0, 4], [2, 0, 3]]


def test_equation_10_and_its_gradient_are_those_of_the_hand() -> None:
    matrix = torch.tensor([[0.5]], requires_grad=True)
    offset = torch.tensor(-1.0, requires_grad=True)
    first, second = torch.tensor([[2.0]]), torch.tensor([[3.0]])
    loss = membership_loss(matrix, offset, first, second, torch.tensor([1.0]))
    logit = 0.5 * 2 * 0.5 * 3 - 1.0
    said = 1 / (1 + math.exp(-logit))
    assert loss.item() == pytest.approx(-math.log(said))
    loss.backward()
    assert matrix.grad is not None and offset.grad is not None
    assert matrix.grad.item() == pytest.approx((said - 1) * 2 * 0.5 * 2 * 3)  # dδ'/dw = 2w·x_a·x_b
    assert offset.grad.item() == pytest.approx(said - 1)
    other = membership_loss(matrix, offset, first, second, torch.tensor([0.0]))
    assert other.item() == pytest.approx(-math.log(1 - said))


def test_a_given_projection_gives_the_similarity_after_it() -> None:
    attack = LearnedSimilarity()
    attack.matrix_, attack.offset_ = np.array([[2.0, 0.0], [0.0, 0.0]], np.float32), 0.25
    first, second = np.array([[1.0, 9.0]], np.float32), np.array([[3.0, 9.0]], np.float32)
    assert attack.score(first, second).tolist() == [2 * 1 * 2 * 3 + 0.25]


def test_what_has_not_learned_yet_ranks_as_the_fixed_similarity() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 30, 5)).astype(np.float32)
    members = np.arange(30) < 15
    attack = LearnedSimilarity(epochs=0).fit(first, second, members)
    fixed = PairSimilarity().fit(first, second, members).score(first, second)
    assert attack.score(first, second) == pytest.approx((fixed - fixed.mean()) / fixed.std(), 1e-3)


def test_what_was_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError, match="labelled"):
        LearnedSimilarity().score(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32))


def hidden(n_books: int, n_pairs: int = 40, seed: int = 0) -> tuple[Vectors, BookPairs, NDArray]:
    """Books of even number are members: in two dimensions of ten their pairs point alike."""
    rng = np.random.default_rng(seed)
    books = np.repeat(np.arange(n_books), n_pairs)
    members = books % 2 == 0
    n = len(books)
    vectors = 3.0 * rng.normal(size=(2 * n, 10))
    shared = rng.normal(size=(n, 2))
    vectors[:n, :2] = np.where(members[:, None], shared, rng.normal(size=(n, 2)))
    vectors[n:, :2] = shared
    pairs = BookPairs(tuple(map(str, range(2 * n))), np.arange(n), np.arange(n, 2 * n), books)
    return vectors.astype(np.float32), pairs, members


def test_a_learned_similarity_finds_what_the_fixed_one_hardly_does() -> None:
    vectors, pairs, members = hidden(200)
    labelled = pairs.documents < 60
    attacks = {"fixed": PairSimilarity, "learned": lambda: LearnedSimilarity(learning_rate=0.01)}
    areas = {}
    for name, attack in attacks.items():
        scores = cross_fitted_scores(attack, vectors, pairs, members, labelled)[~labelled]
        areas[name] = auc(Ranking(scores, members[~labelled]), n_resamples=10).value
    assert areas["learned"] > areas["fixed"] + 0.1 > 0.6


@pytest.mark.parametrize("name", SENTENCE_ATTACKS)
def test_vectors_at_random_tell_nothing(name: str) -> None:
    _, pairs, members = hidden(100)
    vectors = np.random.default_rng(3).normal(size=(len(pairs.texts), 10)).astype(np.float32)
    labelled = pairs.documents < 20
    scores = cross_fitted_scores(SENTENCE_ATTACKS[name].kind, vectors, pairs, members, labelled)
    area = auc(Ranking(scores[~labelled], members[~labelled], pairs.documents[~labelled].tolist()))
    assert area.ci95.low <= 0.5 <= area.ci95.high and abs(area.value - 0.5) < 0.04


def test_nothing_is_scored_by_an_attack_that_learned_of_it() -> None:
    vectors, pairs, members = hidden(16)
    labelled = pairs.documents < 12
    seen: list[tuple[set[int], set[int]]] = []
    book = {tuple(vectors[i]): int(b) for i, b in zip(pairs.first, pairs.documents, strict=True)}

    class Spy:
        def fit(self, first: Vectors, second: Vectors, inside: NDArray) -> Spy:
            self.knows = {book[tuple(row)] for row in first}
            return self

        def score(self, first: Vectors, second: Vectors) -> NDArray[np.float64]:
            seen.append((self.knows, {book[tuple(row)] for row in first}))
            return np.zeros(len(first))

    cross_fitted_scores(Spy, vectors, pairs, members, labelled)
    assert seen and all(not knows & asked for knows, asked in seen)
    assert all(knows <= set(range(12)) for knows, _ in seen), "it learns of labelled books alone"
    assert set().union(*(asked for _, asked in seen)) == set(range(16))


def test_a_threshold_holds_for_attacks_of_other_scales() -> None:
    """Each fit has a scale and an offset of its own, as trainings of few labels have."""
    vectors, pairs, members = hidden(40)
    labelled = pairs.documents < 12
    truth = {tuple(row): kind for row, kind in zip(vectors[pairs.first], members, strict=True)}
    scales = iter([0.01, 1.0, 50.0, 3.0, 1000.0])

    class Scaled:
        def fit(self, first: Vectors, second: Vectors, inside: NDArray) -> Scaled:
            self.scale = next(scales)
            return self

        def score(self, first: Vectors, second: Vectors) -> NDArray[np.float64]:
            told = np.array([float(truth[tuple(row)]) for row in first])
            return self.scale * (told + np.linspace(0, 0.1, len(told)) + 7)

    scores = cross_fitted_scores(Scaled, vectors, pairs, members, labelled)
    threshold = best_threshold(scores[labelled], members[labelled])
    assert ((scores > threshold) == members)[~labelled].all()


def test_pairs_of_rare_words_are_rare() -> None:
    texts = ("the the the the", "the cat sat", "zebra")
    found = rarity(texts, np.array([0, 1]), np.array([1, 2]))
    shares = {"the": 5 / 8, "cat": 1 / 8, "sat": 1 / 8, "zebra": 1 / 8}
    first = [*["the"] * 5, "cat", "sat"]
    assert found[0] == pytest.approx(np.mean([-math.log(shares[w]) for w in first]))
    assert found[1] > found[0]


def test_pairs_number_each_sentence_once() -> None:
    found = BookPairs.of([("a", "b"), ("b", "c")], [4, 4])
    assert found.texts == ("a", "b", "c")
    assert (found.first.tolist(), found.second.tolist()) == ([0, 1], [1, 2])
