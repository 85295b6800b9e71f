"""What replaces a token behind each mechanism, as measured: itself, a near one, or another."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import CoreError
from core.figures.replacements import replacements_figure
from core.figures.representations import encoder_title
from core.spreadsheets import table_csv
from core.studies import replacements
from core.studies.replacements import CLASSES, middle_said, setting_said, shares_said
from core.studies.rows import Row
from dashboard import cache
from dashboard.calm import plain, show_error
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.origin import show_origin

__all__ = ["show"]

_OWN, _NEAR, *_ = CLASSES


def show() -> None:
    """Draw the picture, what it says in a sentence, and its numbers; or that there are none."""
    st.header("Does a near word take its place?", anchor=False)
    try:
        rows = cache.replaced_tokens() if replacements.SHIPPED.exists() else []
    except CoreError as error:
        show_error(error, title="What was measured of replacements cannot be read")
        return
    if not rows:
        st.info(
            "Not measured yet: no rows come with this version. In a checkout "
            "`python -m core study replacements --out assets/deniability/replacements.json` "
            "measures it in some minutes.",
            icon=":material/hourglass_empty:",
        )
        return
    st.markdown(_finding(rows))
    st.plotly_chart(
        replacements_figure(rows),
        key="replacements",
        config=chart_config("leakscope-replacements"),
        alt="A bar for each mechanism and strength: per cent of tokens that became "
        f"{', '.join(CLASSES.values())}; the table below holds the same numbers",
    )
    first = rows[0]
    st.caption(
        f"{first.scores[_NEAR].n:,} tokens of {first['n_sentences']:,} sentences that ship, each "
        f"replaced once by one of the {first['n_candidates']:,} of "
        f"{plain(encoder_title(first['encoder']))} that could come out; the encoder chosen above "
        "changes nothing here. Neighbours are told by the distance between token vectors."
    )
    with st.expander("The numbers as a table", icon=":material/table:"):
        table = [_line(row) for row in rows]
        st.dataframe(table, key="replacement-rows", hide_index=True)
        save_csv(lambda: table_csv(table), "replacements", about="A row for each strength")
        show_origin([row.provenance for row in rows])
        st.caption("`python -m core study replacements` measures it again.")


def _finding(rows: Sequence[Row]) -> str:
    """Return which setting gives most near replacements, and what is usual."""
    most = max(rows, key=lambda row: row.scores[_NEAR].value)
    others = [row for row in rows if row["defence"] != most["defence"]]
    told = (
        "Noise that hides a word should leave what it means; a near word would. Of the strengths "
        f"measured, most near words came out under {_named(most)}: "
        f"{most.said(_NEAR, is_bold=True)} % of the tokens became one of their 10 nearest "
        f"neighbours, while {most.said(_OWN)} % came back as they were"
    )
    if others:
        next_ = max(others, key=lambda row: row.scores[_NEAR].value)
        told += f"; under no other mechanism more than {next_.said(_NEAR)} % ({_named(next_)})"
    return (
        f"{told}. All others came back as they were or became something farther away: in so many "
        "dimensions hardly anything is near, which Asghar et al. (2024) hold against d_χ-privacy."
    )


def _named(row: Row) -> str:
    return plain(" at ".join(setting_said(row)))


def _line(row: Row) -> dict[str, str]:
    title, strength = setting_said(row)
    return {
        "mechanism": title,
        "strength": strength,
        **{f"{CLASSES[name]}, %": said for name, said in shares_said(row).items()},
        "median rank beyond the 10 nearest": middle_said(row),
    }
