"""Figures of an audit: shares of words recovered, missed and not tested."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from leakscope.core.audit.summary import AuditSummary, PersonalData
from leakscope.core.figures.style import BASELINE, BELOW, GRID, LEAKED, error_bars, style
from leakscope.core.results import Score

_CONFIRMABLE = "#E69F00"
_INTERVAL = "#202428"
_MISSED = BASELINE
"""Grey, not green: what this attack missed, another may recover."""
_UNTESTED = {"pattern": {"shape": "/", "fgcolor": BASELINE}, "color": "rgba(0,0,0,0)"}


_OUTCOMES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("● recovered", {"color": LEAKED}, "%{x:.1f} % recovered"),
    ("○ not recovered", {"color": _MISSED}, "%{x:.1f} % not recovered"),
    ("▨ not tested", _UNTESTED, "the attack cannot name %{x:.1f} %"),
)
"""Bars of words, in the order of `_word_shares`: name, marker and hover text."""

_ANSWERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("● recovered", "recovered", {"color": LEAKED}),
    ("◐ confirmable", "confirmable", {"color": _CONFIRMABLE}),
    ("○ not confirmed", "not_confirmed", {"color": _MISSED}),
    ("▨ not testable", "not_testable", _UNTESTED),
)


def audit_figure(found: AuditSummary) -> go.Figure | None:
    """Plot an audit's result; None if nothing could be attacked.

    With texts: a stacked bar for all words, for names and for numbers, split into recovered, not
    recovered, and not tested (outside the attack's vocabulary). Without texts: the estimated F1
    with its interval.
    """
    if found.f1 is None:
        return None
    return (
        _expected_f1_figure(found.f1)
        if found.recall is None
        else _shares_figure(found, found.recall)
    )


def audit_alt(found: AuditSummary) -> str:
    """Describe the audit figure in words, for screen readers."""
    if found.f1 is None:
        return ""
    if found.recall is None:
        return f"Estimated F1: {found.f1.in_text(0)}"
    return "; ".join(
        f"{title}: {recovered:.0f} % recovered, {missed:.0f} % not recovered, "
        f"{untested:.0f} % not tested"
        for title, recovered, missed, untested, _ in _word_shares(found, found.recall)
    )


def _word_shares(
    found: AuditSummary, recall: Score
) -> list[tuple[str, float, float, float, Score]]:
    """Return, per kind of word, its title, per cent recovered, missed, untested, and recall."""
    coverage = 1.0 if found.coverage is None else found.coverage
    kinds = [("All words", recall, coverage)] + [
        (kind.kind.capitalize(), kind.share, kind.n_listed / kind.n_all)
        for kind in found.kinds
        if kind.n_all
    ]
    rows = []
    for title, share, listed in kinds:
        value = 0.0 if math.isnan(share.value) else share.value * listed
        rows.append((title, value, 100 * listed - value, 100 * (1 - listed), share))
    return rows


def _shares_figure(found: AuditSummary, recall: Score) -> go.Figure:
    """Plot stacked bars of recovered, missed and untested words."""
    rows = _word_shares(found, recall)
    titles = [title for title, *_ in rows]
    ends = {
        title: _scale_interval(share, recovered)
        for title, recovered, _, _, share in rows
        if not math.isnan(share.value)
    }
    figure = go.Figure(
        [
            *(
                go.Bar(
                    name=name,
                    x=[row[part] for row in rows],
                    y=titles,
                    orientation="h",
                    marker=marker,
                    hovertemplate=f"%{{y}}: {hover}<extra></extra>",
                )
                for part, (name, marker, hover) in enumerate(_OUTCOMES, 1)
            ),
            # A separate trace, since the next bar would cover half of the interval.
            go.Scatter(
                x=[end.value for end in ends.values()],
                y=[*ends],
                mode="markers",
                marker={"color": _INTERVAL, "size": 1},
                error_x=error_bars([*ends.values()], _INTERVAL, thickness=2, width=6),
                hoverinfo="skip",
                showlegend=False,
            ),
        ]
    )
    _lay_out(figure, titles, "% of all words, tested or not", height=150 + 44 * len(rows))
    return figure


def personal_figure(found: PersonalData) -> go.Figure | None:
    """Plot what an attacker learns about each kind of personal data; None if none was tested."""
    kinds = [kind for kind in found.kinds if kind.n_tested]
    if not kinds:
        return None
    titles = [f"{kind.title} ({kind.n_tested:,})" for kind in kinds]
    figure = go.Figure(
        [
            go.Bar(
                name=name,
                x=[_nan_to_zero(getattr(kind, part).value) for kind in kinds],
                y=titles,
                orientation="h",
                marker=marker,
                hovertemplate=f"%{{y}}: %{{x:.0f}} % {name[2:]}<extra></extra>",
            )
            for name, part, marker in _ANSWERS
        ]
    )
    _lay_out(figure, titles, "% of the identifiers tested", height=150 + 40 * len(kinds))
    return figure


def personal_alt(found: PersonalData) -> str:
    """Describe the figure of personal data in words, for screen readers."""
    return "; ".join(
        f"{kind.title}: "
        + ", ".join(
            f"{_nan_to_zero(getattr(kind, part).value):.0f} % {name[2:]}"
            for name, part, _ in _ANSWERS
        )
        for kind in found.kinds
    )


def _lay_out(figure: go.Figure, titles: Sequence[str], axis: str, *, height: int) -> None:
    """Apply the shared style to a figure of stacked per-cent bars; the first title is on top."""
    style(figure, height=height)
    figure.update_layout(
        barmode="stack",
        bargap=0.4,
        legend={**BELOW, "traceorder": "normal"},
        margin={"t": 16, "b": 70, "l": 0, "r": 28},
    )
    figure.update_xaxes(range=[0, 100], title=axis, dtick=25, gridcolor=GRID)
    figure.update_yaxes(categoryorder="array", categoryarray=titles[::-1], automargin=True)


def _nan_to_zero(value: float) -> float:
    """Return a number unchanged, or 0 for NaN."""
    return 0.0 if math.isnan(value) else value


def _scale_interval(share: Score, recovered: float) -> Score:
    """Scale the recall of listed words, with its interval, to a share of all words."""
    if not share.ci95.is_known or not share.value:
        return Score(recovered)
    factor = recovered / share.value
    ends = type(share.ci95)(factor * share.ci95.low, factor * share.ci95.high)
    return Score(recovered, ends, share.n)


def _expected_f1_figure(f1: Score) -> go.Figure:
    """Plot an audit's estimated F1 with its interval, as one point."""
    figure = go.Figure(
        go.Scatter(
            x=[f1.value],
            y=["Estimated F1"],
            mode="markers",
            marker={"color": LEAKED, "size": 16},
            error_x=error_bars([f1], LEAKED, thickness=3, width=8),
            hovertemplate="Estimated F1: %{x:.0f}<extra></extra>",
            showlegend=False,
        )
    )
    style(figure, height=150)
    figure.update_layout(margin={"t": 16, "b": 44, "l": 0, "r": 8})
    figure.update_xaxes(
        range=[0, 100],
        title="F1 (0: no word, 100: every word and no wrong answer)",
        dtick=25,
        gridcolor=GRID,
    )
    figure.update_yaxes(automargin=True)
    return figure
