from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import (
    MAX_CHARACTERS,
    STOP_WORDS,
    Vocabulary,
    check_text,
    check_texts,
    mark_words,
    revealing_words,
    word_set,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", ["the", "cat", "sat"]),
        ("I a x", []),  # single letters are not words
        ("don't", ["don"]),
        ("COVID-19 in 2021", ["covid", "19", "in", "2021"]),
        ("ﬁne ①②", ["fine", "12"]),  # NFKC
        ("İstanbul", ["i\u0307stanbul"]),  # the dot of İ survives lower-casing as a mark
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("नमस्ते", ["नमस्ते"]),  # vowel signs do not cut a word
        ("naïve cafe\u0301", ["naïve", "café"]),
        ("😀 🎉", []),
        ("", []),
    ],
)
def test_words_of_hand_worked_texts(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert word_set(text) == set(expected)


@pytest.mark.slow
@given(st.text(max_size=60))
def test_marked_pieces_hold_the_same_words_as_the_text(text: str) -> None:
    assert [word for _, word in mark_words(text) if word is not None] == words(text)


@given(st.text(alphabet="abz AÉ9.,'\n", max_size=60))
def test_marked_pieces_join_to_the_text(text: str) -> None:
    assert "".join(piece for piece, _ in mark_words(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The minister met Angela Merkel.", {"angela", "merkel"}),
        ("Angela spoke.", set()),  # the first word is capitalised anyway
        ("NATO spoke to McDonald.", {"nato", "mcdonald"}),
        ("In 2021 we sold 15 cars.", {"2021", "15"}),
        ("nothing here", set()),
        ("", set()),
    ],
)
def test_revealing_words_are_names_and_numbers(text: str, expected: set[str]) -> None:
    assert revealing_words(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("\u200b\ufeff", "is empty"),  # zero-width characters alone
        ("a\0b", "null byte"),
        ("a\ud800", "lone surrogate"),
        ("x" * (MAX_CHARACTERS + 1), "20,001 characters"),
        (b"bytes", "must be a string, got bytes"),
        (None, "must be a string, got NoneType"),
    ],
)
def test_unusable_text_is_refused_with_its_reason(text: object, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        check_text(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["x" * MAX_CHARACTERS, "😀", "مرحبا", "a", "<script>", "tab\tand\nline"]
)
def test_unusual_text_is_accepted(text: str) -> None:
    assert check_text(text) == text


def test_check_texts_names_the_first_bad_row() -> None:
    with pytest.raises(InvalidInputError, match="text 3 is empty"):
        check_texts(["one", "two", "", ""])
    with pytest.raises(InvalidInputError, match=r"wrap it in \[\]"):
        check_texts("one string")


def test_stop_words_hold_function_words_and_no_content() -> None:
    assert {"the", "and", "of", "was"} <= STOP_WORDS
    assert not {"minister", "money", "london"} & STOP_WORDS
    assert all(word == word.lower() for word in STOP_WORDS)


def test_vocabulary_counts_texts_and_breaks_ties_by_the_alphabet() -> None:
    texts = ["pear apple", "pear pear the", "zebra", "apple fig"]
    vocabulary = Vocabulary.count(texts, size=3)
    # pear and apple are held by two texts each; fig and zebra by one; "the" is a stop word.
    assert vocabulary.words == ("apple", "pear", "fig")
    assert vocabulary.document_frequency == (2, 2, 1)
    assert vocabulary.n_texts == 4
    assert len(vocabulary) == 3
    assert vocabulary.targets("A Pear, the zebra!") == {"pear"}
    assert "the" in Vocabulary.count(texts, stop_words=frozenset()).words


def test_vocabulary_does_not_depend_on_the_order_of_texts() -> None:
    texts = [f"word{i % 7} other{i % 5} common" for i in range(40)]
    assert Vocabulary.count(texts) == Vocabulary.count(reversed(texts))


def test_log_odds_of_a_hand_worked_share() -> None:
    vocabulary = Vocabulary(("aa", "bb"), (2, 1), 3)
    expected = [np.log(2.5 / 4 / (1.5 / 4)), np.log(1.5 / 4 / (2.5 / 4))]
    np.testing.assert_allclose(vocabulary.log_odds, expected, rtol=1e-6)
    assert vocabulary.log_odds.dtype == np.float32


def test_matrix_and_rows_agree_with_the_targets() -> None:
    texts = ["bb aa", "unknown", "bb bb"]
    vocabulary = Vocabulary(("aa", "bb", "cc"), (1, 2, 1), 3)
    assert [row.tolist() for row in vocabulary.rows(texts)] == [[0, 1], [], [1]]
    expected = [[1, 1, 0], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(vocabulary.matrix(texts).toarray(), expected)
    assert vocabulary.matrix([]).shape == (0, 3)


def test_vocabulary_survives_json() -> None:
    vocabulary = Vocabulary.count(["pear apple", "the pear"])
    assert Vocabulary.from_dict(vocabulary.to_dict()) == vocabulary


def test_vocabulary_of_stop_words_alone_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="keep stop words"):
        Vocabulary.count(["the and of"])
    with pytest.raises(InvalidInputError, match="No word is left"):
        Vocabulary.count([])
