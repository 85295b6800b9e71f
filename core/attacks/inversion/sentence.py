"""What can be put to an attack, and which words resemble each other."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from core.errors import InvalidInputError
from core.text import STOP_WORDS, check_text, word_set

__all__ = ["check_sentence", "kin_of", "read_said", "scored_said"]


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


def read_said(n_read: int, n_named: int, n_unnamed: int) -> str:
    r"""Return how many words were read of those that could be, and how many no answer could name.

    What an attacker cannot name is missing from its list, not from the vector.

    Parameters
    ----------
    n_named : int
        Words of the text that the attacker can name: what every score counts.

    Examples
    --------
    >>> read_said(6, 10, 0)
    'Of 10 words the attacker reads 6'
    >>> print(read_said(7, 12, 2).replace("; ", "\n"))
    Of the 12 words that it can name, the attacker reads 7
    2 more it cannot: no evidence of safety
    >>> read_said(0, 0, 4)
    'The attacker can name none of 4 words: no evidence of safety'
    """
    if not n_unnamed:
        return f"Of {_words(n_named)} the attacker reads {n_read or 'none'}"
    if not n_named:
        return f"The attacker can name none of {_words(n_unnamed)}: no evidence of safety"
    return (
        f"Of the {_words(n_named)} that it can name, the attacker reads {n_read or 'none'}; "
        f"{n_unnamed} more it cannot: no evidence of safety"
    )


def scored_said(n_named: int, n_unnamed: int) -> str:
    """Return which words the scores count.

    Examples
    --------
    >>> scored_said(12, 2), scored_said(9, 0)
    ('the 12 words that it can name; 2 more it cannot', 'all 9 words')
    """
    if not n_unnamed:
        return f"all {_words(n_named)}" if n_named != 1 else "the one word"
    return f"the {_words(n_named)} that it can name; {n_unnamed} more it cannot"


def _words(n: int) -> str:
    return f"{n} word{'' if n == 1 else 's'}"


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
