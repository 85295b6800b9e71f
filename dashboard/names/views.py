"""The views of the names page: finding, heat map, words of a cell, probing and the study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from leakscope.core.attacks.inversion.reading import mark_recovery
from leakscope.core.errors import CoreError
from leakscope.core.figures.names import name_map
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.names import describe_substitution, names_in_news, names_in_sentences
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_rate
from leakscope.core.names.experiment import NOT_TESTABLE, NameExperiment
from leakscope.core.names.probing import KNOWLEDGE
from leakscope.core.results.rows import Row
from leakscope.core.spreadsheets import neutral_cell, table_csv
from leakscope.core.studies.names.tables import SHIPPED, format_score
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.names import state
from leakscope.dashboard.names.state import NamesRequest
from leakscope.dashboard.story.pinning import PinnedView
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.state import keep_choice

QUESTION = "Whose name is in the vector?"
_MOST_SHOWN = 10


def finding(found: NameExperiment, attack: str) -> Finding:
    """Build the finding on how often each attacker recovers the names in the sentences."""
    record = cache.shipped_records(ENCODER).get(attack)
    return names_in_sentences(found, attack, record, news_rows())


def pinned(found: NameExperiment, attack: str, with_names: bool) -> PinnedView:
    """Build the finding for a story; names become numbers unless `with_names`."""
    matrix = found.substitution
    people = {name: i for i, name in enumerate(dict.fromkeys((*matrix.names, *matrix.rows)), 1)}
    numbered = {
        part: f"name {i}" for name, i in people.items() for part in (name.full, name.surname)
    }
    return PinnedView(finding=finding(found, attack), instead={} if with_names else numbered)


def heat_map(found: NameExperiment, attack: str) -> None:
    """Draw the heat map of recovered surnames, select its clicked cell, and draw its table."""
    matrix = found.substitution
    keep_choice(state.ROW_KEY, range(len(matrix.rows)))
    keep_choice(state.COLUMN_KEY, range(len(matrix.names)))
    cells = [[matrix.cell(row, column) for column in matrix.names] for row in matrix.rows]
    st.markdown(
        "**Surname recovered, % of the sentences.** Rows: the name in the sentences. Columns: the "
        "name that replaced it. Cells: how often the new name was recovered."
    )
    event = st.plotly_chart(
        name_map(
            [name.surname for name in matrix.rows],
            [name.surname for name in matrix.names],
            cells,
            notes=[_training_note(count) for count in found.training_counts],
            testable=found.is_testable.tolist(),
            chosen=state.chosen_cell(),
            is_dark=st.context.theme.type == "dark",
        ),
        key="names-map",
        on_select="rerun",
        selection_mode="points",
        config=chart_config("leakscope-names"),
        alt="How often each surname was recovered, by original name (rows) and inserted name "
        "(columns); the table below has the same numbers",
    )
    points = event.selection.points if event else []
    clicked = next((p["customdata"] for p in points if p.get("customdata")), None)
    if state.adopt_cell_click(tuple(clicked) if clicked else None):
        st.rerun()
    st.caption(
        "Below a column's name: how many training texts of the attack contain it. The attack "
        "cannot name the hatched ones. Click a cell to see its words."
    )
    table = found.table()
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.markdown(describe_substitution(found, attack))
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in table],
            key="names-table",
            hide_index=True,
        )
        save_csv(
            lambda: table_csv(table), "names", about="One row per cell. It contains the names."
        )


def _training_note(count: int) -> str:
    """Format in how many training texts a name occurs; "not testable" for none."""
    return f"{count:,}" if count else "not testable"


def cell_words(found: NameExperiment, request: NamesRequest) -> None:
    """Draw the selector of a cell, and what the attack recovered from its sentences."""
    matrix = found.substitution
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Original name",
            range(len(matrix.rows)),
            key=state.ROW_KEY,
            format_func=lambda i: matrix.rows[i].full,
            width=260,
            help="The row of the heat map",
        )
        st.selectbox(
            "Inserted name",
            range(len(matrix.names)),
            key=state.COLUMN_KEY,
            format_func=lambda i: matrix.names[i].full,
            width=260,
            help="The column of the heat map",
        )
    row, column = state.chosen_cell()
    positions = matrix.rows_of_name(matrix.rows[row])
    rate = matrix.cell(matrix.rows[row], matrix.names[column])
    name = plain(matrix.names[column].surname)
    n_read = int(matrix.is_recovered[positions, column].sum())
    can = bool(found.is_testable[column])
    st.markdown(
        f"**{name}** was recovered from {format_rate(rate, 'sentences', count=n_read)}."
        if can
        else f"**{name}** is {NOT_TESTABLE}, because it cannot give this name. The attackers "
        "with a list of names do test it."
    )
    attack = cache.open_attack_once(request.attack, ENCODER)
    guess = cache.prior_answer(request.attack, ENCODER, False)
    readings = [
        mark_recovery(
            request.attack,
            attack,
            cache.encoder(ENCODER),
            matrix.texts[s][column],
            matrix.answers[s][column],
            guess,
        )
        for s in positions[:_MOST_SHOWN]
    ]
    for s, reading in zip(positions, readings, strict=False):
        with st.container(border=True):
            st.html(markup.marked_sentence(reading))
            if reading.wrong:
                st.html(markup.wrong_words(reading))
            is_read = bool(matrix.is_recovered[s, column])
            verdict = "● surname recovered" if is_read else "○ surname not recovered"
            st.caption(verdict if can else f"▨ surname {NOT_TESTABLE}")
    st.html(markup.legend(readings))
    if len(positions) > _MOST_SHOWN:
        st.caption(f"Showing the first {_MOST_SHOWN} of {len(positions)} sentences.")


def how_it_is_computed() -> None:
    """Draw the formulas of the heat map and of the nearest-vector test."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Substitution** (Corò 2022, §5.2.3). $x_{a \\to b}$ is a sentence about $a$ with the "
            "name replaced by $b$: surname for surname and, directly before it, first name for "
            "first name. A cell is the share of the sentences $S_a$ for which the answer "
            "$\\hat W$ contains every word of the surname of $b$:"
        )
        st.latex(
            r"M_{ab} = \frac{1}{|S_a|} \sum_{x \in S_a} "
            r"\big[\, W(b) \subseteq \hat W(\Phi(x_{a \to b})) \,\big]"
        )
        st.markdown(
            "Cells have Wilson intervals. Names are matched as whole words; a capital letter of a "
            "name must be a capital in the text.\n\n"
            "**The probe** encodes a text with each candidate $c$ and picks the candidate whose "
            "text has the greatest cosine with the vector. The text depends on what else the "
            "attacker knows:\n\n"
            + "\n".join(f"- *{k.title}*. {k.assumes}" for k in KNOWLEDGE.values())
            + "\n\nA tie counts as a miss."
        )


def caveats(measured: str = "") -> None:
    """Draw the limitations of the names page; `measured` adds a limitation of the study."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A surname counts as recovered even if it is an everyday word, or is in the sentence "
            "for another reason.\n"
            "- First names are replaced too, but their recovery is not scored.\n"
            "- Few sentences give wide intervals: compare the intervals of two cells, not their "
            "values.\n"
            + (f"- {measured}\n" if measured else "")
            + "- A name that these attacks miss is not proven safe: an attacker who looks for it "
            "can train for it, or probe."
        )


_FEW, _FEW_WORD = 5, "five"
"""The k of the top-k rate that is shown beside top-1."""


def probing_panel(found: NameExperiment) -> None:
    """Draw how often each attacker with a name list finds the name, and one vector's ranking."""
    n = len(found.substitution.names)
    more = f", and {100 * _FEW / n:.0f} % in the top {_FEW_WORD}" if n > _FEW else ""
    n_all, n_tested = found.substitution.is_recovered.size, len(found.probed)
    tested = f"The tab “Each surname” has {n_all} vectors; all were tested here."
    if n_tested < n_all:
        tested = (
            f"The tab “Each surname” has {n_all} vectors; {n_tested} of them, chosen at random to "
            "save time, were tested here."
        )
    st.markdown(
        f"Each attacker has a list of **{n} names** and knows that one of them is in the sentence. "
        "The attacker can use the encoder but was not trained on these names. For each name it "
        "encodes a text, and picks the name whose vector is nearest. Guessing finds "
        f"{100 / n:.0f} %{more}, because 1 of {n} names is right. {tested} Besides the names, the "
        "attackers know:\n\n"
        + "\n".join(f"- **{k.title}.** {k.assumes}" for k in KNOWLEDGE.values())
    )
    rates = {one.knows: one.rate for one in found.attackers()}  # as in the headline
    rows = [
        {"also known": KNOWLEDGE[knows].title, "found, %": rates[knows].format(0)}
        | ({f"in the top {_FEW_WORD}, %": format_score(probe.hits(_FEW))} if n > _FEW else {})
        for knows, probe in found.probes.items()
    ]
    st.dataframe(rows, key="probing", hide_index=True)
    st.caption(
        "The brackets show the 95 % CI. It counts sentences, because several vectors come from the "
        f"same sentence. {_describe_difficulty(found)}"
    )
    _candidate_ranking(found)


def _describe_difficulty(found: NameExperiment) -> str:
    """Describe how difficult it is to distinguish the candidates."""
    names = [name.full for name in found.substitution.names]
    what = (
        f"This example is easy, because its {len(names)} invented names differ clearly."
        if names == list(cache.name_samples()["names"])
        else f"{len(names)} candidates are few, and dissimilar names are easy to distinguish."
    )
    return f"{what} More candidates were measured on news."


def _candidate_ranking(found: NameExperiment) -> None:
    """Draw the selector of a vector, and its candidate names ranked by cosine."""
    matrix = found.substitution
    keep_choice(state.PROBED_KEY, range(len(found.probed)))
    chosen = st.selectbox(
        "One vector in detail",
        range(len(found.probed)),
        key=state.PROBED_KEY,
        format_func=lambda i: matrix.texts[found.probed[i][0]][found.probed[i][1]],
        help="A sentence of the heat map with its inserted name. The attacker sees only the vector",
    )
    truth = found.probed[chosen][1]
    order = np.argsort(-found.probes["sentence"].scores[chosen], kind="stable")
    rows = [
        {"candidate": neutral_cell(f"{'● ' if i == truth else ''}{matrix.names[i].full}")}
        | {
            KNOWLEDGE[knows].title: float(probe.scores[chosen, i])
            for knows, probe in found.probes.items()
        }
        for i in order
    ]
    st.dataframe(
        rows,
        key="candidates",
        hide_index=True,
        column_config={
            knowledge.title: st.column_config.NumberColumn(format="%.3f", help=knowledge.assumes)
            for knowledge in KNOWLEDGE.values()
        },
    )
    st.caption(
        "● marks the name in the sentence. Each column is one attacker, by what else the attacker "
        "knows. It shows how similar each candidate's text is to the vector (cosine; 1 means "
        "identical). The attacker picks the most similar."
    )


_DOMAINS = {"in": "news", "cross": "encyclopaedia"}


def study_results() -> None:
    """Load and draw the finding and the tables of the study of names on news."""
    if not SHIPPED.exists():
        st.info("Not measured on this computer yet. Run `leakscope study names`.")
        return
    try:
        rows = cache.name_rows()
        finding = names_in_news(rows, is_dark=st.context.theme.type == "dark")
    except CoreError as error:
        show_error(error, title="The measured results cannot be read")
        return
    show_finding(st.container(), finding, "names-in-news", is_title=False)
    st.markdown(
        "The texts are real news about the people named most often; their names are not shown. "
        "The attacks were trained on other documents of the same news, or on an encyclopaedia. "
        "“Names added” means that the attacker looks for these people and has put their names "
        "into its training sentences."
    )
    matrices = [row for row in rows if row["kind"] == "substitution"]
    st.dataframe([_substitution_row(row) for row in matrices], key="measured", hide_index=True)
    st.caption(
        "The brackets show the 95 % CI; n counts sentences. The column “false positives” shows how "
        "often the attack named a listed surname that is not in the sentence. “Guessing” is an "
        "attacker who never sees the vector."
    )
    st.markdown("**Names that no attack was trained on**, with a list of candidates:")
    probes = [row for row in rows if row["kind"] == "probing" and row["domain"] == "in"]
    st.dataframe(
        [_probing_row(row) for row in probes if row["knows"] == "recovered" or not row["n_added"]],
        key="measured-probes",
        hide_index=True,
    )
    st.caption(
        "Guessing picks a candidate at random. Its rate is computed, not measured, so it has no "
        "interval."
    )


def news_rows() -> Sequence[Row]:
    """Return the shipped rows of the study of names; () if missing or unreadable."""
    try:
        return cache.name_rows() if SHIPPED.exists() else ()
    except CoreError:  # shown where the table would be
        return ()


def _substitution_row(row: Row) -> dict[str, Any]:
    """Convert a result row of the substitution test to a table row (dict)."""
    return {
        "names": row["n_names"],
        "trained on": _DOMAINS[row["domain"]],
        "names added": bool(row["n_added"]),
        "original name, %": format_score(row.scores["diagonal"]),
        "inserted name, %": format_score(row.scores["exchanged"]),
        "false positives, %": format_score(row.scores["wrongly_said"], decimals=1),
        "guessing, %": format_score(row.scores["prior"], decimals=1),
    }


def _probing_row(row: Row) -> dict[str, Any]:
    """Convert a result row of the candidate-list test to a table row (dict)."""
    return {
        "also known": KNOWLEDGE[row["knows"]].title + (", names added" if row["n_added"] else ""),
        "candidates": row["n_candidates"],
        "found, %": format_score(row.scores["hits_1"]),
        "in the top five, %": format_score(row.scores["hits_5"]),
        "guessing, %": f"{100 / row['n_candidates']:.1f}",
    }
