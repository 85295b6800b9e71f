"""Texts that nearly repeat a known one are found; others stay."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.corpora import Sentences
from leakscope.core.corpora.near_duplicates import (
    CONTAINED,
    MISSED,
    N_HASHES,
    THRESHOLD,
    _bands,
    containment,
    near_duplicates,
    shingles,
    similarity,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import settings_of
from leakscope.core.studies.decontaminate import LEAST_NEAR, documents_or_none, drop_near_duplicates
from leakscope.core.studies.inversion.representations import EncoderStudy

LETTERS = [a + b for a in "bcdfghjk" for b in "aeiou"]


def random_texts(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(LETTERS, 20)) for _ in range(n)]


def changed(text: str, n: int) -> str:
    """Another word in place of the last n."""
    return " ".join([*text.split()[: 20 - n], *[f"new{i}" for i in range(n)]])


def test_the_similarity_of_a_hand_worked_pair() -> None:
    one, other = shingles("The dog barked at the tall man."), shingles("the dog barked at a cat")
    # Words of two letters or more. One: the-dog-barked dog-barked-at barked-at-the at-the-tall
    # the-tall-man; other: the-dog-barked dog-barked-at barked-at-cat. 2 of 6.
    assert (len(one), len(other)) == (5, 3)
    assert similarity(one, other) == pytest.approx(2 / 6)
    assert shingles("Hi there") == {("hi", "there")} and shingles("?!") == frozenset()
    assert similarity(shingles(""), shingles("")) == 0.0


def test_found_are_those_that_a_comparison_of_all_pairs_finds() -> None:
    """At every distance from the threshold, against a comparison without hashes."""
    known = random_texts(400, 0)
    texts = [changed(known[i], i % 20) for i in range(200)]
    sets = [shingles(text) for text in known]
    ours = [shingles(text) for text in texts]
    best = [max(similarity(own, other) for other in sets) for own in ours]
    held = [max(containment(own, other) for other in sets) for own in ours]
    for threshold in (0.1, THRESHOLD, 0.5, 0.9, 1.0):
        least = max(CONTAINED, threshold)
        expected = {i for i in range(200) if best[i] >= threshold or held[i] >= least}
        assert 0 < len(expected) < 200
        assert near_duplicates(texts, known, threshold) == expected


LONG = (
    "the committee that met in spring wrote to all members, among whom my old dog barked at Bo "
    "was the only answer that anybody read aloud before the long and rather quiet summer "
    "began"
)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("My old dog barked at Bo!", True),
        ("My old dog barked", True),
        ("old dog barked", False),  # three words stand in many texts
        ("Dog barked", False),
        ("My old dog barked at Bo yesterday", True),  # 4 of 5 runs
        ("My old dog barked at nobody yesterday", False),  # 3 of 5
        ("My old dog. The long and rather quiet", False),  # 4 of 6, of two places
    ],
)
def test_a_short_text_that_stands_in_a_long_one_is_known(text: str, is_found: bool) -> None:
    assert bool(near_duplicates([text, "Nothing of this"], ["It rained.", LONG])) is is_found


HALVES = ["So my old dog barked, they said in the morning paper", "It barked at Bo all night"]


def test_other_texts_that_are_known_or_not() -> None:
    text = "My old dog barked at Bo yesterday"
    for texts, known, threshold, is_found in (
        (["Old dog barked"], ["old dog barked!"], THRESHOLD, True),
        (["Old dog barked"], ["my old dog barked!"], THRESHOLD, True),  # half of its runs
        ([text], [LONG], CONTAINED, True),
        ([text], [LONG], 0.81, False),  # a higher threshold asks for more of a text
        (["My old dog barked at Bo"], [LONG], 1.0, True),  # word for word
        (["A dog, barked at Bo!"], ["a DOG barked... at bo"], 1.0, True),
        (["", "?"], ["", "a dog barked"], THRESHOLD, False),
        ([], ["a dog barked"], THRESHOLD, False),
        (["a dog barked"], [], THRESHOLD, False),
        # What two texts hold together is held by neither.
        (["My old dog barked at Bo all night"], HALVES, 0.9, False),
    ):
        assert bool(near_duplicates(texts, iter(known), threshold)) is is_found, (texts, known)


def test_a_study_takes_no_threshold_at_which_pairs_are_missed() -> None:
    assert settings_of(EncoderStudy)["near"].metadata["low"] == LEAST_NEAR
    for threshold in np.linspace(LEAST_NEAR, 1, 96):
        n_bands, n_rows = _bands(float(threshold))
        assert (1 - threshold**n_rows) ** n_bands <= MISSED


@pytest.mark.parametrize("threshold", [0.05, THRESHOLD, 0.5, 0.99])
def test_hardly_a_pair_at_the_threshold_is_missed(threshold: float) -> None:
    n_bands, n_rows = _bands(threshold)
    assert n_bands * n_rows <= N_HASHES
    assert (1 - threshold**n_rows) ** n_bands <= MISSED


@pytest.mark.parametrize("threshold", [0.0, 1.1, float("nan")])
def test_other_thresholds_are_refused(threshold: float) -> None:
    with pytest.raises(InvalidInputError, match="threshold must be"):
        near_duplicates(["a"], ["b"], threshold)


def sentences(texts: list[str], documents: list[str]) -> Sentences:
    blank = (None,) * len(texts)
    return Sentences(tuple(texts), tuple(documents), blank, blank)


def test_what_is_kept_apart_keeps_its_documents() -> None:
    texts = random_texts(6, 1)
    held = sentences(texts, ["a", "a", "a", "b", "b", "c"])
    found = drop_near_duplicates(held, [changed(texts[1], 2)])
    assert found.sentences.texts == (texts[0], *texts[2:]) and found.n_near_duplicates == 1
    assert found.documents == ("a", "a", "b", "b", "c")
    assert found.take([1, 3]).documents == ("a", "b")
    with pytest.raises(InvalidInputError, match="--near-duplicates"):
        drop_near_duplicates(held, texts)


def test_a_table_of_sentences_has_no_documents() -> None:
    texts = random_texts(40, 2)
    alone = sentences(texts, [str(max(i, 1)) for i in range(40)])
    assert documents_or_none(alone, alone) is None, "one row of two sentences"
    paired = sentences(texts, [str(i // 2) for i in range(40)])
    assert documents_or_none(paired, paired) == paired.document_ids
