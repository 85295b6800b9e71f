"""How large a text may be that has to fit into a box of a slide: counted, as nothing draws here."""

from __future__ import annotations

from collections.abc import Sequence

from core.story.prose import Block, Run

__all__ = ["INSET", "LEAST", "LETTER", "SPACING", "Box", "cut", "fits", "height", "lines",
           "size_of", "text_of"]  # fmt: skip

Box = tuple[float, float, float, float]
"""Left, top, width and height in inches."""

LETTER = 0.0078
"""Inches that a letter is wide on average, by point: broad, so that nothing overflows."""
SPACING = 1.25
LEAST = 9.0
"""Points of a text that is still read."""
INSET = 0.15
"""Inches between a text and the edges of its box, both sides together."""


def text_of(block: Block) -> str:
    """Return what a paragraph shows, an item with its dot."""
    return f"• {block.text}" if block.is_item else block.text


def cut(texts: Sequence[str], box: Box, size: float) -> list[Block]:
    """Return as much of paragraphs as fits."""
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
    """Return the largest size, in points, in which texts fit into a box."""
    while size > LEAST and not fits(texts, box, size):
        size -= 0.5
    return size


def fits(texts: Sequence[str], box: Box, size: float) -> bool:
    """Return whether paragraphs of a size, in points, fit into a box."""
    return height(texts, box[2] - INSET, size) <= box[3] - INSET


def height(texts: Sequence[str], width: float, size: float) -> float:
    """Return how high paragraphs are, in inches."""
    line = size * SPACING / 72
    return sum(lines(text, width, size) * line + size / 3 / 72 for text in texts)


def lines(text: str, width: float, size: float) -> int:
    """Return how many lines a text takes, word by word."""
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
