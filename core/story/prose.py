"""The Markdown of findings as paragraphs of plain and bold text, for those who know no Markdown.

Pages write their findings with `**bold**`, lists and escaped punctuation, and nothing else that
matters: what is not understood here is shown as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Block", "Run", "blocks", "plain_blocks", "spoken"]

_UNSEEN = "\N{WORD JOINER}"
_MARKS = re.compile(r"\\([!-/:-@\[-`{-~])|(\*\*)|(`)|(\*)|([^\\*`]+|\\)")
_ICON = re.compile(r":material/\w+: ?")


@dataclass(frozen=True)
class Run:
    """A stretch of text that looks alike."""

    text: str
    is_bold: bool = False
    is_code: bool = False


@dataclass(frozen=True)
class Block:
    """A paragraph, or an item of a list."""

    runs: tuple[Run, ...]
    is_item: bool = False

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(run.text for run in self.runs)


def blocks(markdown: str) -> list[Block]:
    r"""Return the paragraphs and the items of a finding.

    Examples
    --------
    >>> [block.text for block in blocks("It reads **9** of 10.\n\n- a\\_b\n- c")]
    ['It reads 9 of 10.', 'a_b', 'c']
    >>> blocks("It reads **9**.")[0].runs[1]
    Run(text='9', is_bold=True, is_code=False)
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", _ICON.sub("", markdown)):
        for line in _lines(paragraph):
            is_item = line.startswith("- ")
            runs = tuple(_runs(line.removeprefix("- ")))
            if runs:
                found.append(Block(runs, is_item))
    return found


def _lines(paragraph: str) -> Iterator[str]:
    """Yield the items of a paragraph, and what stands between them as one line."""
    gathered: list[str] = []
    for line in paragraph.strip().splitlines():
        if line.startswith("- ") and gathered:
            yield " ".join(gathered)
            gathered = []
        gathered.append(line.strip())
    if gathered:
        yield " ".join(gathered)


def _runs(line: str) -> Iterator[Run]:
    is_bold = is_code = False
    text = ""
    for escaped, bold, code, star, other in _MARKS.findall(line):
        if bold or code:
            if text:
                yield Run(text.replace(_UNSEEN, ""), is_bold, is_code)
            text = ""
            is_bold ^= bool(bold)
            is_code ^= bool(code)
        else:
            text += "" if star else escaped or other
    if text:
        yield Run(text.replace(_UNSEEN, ""), is_bold, is_code)


def plain_blocks(text: str) -> list[Block]:
    """Return the paragraphs of a text in which nothing is markup: what people type."""
    lines = (line.strip() for line in text.splitlines())
    return [Block((Run(line),)) for line in lines if line]


def spoken(markdown: str) -> str:
    """Return a finding in one line, without marks.

    Examples
    --------
    >>> spoken("It reads **9** of 10.")
    'It reads 9 of 10.'
    """
    return " ".join(block.text for block in blocks(markdown))
