"""Split running text into sentences with sentencex, guarded against pathological input.

docs/decisions/0001-one-sentence-splitter.md says why it is sentencex and what it cannot do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sentencex

from leakscope.core.text import words

MAX_SEGMENT_WORDS = 40
"""Longer segments are split again, ignoring quotation marks and brackets."""

MAX_SEGMENT_CHARACTERS = 10_000
"""Longest text passed to the splitter at once; its time is quadratic in open quotes."""

_EMPTY_LINE = re.compile(r"\n\s*\n")
_ENCLOSING = str.maketrans(dict.fromkeys("\"'()[]{}«»‘’‚‛“”„‟‹›", " "))
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text into a list of sentences, white space collapsed, case preserved.

    An empty line ends a sentence, a single line break does not.

    Parameters
    ----------
    text : str
        Any length; the time is linear in it.
    language : str
        Two-letter code of the language whose abbreviations are known, such as `en` or `it`.
        The English rules stand in for a language without rules.

    Examples
    --------
    >>> split_sentences("Dr. A. Lovelace paid 3.5 million. Was it enough?")
    ['Dr. A. Lovelace paid 3.5 million.', 'Was it enough?']
    """
    pieces = (" ".join(text[start:end].split()) for start, end in sentence_spans(text, language))
    return [piece for piece in pieces if piece]


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Return the (start, end) offsets of a text's sentences; together they cover the text.

    A segment ends after the white space that follows its sentence; some may hold nothing else.
    """
    spans: list[tuple[int, int]] = []
    for start, end in _block_spans(text):
        for left, right in _segment_spans(text[start:end], language):
            spans.append((start + left, start + right))
    return spans


def _block_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of a text's blocks: cut at empty lines, and where one is too long."""
    start = 0
    for gap in [*_EMPTY_LINE.finditer(text), None]:
        end = len(text) if gap is None else gap.end()
        while end - start > MAX_SEGMENT_CHARACTERS:
            cut = _last_space(text, start, start + MAX_SEGMENT_CHARACTERS)
            yield start, cut
            start = cut
        if end > start:
            yield start, end
        start = end


def _last_space(text: str, start: int, end: int) -> int:
    """Return the position after the last white space in a span's second half, or `end`."""
    middle = (start + end) // 2
    found = max(text.rfind(space, middle, end) for space in (" ", "\n", "\t"))
    return end if found < 0 else found + 1


def _segment_spans(block: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the sentences of a block, splitting overlong ones again."""
    for start, end in _segment(block, language):
        segment = block[start:end]
        if len(segment) <= 2 * MAX_SEGMENT_WORDS or len(words(segment)) <= MAX_SEGMENT_WORDS:
            yield start, end
            continue
        for left, right in _segment(_blank_quotes(segment), language):
            yield start + left, start + right


def _segment(text: str, language: str) -> list[tuple[int, int]]:
    """Run sentencex on a text and return its segments as (start, end) offsets."""
    pieces = sentencex.segment(language, _SURROGATE.sub("\ufffd", text))
    ends = []
    end = 0
    for piece in pieces:
        end += len(piece)
        ends.append(end)
    if end != len(text):  # it dropped characters, so the offsets mean nothing
        return [(0, len(text))]
    return list(zip([0, *ends], ends, strict=False))


def _blank_quotes(text: str) -> str:
    """Return a text of equal length with quotation marks and brackets replaced by spaces."""
    kept = _APOSTROPHE.sub("\ue000", text)
    return kept.translate(_ENCLOSING).replace("\ue000", "'")
