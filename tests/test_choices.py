"""SanText, SanText+, CusText, TEM and ranked answers against chances counted out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from leakscope.core.defences.metric_dp import exponential_mechanism
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.custext import (
    CusText,
    TokenSets,
    custext_log_weights,
    partition_tokens,
)
from leakscope.core.defences.metric_dp.exponential_mechanism import (
    TEM,
    Distances,
    SampleBuffer,
    SanText,
    SanTextPlus,
    check_epsilon,
    sample_columns,
    sensitive_tokens,
    tem_gamma,
    tem_log_weights,
)
from leakscope.core.defences.metric_dp.mechanisms import TextToTextRanked, draw_ranks
from leakscope.core.defences.metric_dp.replacement_ranks import replacement_ranks
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError

N_DRAWS = 40_000
"""Of each input; χ² then sees a chance that is off by a few per cent of itself."""

POINTS = [(0.0, 0.0), (1.0, 0.0), (0.0, 2.0), (3.0, 1.0), (4.0, 4.0), (9.0, 0.0)]
"""Six tokens of a toy vocabulary."""


@dataclass
class Toy:
    """The six tokens and, last, [UNK], which may not be returned."""

    fingerprint: str = "toy"
    name: str = "toy"
    dimension: int = 2

    @property
    def tokens(self) -> list[str]:
        return [*"abcdef", "[UNK]"]

    @property
    def token_vectors(self) -> torch.Tensor:
        return torch.tensor([*POINTS, (5.0, 5.0)])

    special_token_ids = (6,)

    def token_ids(self, texts: list[str], *, is_whole: bool = False) -> list[list[int]]:
        # Any text counts as “a b b”: these two are frequent, the others are never seen.
        return [[0, 1, 1] for _ in texts]

    def text_of(self, ids: list[int]) -> str:
        return " ".join(self.tokens[i] for i in ids)

    def embed_token_vectors(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.mean(1)


def d(x: int, y: int) -> float:
    points = [*POINTS, (5.0, 5.0)]
    return math.dist(points[x], points[y])


def scaled(weights: list[float]) -> list[float]:
    return [w / sum(weights) for w in weights]


def santext(x: int, epsilon: float) -> list[float]:
    return scaled([math.exp(-epsilon * d(x, y) / 2) for y in range(6)])


def santext_plus(x: int, epsilon: float, p: float) -> list[float]:
    rare = scaled([math.exp(-epsilon * d(x, y) / 2) if y > 1 else 0.0 for y in range(6)])
    if x > 1:
        return rare
    return [p * c + (1 - p) * (x == y) for y, c in enumerate(rare)]


def tem(x: int, epsilon: float, beta: float) -> list[float]:
    """Draw by the paper's two steps: ⊥ competes for all that lie beyond γ."""
    gamma = 2 / epsilon * math.log((1 - beta) * 5 / beta)
    far = [y for y in range(6) if d(x, y) > gamma]
    bottom = math.exp(epsilon / 2 * (-gamma + 2 / epsilon * math.log(len(far)))) if far else 0.0
    near = {y: math.exp(-epsilon / 2 * d(x, y)) for y in range(6) if y not in far}
    total = sum(near.values()) + bottom
    return [near[y] / total if y in near else bottom / total / len(far) for y in range(6)]


def custext(x: int, epsilon: float, members: list[int]) -> list[float]:
    near, far = (f(d(x, y) for y in members) for f in (min, max))
    return scaled(
        [
            math.exp(-epsilon / 2 * (d(x, y) - near) / (far - near)) if y in members else 0.0
            for y in range(6)
        ]
    )


# By hand: of 6 tokens with k = 3 the first set is a with its two nearest, b and c.
SETS = ([0, 1, 2], [3, 4, 5])
NEAREST_3 = {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2], 5: [3, 4, 5]}
CASES: list[tuple[Any, dict[int, list[float]]]] = [
    (SanText(epsilon=0.7), {x: santext(x, 0.7) for x in (0, 3, 6)}),
    (
        SanTextPlus(epsilon=0.7, p=0.4, sensitive=0.5),
        {x: santext_plus(x, 0.7, 0.4) for x in (0, 1, 4, 6)},
    ),
    (TEM(epsilon=1.0, beta=0.4), {x: tem(x, 1.0, 0.4) for x in (0, 3, 5, 6)}),
    (CusText(epsilon=3.0, k=3), {x: custext(x, 3.0, SETS[x // 3]) for x in (0, 2, 3)}),
    # [UNK] lies nearest to e, whose set it then has.
    (CusText(epsilon=3.0, k=3), {6: custext(6, 3.0, SETS[1])}),
    (
        CusText(epsilon=3.0, k=3, mapping="aggressive"),
        {x: custext(x, 3.0, NEAREST_3[x]) for x in (0, 1, 2, 5)},
    ),
]


@pytest.mark.parametrize(("mechanism", "chances"), CASES, ids=lambda case: type(case).__name__)
def test_tokens_come_out_as_often_as_counted_by_hand(
    mechanism: Any, chances: dict[int, list[float]]
) -> None:
    privatizer = mechanism.privatizer(Toy(), np.random.default_rng(11))
    inputs = np.repeat(list(chances), N_DRAWS)
    rng = np.random.default_rng(12)
    rng.shuffle(inputs)
    found = privatizer.tokens(inputs)
    for x, expected in chances.items():
        counts = np.bincount(found[inputs == x], minlength=6)
        possible = np.array(expected) > 0
        assert not counts[~possible].any()
        assert sum(expected) == pytest.approx(1)
        wanted = N_DRAWS * np.array(expected)[possible]
        if possible.sum() > 1:
            assert stats.chisquare(counts[possible], wanted).pvalue > 1e-4, (x, counts, wanted)
            # The test has power: a twentieth less of the likeliest token would show.
            off, top = wanted.copy(), wanted.argmax()
            off[top] *= 0.95
            off *= wanted.sum() / off.sum()
            assert stats.chisquare(off, wanted).pvalue < 0.05


@pytest.mark.parametrize(("mechanism", "chances"), CASES, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("is_remembered", [False, True])
def test_a_mechanism_tells_the_chances_of_what_is_asked(
    mechanism: Any, chances: dict[int, list[float]], is_remembered: bool
) -> None:
    privatizer = mechanism.privatizer(Toy(), np.random.default_rng(11))
    inputs, asked = np.array([*chances, *chances]), np.array([4, 6, 0, 2, 99])  # two are none
    if is_remembered:
        privatizer.precompute(inputs[:1])
    law = np.array([*chances.values()] * 2)
    assert privatizer.chances(inputs) == pytest.approx(law)
    found = privatizer.chances(inputs, asked)
    assert found[:, [0, 2, 3]] == pytest.approx(law[:, [4, 0, 2]])
    assert not found[:, [1, 4]].any(), "what may not be returned never is"


def test_a_set_that_is_smaller_than_the_greatest_has_no_members_more() -> None:
    privatizer: Any = CusText(epsilon=3.0, k=2).privatizer(Toy(), np.random.default_rng(0))
    members = [[0, 1, 2, 3], [4, 5, -1, -1]]
    privatizer._sets = TokenSets(np.array([0, 0, 0, 0, 1, 1]), np.array(members))
    law = np.array([custext(x, 3.0, [4, 5] if x > 3 else [0, 1, 2, 3]) for x in range(6)])
    assert privatizer.chances(np.arange(6)) == pytest.approx(law)
    asked = np.array([5, 0])
    assert privatizer.chances(np.arange(6), asked) == pytest.approx(law[:, asked])


def test_tem_is_santext_up_to_gamma_and_one_chance_beyond() -> None:
    assert tem_gamma(1.0, 0.4, 6) == pytest.approx(2 * math.log(7.5))
    assert tem_gamma(1.0, 0.999, 2) == 0.0, "all alike, not a negative distance"
    gamma = tem_gamma(3.0, 0.001, 1000)
    assert gamma == pytest.approx(2 / 3 * math.log(0.999 * 999 / 0.001))
    distances = np.array([[0.0, 1.0, 5.0, 7.0]])
    weights = tem_log_weights(distances, epsilon=2.0, gamma=4.0)
    assert weights.tolist() == [[0.0, -1.0, -4.0, -4.0]]
    with pytest.raises(InvalidInputError, match="beta"):
        tem_gamma(1.0, 1.0, 6)


def test_custext_scales_distances_within_the_set() -> None:
    weights = custext_log_weights(np.array([[2.0, 4.0, 3.0], [1.0, 1.0, np.inf]]), epsilon=6.0)
    assert weights.tolist() == [[0.0, -3.0, -1.5], [0.0, 0.0, -np.inf]]


def test_sets_are_parted_from_what_is_left_and_the_last_takes_the_rest() -> None:
    # On a line: 0 1 2 | 10 11 12 | 30 31 33 35, three each, the tenth joins the last.
    line = np.array([0, 10, 1, 30, 11, 2, 31, 12, 33, 35], np.float32)[:, None]
    sets = partition_tokens(line, 3)
    named = [[int(line[i, 0]) for i in row if i >= 0] for row in sets.members]
    assert [sorted(row) for row in named] == [[0, 1, 2], [10, 11, 12], [30, 31, 33, 35]]
    assert all(i in sets.members[sets.set_of[i]] for i in range(10))
    with pytest.raises(InvalidInputError, match=r"\[2, 10\]"):
        partition_tokens(line, 11)


def test_sets_are_the_same_when_the_list_gets_shorter() -> None:
    points = np.random.default_rng(3).standard_normal((300, 3)).astype(np.float32)
    sets, left = partition_tokens(points, 20), list(range(300))
    for row in sets.members[:-1]:
        exact = np.linalg.norm(points[left].astype(np.float64) - points[left[0]], axis=1)
        near = sorted(np.array(left)[np.argsort(exact)[:20]].tolist())
        assert [i for i in row if i >= 0] == near
        left = [i for i in left if i not in near]


def test_what_is_sensitive_is_judged_by_texts_that_ship() -> None:
    # a and b are the only tokens ever seen; [UNK] is always sensitive.
    assert sensitive_tokens(Toy(), 0.5).tolist() == [False, False, True, True, True, True, True]
    # One may be frequent at most: b, which stands there more often.
    assert sensitive_tokens(Toy(), 5 / 6).tolist() == [True, False, *[True] * 5]
    assert sensitive_tokens(Toy(), 1.0).all()


def test_ranks_fall_off_by_their_law() -> None:
    rng = np.random.default_rng(0)
    for fall, most in ((0.5, 8), (3.0, 100), (1e-15, 5)):
        counts = np.bincount(draw_ranks(N_DRAWS, fall, most, rng), minlength=most)
        law = np.exp(-fall * np.arange(most))
        expected = N_DRAWS * law / law.sum()
        kept = expected > 5
        both = [np.r_[c[kept], c[~kept].sum()] for c in (counts, expected)]
        both = [c[: kept.sum() + bool(expected[~kept].sum() > 1)] for c in both]
        share = both[1] * both[0].sum() / both[1].sum()
        assert stats.chisquare(both[0], share).pvalue > 1e-4, (fall, counts)


def test_a_ranked_answer_is_the_neighbour_of_its_rank() -> None:
    # Without noise to speak of the answer is the i-th neighbour of the token itself.
    mechanism = TextToTextRanked(eta=1e7, c=1e-7)
    privatizer = mechanism.privatizer(Toy(), np.random.default_rng(1))
    counts = np.bincount(privatizer.tokens(np.zeros(N_DRAWS, np.int64)), minlength=6)
    order = sorted(range(6), key=lambda y: d(0, y))
    law = np.exp(-np.arange(6.0))
    assert stats.chisquare(counts[order], N_DRAWS * law / law.sum()).pvalue > 1e-4
    # Where the first rank alone has a chance it is text to text.
    plain = TextToTextRanked(eta=1e7, c=1e6).privatizer(Toy(), np.random.default_rng(1))
    assert plain.tokens(np.arange(6)).tolist() == [0, 1, 2, 3, 4, 5]


def test_draws_are_exact_at_the_ends() -> None:
    class Ends:
        def random(self, n: int) -> np.ndarray:
            return np.array([0.0, 1 - 2**-53, 0.5])

    weights = np.log(np.array([[1e-300, 1.0, 1.0, 1e-300]]))
    weights[0, [0, 3]] = -np.inf
    found = sample_columns(weights, np.zeros(3, np.int64), Ends())  # type: ignore[arg-type]
    assert found.tolist() == [2, 1, 1], "what cannot come never does"


def test_draws_made_ahead_are_used_once_and_in_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exponential_mechanism, "_BLOCK", 2)
    made = []

    def draw(block: np.ndarray, which: np.ndarray) -> np.ndarray:
        serial = len(made) + np.arange(len(which))  # no two alike, and of its token
        made.extend(block[which])
        return 1_000_000 * block[which] + serial

    drawn, rng, seen = SampleBuffer(9, draw), np.random.default_rng(0), []
    for _ in range(60):
        asked = rng.integers(9, size=int(rng.integers(0, 40)))
        found = drawn.take(asked)
        assert (found // 1_000_000 == asked).all()
        seen.extend(found.tolist())
    assert len(seen) == len(set(seen)) <= len(made) < 17 * len(seen)
    monkeypatch.setattr(exponential_mechanism, "_MOST", 10)
    made.clear()
    assert len(SampleBuffer(9, draw).take(np.zeros(50, np.int64))) == len(made) == 50


def test_distances_are_exact_and_zero_to_itself(minilm: TransformerEncoder) -> None:
    ids = candidate_ids(minilm)
    asked = np.array([100, 2000, 5001])  # [UNK] is no candidate
    found = Distances(minilm, ids).of(asked)
    table = minilm.token_vectors.double().numpy()
    exact = np.linalg.norm(table[asked][:, None] - table[ids[:500]][None], axis=2)
    assert found[:, :500] == pytest.approx(exact, abs=1e-9)
    assert found[1, ids == 2000] == 0 and found[2, ids == 5001] == 0 and found[0].min() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SanText, SanTextPlus, TEM, CusText, TextToTextRanked])
def test_nothing_out_of_vocabulary_passes_through(kind: Any, minilm: TransformerEncoder) -> None:
    (ids,) = minilm.token_ids(["zz \N{GRINNING FACE} [SEP] [MASK] qx insulin"])
    odd = [i for i in ids if i in minilm.special_token_ids]
    assert {100, 102, 103} <= set(odd)
    weak = {"eta": 400.0} if kind is TextToTextRanked else {"epsilon": 30.0}
    privatizer = kind(**weak).privatizer(minilm, np.random.default_rng(0))
    found = privatizer.tokens(np.array(odd * 50))
    assert np.isin(found, candidate_ids(minilm)).all()
    assert not np.isin(found, minilm.special_token_ids).any()


@pytest.mark.parametrize("bad", [0.0, -2.0, float("nan"), float("inf"), 1e308, "2", None])
def test_epsilon_must_be_a_number_that_can_be_counted_with(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be a number from 1e-06 to 1e"):
        check_epsilon(bad)
    with pytest.raises(InvalidInputError, match="epsilon"):
        SanText(epsilon=bad).privatizer(Toy(), np.random.default_rng(0))  # type: ignore[arg-type]


# The rank of the replacement ----------------------------------------------------------------


def test_the_rank_of_a_replacement_counts_nearer_tokens() -> None:
    distances = Distances(Toy(), np.arange(6))  # type: ignore[arg-type]
    order = sorted(range(6), key=lambda y: d(0, y))
    found = replacement_ranks(distances, np.zeros(6, np.int64), np.array(order))
    assert found.ranks.tolist() == [0, 1, 2, 3, 4, 5]
    # [UNK] is no candidate: its nearest neighbour e has rank 1, for 0 is the token itself.
    assert replacement_ranks(distances, np.array([6]), np.array([4])).ranks.tolist() == [1]
