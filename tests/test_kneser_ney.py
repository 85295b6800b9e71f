"""The language model's estimates, held against NLTK's and against the sum of one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakscope.core.attacks.inversion.reconstruct.kneser_ney import Trigrams, estimate
from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END, N_SPECIAL, UNKNOWN

SENTENCES = [
    [3, 4, 5, 6],
    [3, 4, 5, 3, 4, 6, UNKNOWN],
    [7, 4, 5, 6],
    [3, 8, 5, 6, 4],
    [7, 8, 3, 4, 5],
    [3, 4, 6],
]
SIZE = 9


def fitted(least: int = 1, discount: float | None = 0.1) -> Trigrams:
    ids = [np.array(sentence, np.int32) for sentence in SENTENCES]
    return estimate(ids, SIZE, least=least, discount=discount)


def probability(model: Trigrams, a: int, b: int, c: int) -> float:
    def listed(keys: np.ndarray, key: int) -> int:
        at = int(np.searchsorted(keys, key))
        return at if at < len(keys) and keys[at] == key else -1

    if (at := listed(model.triple_keys, (a * SIZE + b) * SIZE + c)) >= 0:
        return math.exp(model.triple[at])
    before = listed(model.pair_keys, a * SIZE + b)
    backoff = model.pair_backoff[before] if before >= 0 else 0.0
    if (at := listed(model.pair_keys, b * SIZE + c)) >= 0:
        return math.exp(backoff + model.pair[at])
    return math.exp(backoff + model.single_backoff[b] + model.single[c])


def test_triples_have_the_probabilities_that_nltk_gives_them():
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import everygrams

    padded = [["B", "B", *map(str, s), "E"] for s in SENTENCES]
    theirs = KneserNeyInterpolated(3, discount=0.1)
    # Nobody asks whether a sentence begins: it is left out of their counts as it is of ours.
    grams = [[g for g in everygrams(s, max_len=3) if g[-1] != "B"] for s in padded]
    theirs.fit(grams, [token for sentence in padded for token in sentence])
    model = fitted()
    for a, b in [(3, 4), (4, 5), (8, 5), (5, 6)]:
        for c in range(N_SPECIAL, SIZE):
            want = theirs.score(str(c), [str(a), str(b)])
            found = probability(model, a, b, c)
            assert found == pytest.approx(want, rel=1e-4), (a, b, c)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_all_that_may_follow_sums_to_one(least: int):
    model = fitted(least, discount=None)
    for a, b in [(BEGIN, BEGIN), (BEGIN, 3), (3, 4), (4, 5), (8, 6), (6, 6)]:
        total = sum(probability(model, a, b, c) for c in range(END, SIZE))
        assert total == pytest.approx(1.0, abs=1e-4), (a, b)
