"""Checks of a text to attack, descriptions of its score, and words with the same stem."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import STOP_WORDS, check_text, word_set


def check_sentence(
    text: str,
    *,
    counts_stop_words: bool = False,
    remedy: str = "Type a word that is not a stop word.",
) -> str:
    """Return the text unchanged; raise InvalidInputError if it has no word to recover.

    Parameters
    ----------
    remedy : str
        What to do about a text that contains only stop words.

    Raises
    ------
    InvalidInputError
        It is empty, too long, damaged, without a word of two letters or digits, or contains only
        stop words while these do not count.
    """
    found = word_set(check_text(text))
    if not found:
        raise InvalidInputError(
            "The text has no word of two or more letters or digits: there is nothing to recover. "
            "Type a sentence."
        )
    if not counts_stop_words and found <= STOP_WORDS:
        raise InvalidInputError(
            "The text contains only stop words (such as the, of, and), which are not scored. "
            + remedy
        )
    return text


def format_recall(n_read: int, n_named: int, n_unnamed: int) -> str:
    """Format how many of the testable words were recovered, as a title.

    The text beside it must state the untested words: see `describe_untested`.

    Parameters
    ----------
    n_named : int
        Words of the text in the attack's vocabulary: what every score counts.
    n_unnamed : int
        Words of the text outside the vocabulary.

    Examples
    --------
    >>> format_recall(6, 10, 2), format_recall(0, 1, 0)
    ('The attacker recovered 6 of 10 words', 'The attacker recovered none of 1 word')
    >>> format_recall(0, 0, 4)
    'None of 4 words could be tested'
    """
    if n_unnamed and not n_named:
        return f"None of {_words(n_unnamed)} could be tested"
    return f"The attacker recovered {n_read or 'none'} of {_words(n_named)}"


def describe_untested(n_named: int, n_unnamed: int, kinds: str = "") -> str:
    """Format the sentence on words outside the vocabulary that follows the title; empty for none.

    Parameters
    ----------
    kinds : str
        What these words mostly are, such as "names and numbers".

    Examples
    --------
    >>> describe_untested(14, 13, "names and numbers")  # doctest: +ELLIPSIS
    '13 more, mostly names and numbers, are not in its vocabulary: **untested, possibly...
    >>> describe_untested(0, 4), describe_untested(9, 0)
    ("They are not in the attacker's vocabulary: **untested, possibly recoverable**.", '')
    """
    if not n_unnamed:
        return ""
    is_one = n_unnamed == 1
    who = f"{'One' if is_one else n_unnamed} more" if n_named else "It" if is_one else "They"
    owner = "its" if n_named else "the attacker's"
    mostly = f", mostly {kinds}," if kinds and not is_one else ""
    return (
        f"{who}{mostly} {'is' if is_one else 'are'} not in {owner} "
        "vocabulary: **untested, possibly recoverable**."
    )


def describe_scored(n_named: int, n_unnamed: int) -> str:
    """Format which words the scores count, and how many are outside the vocabulary.

    Examples
    --------
    >>> describe_scored(12, 2), describe_scored(9, 0)
    ('the 12 words that the attack can name, not the other 2', 'all 9 words')
    """
    if not n_unnamed:
        return f"all {_words(n_named)}" if n_named != 1 else "the one word"
    return f"the {_words(n_named)} that the attack can name, not the other {n_unnamed}"


def _words(n: int) -> str:
    """Format a number of words: "n words", or "1 word"."""
    return f"{n} word{'' if n == 1 else 's'}"


def same_stem_words(wrong: AbstractSet[str], words: AbstractSet[str]) -> dict[str, str]:
    """Return a dict from wrong words to the text's word with the same English stem, if any.

    Examples
    --------
    >>> same_stem_words({"resigned", "bank"}, {"resigns", "minister"})
    {'resigned': 'resigns'}
    """
    from nltk.stem.snowball import SnowballStemmer

    stem = SnowballStemmer("english").stem
    by_stem = {stem(word): word for word in sorted(words, reverse=True)}
    return {word: by_stem[stem(word)] for word in sorted(wrong) if stem(word) in by_stem}
