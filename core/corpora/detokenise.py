"""Tokens back to prose, for corpora that are kept as tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

__all__ = ["detokenise", "paragraphs_of_lines"]

_LONGEST_WRAPPED_LINE = 100
_REPEATED_STOP = re.compile(r"\.(?: \.)+")
_STOP_AFTER_ABBREVIATION = re.compile(r"(?<=\w\.) \.$")
_SPACED_COMMA = " , "


def detokenise(tokens: Sequence[str]) -> str:
    """Join tokens to a sentence: no space before a comma, straight quotation marks.

    Examples
    --------
    >>> detokenise(["``", "No", "evidence", "''", ",", "said", "Ada", "."])
    '"No evidence", said Ada.'
    """
    text = _joiner().detokenize(_directed(tokens))
    return _REPEATED_STOP.sub("...", _STOP_AFTER_ABBREVIATION.sub("", text))


@cache
def _joiner() -> Any:
    from nltk.tokenize.treebank import TreebankWordDetokenizer

    return TreebankWordDetokenizer()


def _directed(tokens: Sequence[str]) -> list[str]:
    """Turn every second straight quotation mark into a closing one; drop doubled ! and ?."""
    out: list[str] = []
    is_open = False
    for token in tokens:
        if token in ("!", "?", ";") and out and out[-1] == token:
            continue  # the Brown corpus tags them twice
        if token == '"':
            token = "''" if is_open else "``"
            is_open = not is_open
        out.append(token)
    return out


def paragraphs_of_lines(text: str) -> str:
    """Make each line a paragraph unless the text is wrapped to a width, and undo tokenisation.

    A text with a line of more than 100 characters was not wrapped by hand, so that each of its
    line breaks means something. A text is taken for tokenised when most of its commas stand
    between spaces.
    """
    lines = text.splitlines()
    if text.count(_SPACED_COMMA) * 2 > text.count(", ") > 0:
        lines = [detokenise(line.split()) for line in lines]
    is_wrapped = max(map(len, lines), default=0) <= _LONGEST_WRAPPED_LINE
    return ("\n" if is_wrapped else "\n\n").join(line.strip() for line in lines).strip()
