"""The data model of a finding: a sentence, a figure, a table and the facts behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leakscope.core.findings.drawing import plain_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

Fact = tuple[str, str]
"""A circumstance of a measurement: a name such as `Attacker`, and a description."""

RESTS_ON = ("Data", "n", "Interval", "Attacker", "Access", "Cost")
"""The names of the facts that every view states, if only as none."""

OPENS = "Opened live"
"""Name of the fact on what the page shows when a pin opens live, or why it does not open."""

WEAKER = "Weaker results, shown only on the page"
"""Name of the fact on results that a table in the appendix leaves out."""

YEARS = "Where classes are years"
"""Name of the fact on why results by year are not in the headline."""


def facts_of_none(why: str) -> tuple[Fact, ...]:
    """Return the facts (name, text) of a finding without measurement; its data fact states why."""
    rest = dict.fromkeys(RESTS_ON[1:], "none")
    return tuple({"Data": why, **rest, "Attacker": "none"}.items())


UNMEASURED = facts_of_none("none: nothing has been measured yet")
"""The facts of a page without shipped results."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table of texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a dictionary that JSON can hold."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A measured result, as every page, story, report and document shows it.

    Attributes
    ----------
    title : str
        The finding in one sentence.
    body : str
        The explanation, in the Markdown subset of `leakscope.core.findings.prose`.
    sentence : tuple of (str, str)
        A marked sentence: pieces, each with its mark; empty if none is shown.
    figure : Figure, dict or None
        A Plotly figure, or plain data as stories store it.
    alt : str
        Alternative text of the figure.
    table : Table or None
    facts : tuple of (str, str)
        Data, n, interval, attacker, access, cost and date.
    caveat : str
        Limits of the finding.
    commands : tuple of str
        Commands that reproduce it.
    live : tuple of (str, str)
        Page parameters that show the same finding, if they differ from the pin's; not stored.
    """

    title: str
    body: str = ""
    sentence: tuple[tuple[str, str], ...] = ()
    figure: go.Figure | Mapping[str, Any] | None = None
    alt: str = ""
    table: Table | None = None
    facts: tuple[Fact, ...] = ()
    caveat: str = ""
    commands: tuple[str, ...] = ()
    live: tuple[Fact, ...] = ()

    def with_plain_figure(self) -> Finding:
        """Return a copy of the finding whose Plotly figure is plain, checked data."""
        if self.figure is None or isinstance(self.figure, Mapping):
            return self
        return replace(self, figure=plain_figure(self.figure))

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary that JSON can hold, without empty fields."""
        record = {
            "title": self.title,
            "body": self.body,
            "sentence": [list(piece) for piece in self.sentence],
            "figure": self.with_plain_figure().figure,
            "alt": self.alt,
            "table": None if self.table is None else self.table.to_dict(),
            "facts": [list(fact) for fact in self.facts],
            "caveat": self.caveat,
            "commands": list(self.commands),
        }
        return {name: value for name, value in record.items() if value}
