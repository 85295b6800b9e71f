"""The cards of a reading: the marked sentence, its scores, and what the attacker needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.assets import ROOT
from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.export import readings_csv, readings_json
from core.attacks.inversion.reading import Reading
from core.attacks.inversion.sentence import read_said, scored_said
from core.figures import inversion as figures
from core.language import NOT_ENGLISH, language_evidence
from core.names.discovery import likely_names
from core.protocols import Vectors
from core.studies.listed_summary import undefended_said
from core.text import numbers_of, revealing_words
from dashboard import cache, markup
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv, save_json
from dashboard.inversion import growing
from dashboard.inversion.cost import needs
from dashboard.names import state as names_state
from dashboard.state import is_presenting

__all__ = [
    "attack_header",
    "comparison",
    "downloads",
    "finding",
    "groups_said",
    "names_link",
    "reading_card",
    "score_row",
    "show_answer",
    "show_finding",
    "side_by_side",
    "strongest",
    "untested",
    "vector_panel",
]

_MOST_CARRIED = 6
_NAMES_PAGE = ROOT / "pages" / "names.py"


def finding(readings: Sequence[Reading]) -> tuple[str, str]:
    """Return the answer to the page's question, of the best reading, and what to hold it against.

    The two are Markdown without anything typed in it.
    """
    best = strongest(readings)
    by = f"By {INVERSION_ATTACKS[best.attack].title.lower()}, from the vector alone"
    what = read_said(best.n_recovered, len(best.targets), len(best.unknown))
    if not best.targets:
        return what, f"{by}: nothing could be scored."
    if len(readings) > 1:
        by = f"Best of {len(readings)} attacks: b{by[1:]}"
    beside = f"{by}. Guessing common words without the vector finds {best.n_guessed}"
    if best.n_recovered <= best.n_guessed:
        beside += ": no more than that was read, which is no evidence of safety"
    beside += "."
    if best.unread:
        beside += (
            f" The encoder cuts the text off: {len(best.unread)} different words stand only beyond "
            "what it reads, are not in the vector and were not tested."
        )
    return what, beside


def strongest(readings: Sequence[Reading]) -> Reading:
    """Return the reading that the page speaks of first."""
    return max(readings, key=lambda reading: reading.scores.f1)


def show_finding(slot: Any, readings: Sequence[Reading]) -> None:
    """Draw the finding into a place kept free for it, and what bounds it."""
    title, beside = finding(readings)
    slot.title(title, anchor=False)
    slot.markdown(beside)
    if language_evidence(readings[0].text).is_unlike_english:
        slot.warning(NOT_ENGLISH, icon=":material/translate:")
    elif told := untested(readings):
        slot.markdown(told)


def untested(readings: Sequence[Reading], *, is_defended: bool = False) -> str:
    """Return what kinds of words no attack shown could test, without naming any; empty for none.

    Of undefended vectors it says what a list finds; `is_defended` leaves that to who knows more.
    """
    unknown = frozenset.intersection(*(reading.unknown for reading in readings))
    revealing = revealing_words(readings[0].text) & unknown
    numbers = numbers_of(unknown)
    names, others = revealing - numbers, unknown - revealing - numbers
    kinds = (
        (len(names), "capitalised", "maybe names"),
        (len(numbers), "with digits", "parts of a number or an account"),
        (len(others), "other", "rare words"),
    )
    counted = [f"{n} {kind} ({about})" for n, kind, about in kinds if n]
    if not counted:
        return ""
    return (
        f"**Not tested**: {', '.join(counted)}. They are not on the attack's word list: treat "
        f"them as leaked. {'' if is_defended else undefended_said()}"
    ).rstrip()


def show_answer(slot: Any, readings: Sequence[Reading]) -> None:
    """Draw the sentence as the strongest attack read it, with what the marks mean."""
    best = strongest(readings)
    slot.html(markup.marked_sentence(best))
    slot.html(markup.legend([best]))


def names_link(readings: Sequence[Reading]) -> None:
    """Draw the way to the page of names, with the sentence, where a word not read may be a name.

    Names that were read or missed go there too: who has a list needs no word list. Numbers, e-mail
    addresses and accounts are no names: for them there is no such way. In a text of another
    language all words stand outside the list: there, two words with a capital in a row are taken
    for a name.
    """
    text = readings[0].text
    unknown = frozenset().union(*(reading.unknown for reading in readings))
    missed = frozenset.intersection(*(reading.missed for reading in readings))
    if language_evidence(text).is_unlike_english:
        unknown = missed = frozenset()
    names = [name.full for name in likely_names(text, unknown, missed)[:_MOST_CARRIED]]
    if not names or is_presenting():
        return
    others = cache.name_samples()["names"]
    if st.button(
        f"Test {plain(names[0])} as a name" if len(names) == 1 else f"Test {len(names)} names",
        key="test-names",
        icon=":material/badge:",
        type="tertiary",
        help="Opens the page of names with this sentence and what looks like a name in it, to be "
        "corrected there: which of some candidates is in a vector, a question that no list of "
        "words limits. The sentence stays in your session.",
        on_click=names_state.carry_sentence,
        args=(text, names, others),
    ):
        st.switch_page(_NAMES_PAGE)


def side_by_side(n: int) -> list[Any]:
    """Return places for n cards, two in a row; on a telephone they stack."""
    if n == 1:
        return [st.container()]
    return [place for _ in range(0, n, 2) for place in st.columns(2)][:n]


def attack_header(name: str) -> None:
    """Draw the title of an attack, with where it comes from."""
    entry = INVERSION_ATTACKS[name]
    st.subheader(entry.title, anchor=False, help=entry.summary)
    st.caption(entry.reference[:1].upper() + entry.reference[1:])


def reading_card(reading: Reading, *, with_sentence: bool = True) -> Callable[[], None]:
    """Draw what an attack read: sentence, wrong guesses, order, scores, and what it took.

    A lone reading's sentence stands under the headline already. Returns what draws the chart into
    the place kept for it. To be called when all words of the page are out: the browser needs most
    of a second to load the charts, and words need not wait.
    """
    if with_sentence:
        st.html(markup.marked_sentence(reading))
    if reading.recovery.sentence is not None:
        growing.read(reading)
    st.html(markup.wrong_words(reading))
    score_row(reading)
    is_listed = reading.recovery.words and reading.recovery.sentence is None
    if is_listed and INVERSION_ATTACKS[reading.attack].answers_in_order:
        st.html(markup.ordered_words(reading))
    place = st.container()
    needs(reading)
    return partial(_bars, reading, place)


def _bars(reading: Reading, place: Any) -> None:
    if reading.recovery.words:
        place.plotly_chart(
            figures.word_scores(reading),
            key=f"bars-{reading.attack}",
            config=chart_config(),
            alt=f"Score of each of the {len(reading.recovery.words)} words that "
            f"{INVERSION_ATTACKS[reading.attack].title} answered; {reading.n_recovered} are in "
            "the text",
        )


def score_row(reading: Reading) -> None:
    """Draw how many words were read, then F1, precision and recall, each above guessing.

    Where no word can be scored there is no score: zero would say that nothing leaks.
    """
    own, prior, is_scored = reading.scores, reading.prior, bool(reading.targets)
    with st.container(horizontal=True, gap="xsmall"):
        st.metric(
            "Words read",
            f"{reading.n_recovered} of {len(reading.targets)}" if is_scored else "–",
            f"guessing: {reading.n_guessed}" if is_scored else "not scored",
            delta_color="off",
            delta_arrow="off",
            width=112,
            help="How many different words of the text this attack named, of those that it can "
            "name. Below: the same for an attacker who never sees the vector.",
        )
        for title, value, guess, about in (
            ("F1", own.f1, prior.f1, "Precision and recall in one number (harmonic mean)"),
            (
                "Precision",
                own.precision,
                prior.precision,
                "Of the words answered, how many are in the text, in per cent",
            ),
            (
                "Recall",
                own.recall,
                prior.recall,
                "Of the words in the text that it can name, how many were answered, in per cent",
            ),
        ):
            st.metric(
                title,
                f"{value:.0f}" if is_scored else "–",
                f"guessing: {guess:.0f}" if is_scored else "not scored",
                delta_color="off",
                delta_arrow="off",
                width=98,
                help=f"{about}. Below: the same for an attacker who never sees the vector and "
                "always answers the most frequent words.",
            )
    if not is_scored:
        st.markdown("None of its words is in this attack's list: **cannot be scored**.")
    else:
        st.caption(groups_said([reading]))


_CAPITALS = "words with a capital (the first aside)"
"""What counts as a name; in one sentence everybody sees that some are none."""


def groups_said(readings: Sequence[Reading]) -> str:
    """Return what was read of names, numbers and rare words, and how many could not be named."""
    told = []
    for title in readings[0].groups:
        shown = _CAPITALS if title == "names" else title
        counts = [reading.groups[title] for reading in readings]
        n_read, n = (sum(column) for column in zip(*counts, strict=True))
        n_unnamed = sum(reading.unnamed.get(title, 0) for reading in readings)
        what = f"{n_read} of {n}" if n else ("not tested" if n_unnamed else "none there")
        told.append(f"{shown} {what}{f' ({n_unnamed} cannot be named)' if n_unnamed else ''}")
    said = f"Read of {', of '.join(told)}."
    n_named, n_unknown = (
        sum(map(len, words))
        for words in ([r.targets for r in readings], [r.unknown for r in readings])
    )
    counted = f"{said} The scores count {scored_said(n_named, n_unknown)}"
    if not n_unknown:
        return f"{counted}."
    counted += ", which is no evidence of safety"
    f1 = readings[0].all_words_f1
    return f"{counted}; with these as missed, F1 {f1:.0f}." if len(readings) == 1 else f"{counted}."


def comparison(readings: Sequence[Reading]) -> None:
    """Draw the attacks' scores beside each other and beside pure guessing."""
    told = ", ".join(
        f"{INVERSION_ATTACKS[r.attack].title} {f'{r.scores.f1:.0f}' if r.targets else 'not scored'}"
        for r in readings
    )
    st.plotly_chart(
        figures.scores_beside_prior(readings),
        key="comparison",
        config=chart_config(),
        alt=f"F1 by attack: {told}; guessing alone reaches {readings[0].prior.f1:.0f}",
    )


def vector_panel(
    vector: Vectors, *, lead: str = "This is all the attacker has: ", key: str = "vector"
) -> None:
    """Draw the embedding: all that the attacker has."""
    low, high = float(vector.min()), float(vector.max())
    st.html(markup.label(f"{lead}{vector.size} numbers"))
    st.plotly_chart(
        figures.vector_strip(vector),
        key=key,
        config=chart_config(has_bar=False),
        alt=f"The embedding as {vector.size} coloured cells from {low:.2f} to {high:.2f}",
    )


def downloads(readings: Sequence[Reading]) -> None:
    """Draw the buttons that save the readings."""
    save_json(
        lambda: readings_json(readings),
        "inversion",
        about="All of it, for programs: words, scores, baseline, cost. It holds your sentence.",
    )
    save_csv(
        lambda: readings_csv(readings),
        "inversion",
        about="One row a word, for spreadsheets. It holds your sentence.",
    )
