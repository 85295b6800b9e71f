"""Render documents from templates whose measured numbers are expressions.

A template `docs/templates/PATH.j2` makes the document `PATH`. Its expressions are

fig(SOURCE, 1)              a value with one decimal and its interval: 41.5 [40.0, 43.2]
fig(SOURCE, 0, " %")        the same with a unit: 90 % [84, 96]
bold(SOURCE, 1)             the same with its value in bold: **41.5** [40.0, 43.2]
num(SOURCE, 1)              the value alone; `sign=true` shows a plus
paper("39.5", OF)           a figure of a paper, and where it is printed
setting("0.1", OF)          a setting, and what it belongs to
recorded("7", WHY)          a figure that no command repeats, and why no file has it

`tools.figures.sources` says what a source is. A figure of the text that is no expression is a
fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError

from leakscope.core.results import Score
from tools.figures.sources import ROOT, score_of

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
    """Find the numbers of a paragraph that have decimals, a unit or an interval.

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
    """Yield each measured number of a text outside code blocks, with its line."""
    plain = _FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    edges = [0, *(m.end() for m in re.finditer(r"\n[ \t]*\n", plain)), len(plain)]
    for start, end in pairwise(edges):
        for spot in spots(plain[start:end]):
            begins = text.rfind("\n", 0, start + spot.start) + 1
            line = text[begins:].partition("\n")[0]
            yield text[start + spot.start : start + spot.end].strip(), line


TEMPLATES = ROOT / "docs" / "templates"
_BEGIN, _END = "\ue000", "\ue001"
"""What an expression's figure is put between until the text was searched for others."""


@dataclass(frozen=True)
class Rendered:
    """A rendered document's text, its faults and its sources."""

    text: str
    faults: list[str]
    sources: list[str]


def templates() -> dict[Path, Path]:
    """Return a dict from each document that has a template to that template's path."""
    return {
        ROOT / path.relative_to(TEMPLATES).with_suffix(""): path
        for path in sorted(TEMPLATES.rglob("*.md.j2"))
    }


def render(path: Path) -> Rendered:
    """Render a template by its path, with a first line that names it."""
    name = path.relative_to(ROOT).as_posix()
    made = render_text(path.read_text(encoding="utf-8"))
    first = f"<!-- Written from {name} by `python -m tools.figures`. -->\n"
    return Rendered(f"{first}{made.text}", made.faults, made.sources)


def render_text(template: str) -> Rendered:
    """Render a template's text; the faults are returned with it, not raised."""
    figures = _Figures()
    jinja = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.globals.update(figures.functions())
    try:
        marked = jinja.from_string(template).render()
    except (TemplateError, TypeError) as error:
        return Rendered("", [*figures.faults, f"the template is wrong: {error}"], figures.sources)
    return Rendered(
        re.sub(f"[{_BEGIN}{_END}]", "", marked),
        [*figures.faults, *typed(marked)],
        figures.sources,
    )


def typed(text: str) -> list[str]:
    """Return a message for each number of a document that no template expression wrote."""
    plain = re.sub(
        f"{_BEGIN}[^{_END}]*{_END}", lambda found: _BEGIN * len(found[0]), text, flags=re.DOTALL
    )
    return [
        f"“{line.strip()[:70]}”: {figure} has no source"
        for figure, line in lines_with_figures(plain)
    ]


@dataclass
class _Figures:
    """The functions that a template can call; records their sources and faults."""

    sources: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def functions(self) -> dict[str, Callable[..., str]]:
        """Return the functions that templates call, by name."""
        stated = {kind: self._make_stated(kind) for kind in ("paper", "setting", "recorded")}
        return {"fig": self.fig, "bold": self.bold, "num": self.num, **stated}

    def fig(self, source: str, decimals: int = 1, unit: str = "") -> str:
        """Look up a source expression; return its value with its interval, formatted."""
        return self._measured(source, lambda score: _with_interval(score, decimals, unit))

    def bold(self, source: str, decimals: int = 1) -> str:
        """Look up a source expression; return its value in bold with its interval, formatted."""
        return self._measured(source, lambda score: _with_interval(score, decimals, "", "**"))

    def num(self, source: str, decimals: int = 1, *, sign: bool = False) -> str:
        """Look up a source expression; return its value alone, formatted."""
        return self._measured(source, lambda score: describe(score.value, decimals, sign=sign))

    def _measured(self, source: str, write: Callable[[Score], str]) -> str:
        """Look up a source expression and format it; if that fails, record it and return "?"."""
        self.sources.append(source)
        try:
            return f"{_BEGIN}{write(score_of(source))}{_END}"
        except (LookupError, ValueError) as error:
            self.faults.append(f"{source}: {error}")
        except TypeError as error:
            self.faults.append(f"{source}: it names no number, or has too few words: {error}")
        return "?"

    def _make_stated(self, kind: str) -> Callable[[str, str], str]:
        """Return the template function that prints stated (not measured) numbers of one kind."""

        def stated(value: str, source: Any) -> str:
            """Return a number as stated, and record its source; record a fault if it has none."""
            self.sources.append(f"{kind} {source}")
            if not re.fullmatch(rf"{NUMBER}(?: \[{NUMBER}, {NUMBER}\])?", value) or not source:
                self.faults.append(f"{kind} {value} of {source}: it is no figure with a source")
            return f"{_BEGIN}{value}{_END}"

        return stated


def _with_interval(score: Score, decimals: int, unit: str, bold: str = "") -> str:
    """Format a score with its interval; raise LookupError if it has none."""
    if not score.has_interval:
        raise LookupError("it has no interval")
    value, low, high = (
        describe(each, decimals) for each in (score.value, score.ci95.low, score.ci95.high)
    )
    return f"{bold}{value}{bold}{unit} [{low}, {high}]"


def describe(value: float, decimals: int, *, sign: bool = False) -> str:
    """Format a number as documents print it: thousands separators, a real minus sign."""
    rounded = round(value, decimals) + 0.0  # of −0.0, 0.0
    plus = "+" if sign else ""
    return f"{'−' if rounded < 0 else plus}{abs(rounded):,.{decimals}f}"
