"""The vote of the nearest sentences, worked by hand in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from leakscope.core.attacks.inversion.retrieval import RetrievalAttack
from leakscope.core.protocols import OnProgress, Vectors, no_progress

POOL = {
    "copper kettle": 0.0,
    "copper spoon": 30.0,
    "silver spoon": 90.0,
    "velvet curtain": 180.0,
}
"""Each sentence, and the direction of its vector in degrees."""


class Compass:
    """An encoder that points where the table says."""

    name, fingerprint, dimension = "compass", "compass-1", 2

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        angles = np.deg2rad([POOL[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def _answered(degrees: float, **settings: float) -> dict[str, float]:
    attack = RetrievalAttack(vocabulary_size=10, **settings).fit(Compass(), list(POOL))  # type: ignore[arg-type]
    angle = np.deg2rad(degrees)
    vector = np.array([[np.cos(angle), np.sin(angle)]], np.float32)
    answer = attack.invert(Compass(), vector)[0]
    return {word.word: word.score for word in (*answer.words, *answer.runners_up)}


def test_the_nearest_sentence_alone_votes_where_one_is_asked() -> None:
    assert _answered(5.0, n_neighbors=1) == pytest.approx({"copper": 1.0, "kettle": 1.0})
    assert _answered(175.0, n_neighbors=1) == pytest.approx({"velvet": 1.0, "curtain": 1.0})


def test_votes_are_weighted_by_the_exponential_of_the_cosine() -> None:
    """At 0° the three nearest have cosines 1, √3/2 and 0; the farthest does not vote."""
    weights = np.exp(np.array([1.0, 3**0.5 / 2, 0.0]) / 0.5)
    kettle, spoon, silver = weights / weights.sum()
    assert _answered(0.0, n_neighbors=3, temperature=0.5) == pytest.approx(
        {"copper": kettle + spoon, "kettle": kettle, "spoon": spoon + silver, "silver": silver},
        abs=1e-5,
    )
