"""How the scores of members and of others lie, as far as the rows of a study tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import streamlit as st

from core.attacks.membership.drawn import RankShares, ScoreShares, half_above
from core.figures.membership import rank_figure, score_figure
from core.spreadsheets import table_csv
from core.studies.membership_shipped import Measured
from dashboard.charts import chart_config
from dashboard.downloads import save_csv

__all__ = ["picture"]

_HALF = 0.5


def picture(one: Measured) -> None:
    """Draw the scores of both kinds: as they are, else by those of the others, or say why not."""
    st.header("Scores of members and of non-members", anchor=False)
    shares: ScoreShares | RankShares | None = one.shares or one.ranks
    if shares is None:
        st.info(_why_not(one), icon=":material/info:")
        return
    st.markdown(_overlap_said(one))
    st.plotly_chart(
        rank_figure(shares) if isinstance(shares, RankShares) else score_figure(shares),
        key="membership-scores",
        config=chart_config("leakscope-membership-measured-scores"),
        alt="How many members and how many non-members have a score in each range: the less the "
        "two overlap, the more leaks; the sentence above and the table below tell it in numbers",
    )
    lines = list(_lines(shares))
    with st.expander("The scores as a table", icon=":material/table:"):
        st.markdown(_table(lines))
    st.caption(_of_ranks(one) if isinstance(shares, RankShares) else _of_scores(one))
    save_csv(
        lambda: table_csv([{"attack": one.attack, **line} for line in lines]),
        "membership-scores",
        about="How the scores lie: one row a range of scores",
    )


def _table(lines: Sequence[Mapping[str, object]]) -> str:
    """Return the lines as a table that screen readers walk through, and that needs no pandas."""
    rows = [list(lines[0]), ["---:"] * len(lines[0]), *(line.values() for line in lines)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _of_ranks(one: Measured) -> str:
    return (
        "Each range is bounded by scores of the non-members: in one from *a* to *b* % lie those "
        f"above *a* and not above *b* per cent of them. Means over {one.n_draws} "
        f"draw{'s' if one.n_draws != 1 else ''} of who is a member."
    )


def _of_scores(one: Measured) -> str:
    return (
        "The attack's own scores; those beyond either end count in the range there. Of the first "
        f"of {one.n_draws} draws of who is a member: scores of two models differ in scale."
    )


def _why_not(one: Measured) -> str:
    if any(row.facts.get("curve") for row in one.rows):
        return (
            "Many scores of this attack are equal, and how they lie was not stored when this was "
            f"measured. `python -m core study {one.study}` stores it."
        )
    return (
        "How the scores lie was not stored when this was measured, the rates above alone were. "
        f"`python -m core study {one.study}` stores it."
    )


def _overlap_said(one: Measured) -> str:
    """Return how far the two kinds lie apart, in one sentence."""
    if one.ranks is not None:
        share = 100 * (1 - next(rate for rate, score in one.curve if score.value >= _HALF))
    else:
        share = 0.0 if one.shares is None else half_above(one.shares)
    return (
        f"At least half of the members score above **{share:.0f} %** of the non-members; of an "
        "attack that guesses it is 50 %."
    )


def _lines(shares: ScoreShares | RankShares) -> Iterator[dict[str, object]]:
    """Yield each range with how many per cent of either kind have a score in it."""
    if isinstance(shares, RankShares):
        bounds, of, form = shares.bounds, "above, of non-members, %", ".0f"
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
