"""The parts of the page of names: the finding, the heat map, and the words of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import mark_recovery
from core.figures.names import name_attackers, name_map
from core.names.experiment import NOT_TESTABLE, NameAttacker, NameExperiment
from core.names.probing import KNOWLEDGE
from core.said import rate_said
from core.spreadsheets import neutral_cell, table_csv
from dashboard import cache, markup
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.inversion.answers import ENCODER
from dashboard.names import state
from dashboard.names.state import NamesRequest
from dashboard.state import keep_choice

__all__ = ["MAP_TITLE", "QUESTION", "alt_of_attackers", "cell_words", "finding", "heat_map"]

MAP_TITLE = "**Surname read, % of the sentences** · rows: whose sentences; columns: the name put in"
QUESTION = "Whose name is in the vector?"
_MOST_SHOWN = 10
_MOST_NAMED = 4


def finding(slot: Any, found: NameExperiment, attack: str) -> None:
    """Draw the answer to the page's question: the strongest attacker, and the others below it."""
    attackers, best = found.attackers(), found.strongest()
    n_sentences = len({sentence for sentence, _ in found.probed})
    slot.title(_title(best, n_sentences), anchor=False)
    slot.markdown(
        f"{_strongest(found, best, attack, n_sentences)}\n\n{_without_list(found, best, attack)}"
    )
    _show_attackers(slot, attackers)


def _title(best: NameAttacker, n_sentences: int) -> str:
    if best.rate.value <= best.rate.chance:
        return "No attacker found the name more often than by guessing"
    what = "right name was found" if best.knows else "surname was read"
    many = f"vector{'s' * (best.n_asked > 1)}"
    share = f"{100 * best.n_found / best.n_asked:.0f} %"
    doubt = "" if best.beats_guessing else ": too few to rule out guessing"
    if n_sentences == 1:
        doubt = ", all of one sentence: that tells nothing of others"
    return f"The {what} in {best.n_found} of {best.n_asked} {many} ({share}){doubt}"


def _strongest(found: NameExperiment, best: NameAttacker, attack: str, n_sentences: int) -> str:
    """Return what the strongest attacker has, what it found, and what guessing would."""
    n = len(found.substitution.names)
    rate = rate_said(best.rate, "vectors", count=best.n_found, is_bold=True)
    if not best.knows:
        return (
            f"**The strongest attacker** has no list of names: it reads words, by the "
            f"{_title_of(attack)}. It read the surname in {rate}."
        )
    told = (
        f"**The strongest attacker** has a list of the {n} candidate names and knows "
        f"{KNOWLEDGE[best.knows].assumes}. It picked the right name in {rate}; guessing finds "
        f"{best.rate.chance:.0f} %."
    )
    if best.beats_guessing or n_sentences == 1:
        return told
    return f"{told} More sentences would show whether that is more than guessing."


def _without_list(found: NameExperiment, best: NameAttacker, attack: str) -> str:
    """Return what is read without a list of names, and which names that cannot test."""
    n, n_known = len(found.training_counts), int(found.is_testable.sum())
    words = found.attackers()[0]
    missing = [name.surname for name, can in zip(
        found.substitution.names, found.is_testable, strict=True) if not can]  # fmt: skip
    if not words.is_testable:
        return (
            f"Without a list of names: **{NOT_TESTABLE}**. No surname in these sentences is among "
            f"the words that the {_title_of(attack)} can answer. That is no evidence of safety."
        )
    told = ""
    if best.knows:
        rate = rate_said(words.rate, "vectors", count=words.n_found, is_bold=True)
        told = f"Without a list of names, the {_title_of(attack)} read the surname in {rate}. "
    if not missing:
        return f"{told}All {n} surnames are on its word list."
    names = plain(", ".join(missing[:_MOST_NAMED])) + (", …" if len(missing) > _MOST_NAMED else "")
    are = "are" if len(missing) > 1 else "is"
    return (
        f"{told}{n_known} of the {n} surnames are on its word list; {names} {are} "
        f"**{NOT_TESTABLE}** and not counted, which is no evidence of safety."
    )


def _title_of(attack: str) -> str:
    return INVERSION_ATTACKS[attack].title.lower()


def _show_attackers(slot: Any, attackers: Sequence[NameAttacker]) -> None:
    """Draw how often each attacker finds the name."""
    slot.plotly_chart(
        name_attackers(attackers),
        key="name-attackers",
        config=chart_config("leakscope-name-attackers"),
        alt=alt_of_attackers(attackers),
    )


def alt_of_attackers(attackers: Sequence[NameAttacker]) -> str:
    """Return the figure of the attackers in words."""
    told = "; ".join(
        f"{KNOWLEDGE[one.knows].title.lower() if one.knows else 'no list of names'}: "
        + (f"{one.n_found} of {one.n_asked}" if one.is_testable else NOT_TESTABLE)
        for one in attackers
    )
    return f"How often each attacker finds the name, by what it knows besides the list: {told}"


def heat_map(found: NameExperiment, attack: str) -> None:
    """Draw the matrix; a click chooses a cell."""
    matrix = found.substitution
    keep_choice(state.ROW_KEY, range(len(matrix.rows)))
    keep_choice(state.COLUMN_KEY, range(len(matrix.names)))
    cells = [[matrix.cell(row, column) for column in matrix.names] for row in matrix.rows]
    st.header("Each surname, read without a list", anchor=False)
    other = matrix.exchanged(found.is_testable)
    n_other = int(matrix.read[~matrix.is_own & found.is_testable].sum())
    st.markdown(
        f"Every name is put into every sentence, and the {_title_of(attack)} reads each vector. "
        "With another name of the list in its place, it read the surname in "
        f"{rate_said(other, 'vectors', count=n_other, is_bold=True)}. It answered surnames of the "
        "list that are not in the sentence in "
        f"{rate_said(matrix.wrongly_said(), 'chances', decimals=1)}."
        if other.n
        else f"Every name is put into every sentence, and the {_title_of(attack)} reads each "
        "vector."
    )
    st.markdown(MAP_TITLE)
    event = st.plotly_chart(
        name_map(
            [name.surname for name in matrix.rows],
            [name.surname for name in matrix.names],
            cells,
            notes=[_note(count) for count in found.training_counts],
            testable=found.is_testable.tolist(),
            chosen=state.chosen_cell(),
            is_dark=st.context.theme.type == "dark",
        ),
        key="names-map",
        on_select="rerun",
        selection_mode="points",
        config=chart_config("leakscope-names"),
        alt="How often each surname was read, a row for whose sentences and a column for the name "
        "put in; the table below holds the same numbers",
    )
    points = event.selection.points if event else []
    clicked = next((p["customdata"] for p in points if p.get("customdata")), None)
    if state.adopt_cell_click(tuple(clicked) if clicked else None):
        st.rerun()
    st.caption(
        "Below the name of a column: how many of the attack's training texts hold it. Hatched: it "
        "is not among the words that this attack can answer, so it is not testable by this attack. "
        "Click a cell, or choose it below, to see the words."
    )
    table = found.table()
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in table],
            key="names-table",
            hide_index=True,
        )
        save_csv(lambda: table_csv(table), "names", about="One row a cell. It holds the names.")


def _note(count: int) -> str:
    return f"{count:,}" if count else "not testable"


def cell_words(found: NameExperiment, request: NamesRequest) -> None:
    """Draw the choice of a cell, and what was read from each of its sentences."""
    matrix = found.substitution
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Sentences of",
            range(len(matrix.rows)),
            key=state.ROW_KEY,
            format_func=lambda i: matrix.rows[i].full,
            width=260,
            help="The row of the heat map: whose sentences they are",
        )
        st.selectbox(
            "with the name",
            range(len(matrix.names)),
            key=state.COLUMN_KEY,
            format_func=lambda i: matrix.names[i].full,
            width=260,
            help="The column of the heat map: the name that was put in",
        )
    row, column = state.chosen_cell()
    positions = matrix.rows_of(matrix.rows[row])
    rate = matrix.cell(matrix.rows[row], matrix.names[column])
    name = plain(matrix.names[column].surname)
    n_read = int(matrix.read[positions, column].sum())
    can = bool(found.is_testable[column])
    st.markdown(
        f"**{name}** was read from {rate_said(rate, 'sentences', count=n_read)}."
        if can
        else f"**{name}** is {NOT_TESTABLE}: it is not among the words that the attack can answer. "
        "The attackers with a list of names do test it."
    )
    attack = cache.opened(request.attack, ENCODER)
    guess = cache.guess(request.attack, ENCODER, False)
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
            st.html(markup.wrong_words(reading))
            is_read = bool(matrix.read[s, column])
            verdict = "● surname read" if is_read else "○ surname not read"
            st.caption(verdict if can else f"▨ surname {NOT_TESTABLE}")
    st.html(markup.legend(readings))
    if len(positions) > _MOST_SHOWN:
        st.caption(f"The first {_MOST_SHOWN} of {len(positions)} sentences are shown.")
