"""Parse the Markdown of findings, and escape texts for it.

Findings use only `**bold**`, code, lists and escaped punctuation; other markup is shown literally.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNSEEN = "\N{WORD JOINER}"
_MARKS = re.compile(r"\\([!-/:-@\[-`{-~])|(\*\*)|(`)|(\*)|([^\\*`]+|\\)")
_ICON = re.compile(r":material/\w+: ?")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_MADE_OF_TEXT = re.compile(
    r"(?<=http)(?=s?://)|(?<=www)(?=\.)"  # a web address
    r"|(?<=[-.\w+])(?=@[-\w]+\.)"  # an address of mail
    r"|(?<=:)(?=[-+\w]+:)"  # the name of an emoji, an icon or the logo
    r"|(?<=(?<!\S)[-<>~])(?=[-=>]+(?!\S))",  # an arrow or a dash
    re.IGNORECASE,
)
"""Places where the browser makes links, emoji or arrows despite escapes."""


@dataclass(frozen=True)
class Run:
    """A stretch of text in one style."""

    text: str
    is_bold: bool = False
    is_code: bool = False


@dataclass(frozen=True)
class Block:
    """A paragraph or a list item."""

    runs: tuple[Run, ...]
    is_item: bool = False

    @property
    def text(self) -> str:
        """The text without its styles."""
        return "".join(run.text for run in self.runs)


def parse_blocks(markdown: str) -> list[Block]:
    r"""Parse a finding's Markdown into paragraphs and list items.

    Examples
    --------
    >>> [block.text for block in parse_blocks("It found **9** of 10.\n\n- a\\_b\n- c")]
    ['It found 9 of 10.', 'a_b', 'c']
    >>> parse_blocks("It found **9**.")[0].runs[1]
    Run(text='9', is_bold=True, is_code=False)
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", _ICON.sub("", markdown)):
        for line in _split_items(paragraph):
            is_item = line.startswith("- ")
            runs = tuple(_parse_runs(line.removeprefix("- ")))
            if runs:
                found.append(Block(runs, is_item))
    return found


def _split_items(paragraph: str) -> Iterator[str]:
    """Yield the lead and each list item of a Markdown paragraph, with line breaks removed."""
    gathered: list[str] = []
    for line in paragraph.strip().splitlines():
        if line.startswith("- ") and gathered:
            yield " ".join(gathered)
            gathered = []
        gathered.append(line.strip())
    if gathered:
        yield " ".join(gathered)


def _parse_runs(line: str) -> Iterator[Run]:
    """Split a Markdown line into plain, bold and code stretches; yield each as a Run."""
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
    """Split a text without markup, such as user input, into paragraphs."""
    lines = (line.strip() for line in text.splitlines())
    return [Block((Run(line),)) for line in lines if line]


def strip_markup(markdown: str) -> str:
    """Return a finding's Markdown as one line of plain text.

    Examples
    --------
    >>> strip_markup("It found **9** of 10.")
    'It found 9 of 10.'
    """
    return " ".join(block.text for block in parse_blocks(markdown))


def plain(text: str) -> str:
    r"""Escape a text so that Markdown shows it literally, without links.

    Escapes every ASCII punctuation mark. Browsers turn some escaped texts into links, emoji or
    arrows anyway; an invisible character prevents this.

    Examples
    --------
    >>> print(plain("a_b $x$ :red[c]"))
    a\_b \$x\$ \:red\[c\]
    >>> plain("www.a.b") == "www\u2060\\.a\\.b"
    True
    """
    parted = _MADE_OF_TEXT.sub(_UNSEEN, " ".join(text.split()))
    return _PUNCTUATION.sub(r"\\\1", parted)
