"""What can be put to an attack, and which words resemble each other."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from core.errors import InvalidInputError
from core.text import STOP_WORDS, check_text, word_set

__all__ = ["check_sentence", "kin_of", "read_said"]


def check_sentence(
    text: str,
    *,
    counts_stop_words: bool = False,
    remedy: str = "Type a word with content.",
) -> str:
    """Return the text if it holds a word to find.

    Parameters
    ----------
    remedy : str
        What to do about a text of stop words alone, which differs from place to place.

    Raises
    ------
    InvalidInputError
        It is empty, too long, damaged, holds no word of two letters or digits, or stop words
        alone while these do not count.
    """
    found = word_set(check_text(text))
    if not found:
        raise InvalidInputError(
            "There is no word of at least two letters or digits, so there is nothing to recover. "
            "Type a sentence."
        )
    if not counts_stop_words and found <= STOP_WORDS:
        raise InvalidInputError(
            "The text holds stop words alone (such as the, of, and), which are not scored. "
            + remedy
        )
    return text


def read_said(n_read: int, n_words: int, n_unnamed: int) -> str:
    """Return how many words were read, and how many no answer could have named.

    What an attacker cannot name is missing from its list, not from the vector.

    Examples
    --------
    >>> read_said(6, 10, 0)
    'Of 10 words the attacker reads 6'
    >>> read_said(0, 10, 4)
    'Of 10 words the attacker reads none · 4 it cannot name: no evidence of safety'
    """
    words = f"{n_words} word{'' if n_words == 1 else 's'}"
    read = f"Of {words} the attacker reads {n_read or 'none'}"
    return f"{read} · {n_unnamed} it cannot name: no evidence of safety" if n_unnamed else read


def kin_of(wrong: AbstractSet[str], words: AbstractSet[str]) -> dict[str, str]:
    """Return the wrong words that share their English stem with a word, and that word.

    Examples
    --------
    >>> kin_of({"resigned", "bank"}, {"resigns", "minister"})
    {'resigned': 'resigns'}
    """
    from nltk.stem.snowball import SnowballStemmer

    stem = SnowballStemmer("english").stem
    by_stem = {stem(word): word for word in sorted(words, reverse=True)}
    return {word: by_stem[stem(word)] for word in sorted(wrong) if stem(word) in by_stem}
