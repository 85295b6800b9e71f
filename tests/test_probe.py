"""The zero-shot probe on vectors that share a direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from leakscope.core.attacks.inversion.probe import ProbeAttack
from leakscope.core.errors import InvalidInputError

WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "ivory", "jetty"]


class Averages:
    """The mean of word vectors and, in texts of several words, a direction that all share."""

    name, dimension, fingerprint = "averages", 16, "a" * 64

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.vectors = dict(zip(WORDS, rng.normal(size=(10, 16)).astype(np.float32), strict=True))
        self.shared = np.float32(40) * self.vectors["jetty"]

    def encode(self, texts: Sequence[str], on_progress=None) -> np.ndarray:
        return np.stack([self._one(text.split()) for text in texts])

    def _one(self, words: list[str]) -> np.ndarray:
        mean = np.mean([self.vectors[word] for word in words], axis=0)
        return mean + self.shared if len(words) > 1 else mean


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(300)]


def share_read(attack: ProbeAttack, texts: list[str]) -> float:
    encoder = Averages()
    answers = attack.invert(encoder, encoder.encode(texts))
    return float(
        np.mean([len(a.word_set & set(t.split())) / 3 for a, t in zip(answers, texts, strict=True)])
    )


def test_what_all_texts_share_is_taken_off(texts: list[str]) -> None:
    encoder = Averages()
    attack = ProbeAttack(n_words=3).fit(encoder, texts[:200])
    words_alone = ProbeAttack(n_words=3).fit_vocabulary(encoder, attack.vocabulary_)
    assert share_read(attack, texts[200:]) > 0.75 > share_read(words_alone, texts[200:]) + 0.2
    again = ProbeAttack(n_words=3).load_state(*attack.state())
    assert share_read(again, texts[200:]) == pytest.approx(
        share_read(attack, texts[200:]), abs=0.02
    )


def test_known_vectors_give_the_same_attack(texts: list[str]) -> None:
    encoder = Averages()
    asked = ProbeAttack().fit(encoder, texts)
    given = ProbeAttack().fit(encoder, texts, encoder.encode(texts))
    np.testing.assert_allclose(given.directions_, asked.directions_, atol=1e-6)
    with pytest.raises(InvalidInputError, match="299 vectors for 300 texts"):
        ProbeAttack().fit(encoder, texts, encoder.encode(texts[1:]))
