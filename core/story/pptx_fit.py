"""Estimate which font size lets text fit a box of a slide."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.core.findings.prose import Block, Run

Box = tuple[float, float, float, float]
"""Left, top, width and height in inches."""

LETTER = 0.0078
"""Average letter width in inches per point of font size, estimated generously."""
SPACING = 1.25
LEAST = 9.0
"""Minimum legible font size, in points."""
INSET = 0.15
"""Total horizontal or vertical padding of a box, in inches."""


def text_of(block: Block) -> str:
    """Return a paragraph's text, with a bullet if it is an item."""
    return f"• {block.text}" if block.is_item else block.text


def cut(texts: Sequence[str], box: Box, size: float) -> list[Block]:
    """Return as much of the paragraphs as fits the box."""
    kept: list[str] = []
    for text in texts:
        words = text.split(" ")
        n = len(words)
        while words and not fits([*kept, " ".join([*words, "…"])], box, size):
            words = words[: len(words) * 9 // 10]
        if not words:
            break
        kept.append(text if len(words) == n else " ".join([*words, "…"]))
    return [Block((Run(text),)) for text in kept]


def size_of(texts: Sequence[str], box: Box, size: float) -> float:
    """Return the largest font size, in points, at which texts fit a box."""
    while size > LEAST and not fits(texts, box, size):
        size -= 0.5
    return size


def fits(texts: Sequence[str], box: Box, size: float) -> bool:
    """Return whether paragraphs fit a box at a font size."""
    return height(texts, box[2] - INSET, size) <= box[3] - INSET


def height(texts: Sequence[str], width: float, size: float) -> float:
    """Return the height of paragraphs, in inches."""
    line = size * SPACING / 72
    return sum(lines(text, width, size) * line + size / 3 / 72 for text in texts)


def lines(text: str, width: float, size: float) -> int:
    """Return how many lines a text takes at a width and font size."""
    room = max(int(width / (LETTER * size)), 1)
    n_lines, left = 1, room
    for word in text.split(" "):
        n = len(word)
        if n > left and left < room:
            n_lines, left = n_lines + 1, room
        while n > room:
            n_lines, n = n_lines + 1, n - room
        left -= n + 1
    return n_lines
