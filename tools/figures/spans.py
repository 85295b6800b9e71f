"""Find the measured numbers in a Markdown text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

NUMBER = r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?"
_UNIT = r"(?:(?:%|×|(?:s|ms|h|GB|MB|points?|seconds?|minutes|hours|rows/s)\b)|\\%)"
_SPOT = re.compile(
    rf"(?<![\w.§=@/~^'’-])(?P<bold>\*\*)?(?P<value>{NUMBER})(?(bold)\*\*)"
    rf"(?P<unit> ?{_UNIT})?(?P<ends> \[{NUMBER}, {NUMBER}\])?"
    r"(?![\w]|\.\d|-\w)"
)
_BEFORE = re.compile(
    r"(?:Eq|Fig|Figs|Alg|No|n|v)\.\s*(?:[\d.]+\s*(?:and|to|–)\s*)?$"
    r"|(?:Tables?|Figures?|Python|Section|§|§§|Apache|MIT|BY|version|CommonMark|Changelog)[\s-]*"
    r"(?:[\d.]+\s*(?:and|to|–)\s*)?$"
)
"""After which a number is a name: `Table 5.2`, `Python 3.11`."""
_AFTER = re.compile(r"\s*(?:interval|intervals|CIs?\b|bootstraps?|confidence|\])")
"""After which `95 %` says what an interval is."""
_ASIDE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+|<!--.*?-->|\$[^$\n]+\$", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Spot:
    """Start, end and value of a number in a text."""

    start: int
    end: int
    value: str


def spots(text: str) -> list[Spot]:
    """Return the numbers of a paragraph that have decimals, a unit or an interval.

    Names (`Table 5.2`), code, links and formulas are no figures. Whole numbers without a unit
    are counts.
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


def lines_with_figures(text: str) -> Iterator[tuple[str, str]]:
    """Yield each measured number outside code blocks, with its line."""
    plain = _FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    edges = [0, *(m.end() for m in re.finditer(r"\n[ \t]*\n", plain)), len(plain)]
    for start, end in pairwise(edges):
        for spot in spots(plain[start:end]):
            begins = text.rfind("\n", 0, start + spot.start) + 1
            line = text[begins:].partition("\n")[0]
            yield text[start + spot.start : start + spot.end].strip(), line
