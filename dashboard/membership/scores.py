"""Distributions of the scores of members and non-members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import streamlit as st

from leakscope.core.attacks.membership.score_distribution import (
    RankShares,
    ScoreShares,
    percentile_half_above,
)
from leakscope.core.figures.membership import rank_figure, score_figure
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.membership.shipped import Measured
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv

_HALF = 0.5


def score_distributions(one: Measured) -> None:
    """Draw the score distributions of members and non-members, or why they are unknown."""
    st.header("Scores of members and non-members", anchor=False)
    shares: ScoreShares | RankShares | None = one.shares or one.ranks
    if shares is None:
        st.info(_why_not_stored(one), icon=":material/info:")
        return
    st.markdown(_describe_overlap(one))
    st.plotly_chart(
        rank_figure(shares) if isinstance(shares, RankShares) else score_figure(shares),
        key="membership-scores",
        config=chart_config("leakscope-membership-measured-scores"),
        alt="Percentages of members and non-members by score range: the less they overlap, the "
        "more leaks; the table below has the same numbers",
    )
    lines = list(_bin_rows(shares))
    with st.expander("The scores as a table", icon=":material/table:"):
        st.markdown(_markdown_table(lines))
    st.caption(
        _describe_rank_bins(one) if isinstance(shares, RankShares) else _describe_score_bins(one)
    )
    save_csv(
        lambda: table_csv([{"attack": one.attack, **line} for line in lines]),
        "membership-scores",
        about="The score distributions, one row per range of scores",
    )


def _markdown_table(lines: Sequence[Mapping[str, object]]) -> str:
    """Return rows as a Markdown table, which screen readers can navigate."""
    rows = [list(lines[0]), ["---:"] * len(lines[0]), *(line.values() for line in lines)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _describe_rank_bins(one: Measured) -> str:
    """Describe the bins of scores by the ranks of non-members."""
    return (
        "The ranges are percentiles of the non-members' scores: a score in *a*–*b* % is above *a* "
        f"but not above *b* per cent of them. Means over {one.n_draws} "
        f"draw{'s' if one.n_draws != 1 else ''} of members."
    )


def _describe_score_bins(one: Measured) -> str:
    """Describe the bins of the attack's own scores."""
    times = "once" if one.n_draws == 1 else f"{one.n_draws} times"
    return (
        "These are the attack's own scores; the outermost ranges include all scores beyond them. "
        f"The members were drawn at random {times}. Only the first draw is shown, because scores "
        "of different models cannot be compared."
    )


def _why_not_stored(one: Measured) -> str:
    """Describe why the score distributions of a result are unknown."""
    if any(row.facts.get("curve") for row in one.rows):
        return (
            "Many scores of this attack are equal, and these results do not store their "
            f"distribution. `leakscope study {one.study}` stores it."
        )
    return (
        "These results store the rates above, but not the distribution of the scores. "
        f"`leakscope study {one.study}` stores it."
    )


def _describe_overlap(one: Measured) -> str:
    """Describe the share of non-members below at least half of the members."""
    if one.ranks is not None:
        share = 100 * (1 - next(rate for rate, score in one.curve if score.value >= _HALF))
    else:
        share = 0.0 if one.shares is None else percentile_half_above(one.shares)
    return (
        f"At least half of the members score above **{share:.0f} %** of the non-members. With "
        "guessing, half of the members would score above only half of the non-members."
    )


def _bin_rows(shares: ScoreShares | RankShares) -> Iterator[dict[str, object]]:
    """Yield a table row for each bin: its bounds, and the shares of members and non-members."""
    if isinstance(shares, RankShares):
        bounds, of, form = shares.bounds, "percentile of non-members", ".0f"
    else:
        bounds, of, form = shares.edges, "score", ".4g"
    sides = zip(pairwise(bounds.tolist()), shares.members, shares.outsiders, strict=True)
    for (low, high), inside, outside in sides:
        yield {
            f"{of}: from": float(f"{low:{form}}"),
            f"{of}: to": float(f"{high:{form}}"),
            "members, %": round(float(inside), 1),
            "non-members, %": round(float(outside), 1),
        }
