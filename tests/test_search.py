"""The evidence of the re-embedding search, on an encoder whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.search.evidence import (
    BagMap,
    Toggles,
    WordJudge,
    features,
    toggle_candidates,
)
from leakscope.core.errors import ArtifactError

WORDS = ("cat", "dog", "fish", "bird")
EYE = np.eye(4, dtype=np.float32)


class SumEncoder:
    """The vector of a text is the sum of its words' axes."""

    name, dimension, fingerprint = "sum", 4, "0"

    def encode(self, texts, on_progress=lambda f, m: None):
        return np.stack([sum(EYE[WORDS.index(w)] for w in t.split()) for t in texts])


IDENTITY = BagMap(EYE, np.zeros(4, np.float32))


def state(true: list[str], chosen: list[str]) -> Toggles:
    vector = SumEncoder().encode([" ".join(true)])[0]
    return Toggles(
        vector=vector / np.linalg.norm(vector),
        words=WORDS,
        belief=np.array([0.6, 0.5, 0.4, 0.3]),
        prior=np.zeros(4, np.float32),
        chosen=np.isin(WORDS, chosen),
        tail_mass=0.0,
    ).try_likeliest(4)


def tried(true: list[str], chosen: list[str], encoder: SumEncoder | None = None) -> Toggles:
    """Return a state with the evidence of an encoder."""
    (step,) = toggle_candidates(encoder or SumEncoder(), IDENTITY, [state(true, chosen)])
    return step


def test_true_words_gain_and_false_words_lose():
    step = tried(["cat", "fish"], ["cat", "dog"])
    assert (np.sign(step.gain) == [1, -1, 1, -1]).all()
    # Jointly, taking the dog out and putting the fish in explains all that is missing.
    assert (step.joint[2] > 0.5).all()
    assert (step.joint[1] < -0.5).all()
    assert (np.abs(step.joint[[0, 3]]) < 0.2).all()
    assert step.n_queries == 5


def test_gain_is_the_difference_of_cosines():
    step = tried(["cat", "fish"], ["cat"])
    # Alone: cos = 1/√2. With fish: 1. With dog: 1/2. The cat alone cannot be taken away.
    assert step.cosine == pytest.approx(2**-0.5)
    assert step.gain[2] == pytest.approx(1 - 2**-0.5, abs=1e-6)
    assert step.gain[1] == pytest.approx(0.5 - 2**-0.5, abs=1e-6)
    assert step.gain[0] == pytest.approx(0, abs=1e-6)


def test_the_evidence_is_what_the_formula_says():
    """What the page shows of `search`: E_w, the missing part r, their cosine and their length."""
    formula = INVERSION_ATTACKS["search"].formula
    for part in (r"(|S|+1)\,E_w^\top e", r"\cos(E_w, r)", r"\log |S|", r"C(e, \Phi(S), S)"):
        assert part in formula
    step = tried(["cat", "fish"], ["cat", "dog"])
    unit = lambda words: sum(EYE[WORDS.index(w)] for w in words) / len(words) ** 0.5  # noqa: E731
    effect = unit(["cat", "dog", "fish"]) - unit(["cat", "dog"])
    missing = step.vector - unit(["cat", "dog"])
    assert step.gain[2] == pytest.approx(effect @ step.vector, abs=1e-6)
    norms = np.linalg.norm(effect) * np.linalg.norm(missing)
    assert step.aligned[2] == pytest.approx(effect @ missing / norms, abs=1e-6)
    columns = features(step).T
    assert columns[1] == pytest.approx(10 * (2 + 1) * step.gain)
    assert columns[8] == pytest.approx(np.log(2))
    assert columns[9] == pytest.approx(step.aligned)


def test_words_of_one_meaning_share_the_credit():
    """Two candidates with the same effect get half each; alone each claims it all."""

    class TwinEncoder(SumEncoder):
        def encode(self, texts, on_progress=lambda f, m: None):
            axes = {"cat": 0, "dog": 1, "fish": 1, "bird": 3}
            return np.stack([sum(EYE[axes[w]] for w in t.split()) for t in texts])

    step = tried(["cat", "dog"], ["cat"], TwinEncoder())
    assert step.gain[1] == pytest.approx(step.gain[2])
    assert step.joint[1, 0] == pytest.approx(step.joint[2, 0])
    lone = step.try_likeliest(2)  # cat and dog only
    lone = toggle_candidates(TwinEncoder(), IDENTITY, [lone])[0]
    assert step.joint[1, 0] < 0.6 * lone.joint[1, 0]


def test_choosing_takes_the_most_believed_and_an_empty_list_is_no_evidence():
    chosen = state(["cat"], []).choose(np.array([0.1, 0.9, 0.8, 0.2]), 2).chosen
    assert chosen.tolist() == [False, True, True, False]
    assert state(["cat"], ["cat"]).lists()[1] == "cat"
    assert features(tried(["cat"], ["cat"])).shape == (4, 15)


def test_the_map_undoes_a_linear_change():
    rng = np.random.default_rng(0)
    change = rng.normal(size=(4, 4)).astype(np.float32)
    bags = rng.normal(size=(5000, 4)).astype(np.float32)
    mapped = BagMap.fit(bags, bags @ change.T)(bags)
    truth = bags @ change.T
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    assert np.abs(mapped - truth).max() < 0.01


# Learning to judge


@pytest.mark.parametrize("stored", [[0.5] * 15, [0.5] * 17, [], [*[0.5] * 15, float("nan")]])
def test_a_judge_of_another_size_or_of_no_numbers_is_refused(stored: list[float]) -> None:
    judge = WordJudge(np.linspace(-1, 1, 15), 0.25)
    again = WordJudge.from_list(judge.to_list())
    assert (again.weights == judge.weights).all() and again.intercept == judge.intercept
    with pytest.raises(ArtifactError, match="not 16 finite ones"):
        WordJudge.from_list(stored)
