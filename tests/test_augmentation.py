"""Exchanging words keeps the frame of a text and the kind of each word."""

from __future__ import annotations

from leakscope.core.attacks.inversion.augmentation import substitute_words
from leakscope.core.text import Vocabulary, words

TEXTS = [
    "The doctor visited London on Monday, then walked home.",
    "She likes running, and Paris was sleeping in 1999.",
    "The baker jumped over fences while Berlin watched 2001 films slowly.",
]
VOCABULARY = Vocabulary.count(TEXTS, size=100)


def test_the_same_seed_gives_the_same_texts_and_another_does_not():
    assert substitute_words(TEXTS, VOCABULARY, rate=0.0, seed=1) == TEXTS
    first, again, other = (substitute_words(TEXTS, VOCABULARY, rate=0.9, seed=s) for s in (1, 1, 2))
    assert first == again != other


def test_words_outside_the_vocabulary_and_the_frame_stay():
    for before, after in zip(
        TEXTS, substitute_words(TEXTS, VOCABULARY, rate=1.0, seed=3), strict=True
    ):
        assert len(words(before)) == len(words(after))
        for old, new in zip(words(before), words(after), strict=True):
            assert new == old or {old, new} <= set(VOCABULARY.words)


def test_names_are_exchanged_for_names_and_numbers_for_numbers():
    names = {"london", "monday", "paris", "berlin"}
    for seed in range(5):
        changed = " ".join(substitute_words(TEXTS, VOCABULARY, rate=1.0, seed=seed))
        found = set(words(changed))
        assert found & {"1999", "2001"}
        assert found & names
