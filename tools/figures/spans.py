"""Figures in Markdown: where they stand, and what the comment below their block says of each.

A block is a paragraph, a list or a table. Its comment tells, one line a figure (or parted by ` · `)
and in their order, where each comes from; a reader of the rendered page sees none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Block", "Spot", "blocks", "rewritten", "spots"]

_NUMBER = r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?"
_UNIT = r"(?:(?:%|×|(?:s|ms|h|GB|MB|points?|seconds?|minutes|hours|rows/s)\b)|\\%)"
_SPOT = re.compile(
    rf"(?<![\w.§=@/~^'’-])(?P<bold>\*\*)?(?P<value>{_NUMBER})(?(bold)\*\*)"
    rf"(?P<unit> ?{_UNIT})?(?P<ends> \[{_NUMBER}, {_NUMBER}\])?"
    r"(?![\w]|\.\d|-\w)"
)
_BEFORE = re.compile(
    r"(?:Eq|Fig|Figs|Alg|No|n|v)\.\s*(?:[\d.]+\s*(?:and|to|–)\s*)?$"
    r"|(?:Tables?|Figures?|Python|Section|§|§§|Apache|MIT|BY|version|CommonMark|Changelog)[\s-]*"
    r"(?:[\d.]+\s*(?:and|to|–)\s*)?$"
)
"""After which a number is a name: `Table 5.2`, `Python 3.11`."""
_AFTER = re.compile(r"\s*(?:interval|intervals|bootstraps?|confidence|\])")
"""After which `95 %` says what an interval is."""
_ASIDE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+|<!--.*?-->|\$[^$\n]+\$", re.DOTALL)
_COMMENT = re.compile(
    r"<!-- figures(?P<rows> of the rows [^\n]+?)?:\s(?P<lines>.*?)\s-->", re.DOTALL
)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Spot:
    """A figure where it stands."""

    start: int
    end: int
    value: str


@dataclass(frozen=True)
class Block:
    """A block of Markdown with what its comment says."""

    start: int
    text: str
    told: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What stands for `{}` in each row of its table, where the comment is of rows."""

    @property
    def first_line(self) -> str:
        """The beginning, to find it by."""
        return self.text.strip().splitlines()[0][:70]

    def sources(self) -> list[str]:
        """Return what each figure's source is said to be, in the order of the figures."""
        each = [self._repeated(line) for line in self.told]
        told = [line for lines in each for line in lines]
        if not self.names:
            return told
        return [line.replace("{}", name) for name in self.names for line in told]

    @staticmethod
    def _repeated(line: str) -> list[str]:
        found = re.fullmatch(r"(.*) \((\d+) times\)", line)
        return [found[1]] * int(found[2]) if found else [line]


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown text, each with its comment's lines."""
    plain = _FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    edges = [0, *(m.end() for m in re.finditer(r"\n[ \t]*\n", plain)), len(plain)]
    for start, end in pairwise(edges):
        piece = plain[start:end]
        comment = _COMMENT.search(piece)
        if comment is None:
            yield Block(start, piece, ())
            continue
        lines = tuple(part.strip() for part in re.split(r"\n| · ", comment["lines"]))
        names = (comment["rows"] or "").removeprefix(" of the rows ").split()
        yield Block(start, piece[: comment.start()], lines, tuple(names))


def spots(text: str) -> list[Spot]:
    """Return the figures of a block: numbers with decimals, a unit or an interval.

    Not those that are names (`Table 5.2`), code, links or formulas, nor whole numbers without a
    unit: these count things.
    """
    hidden = _ASIDE.sub(lambda found: "`" * len(found[0]), text)
    found = []
    for match in _SPOT.finditer(hidden):
        before, after = hidden[: match.start()], hidden[match.end() :]
        is_figure = "." in match["value"] or match["unit"] or match["ends"]
        is_level = match["value"] == "95" and match["unit"] and _AFTER.match(after)
        if not is_figure or is_level or _BEFORE.search(before[-40:]):
            continue
        found.append(Spot(match.start(), match.end(), match["value"]))
    return found


def rewritten(text: str, render: Callable[[str, str], str]) -> tuple[str, list[str]]:
    """Return a text with its figures as their sources have them, and what is wrong with it.

    Parameters
    ----------
    render : callable
        Of a source and the figure as it stands, such as `41.5 [40.0, 43.2]`: the same as it should
        stand. Raises `LookupError` or `ValueError` where there is no such source.
    """
    pieces, faults, end = [], [], 0
    for block in blocks(text):
        found, told = spots(block.text), block.sources()
        if len(found) != len(told):
            said = ", ".join(s.value for s in found)
            faults.append(
                f"“{block.first_line}”: {len(found)} figures ({said}), and its comment tells "
                f"where {len(told)} come from"
            )
            continue
        for spot, source in zip(found, told, strict=True):
            stands = block.text[spot.start : spot.end]
            try:
                new = render(source, stands)
            except (LookupError, ValueError) as error:
                faults.append(f"“{block.first_line}”: {stands} from {source}: {error}")
                continue
            pieces += [text[end : block.start + spot.start], new]
            end = block.start + spot.end
    return "".join([*pieces, text[end:]]), faults
