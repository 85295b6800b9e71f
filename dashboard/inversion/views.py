"""The cards of the inversion page: marked sentence, scores and cost of each reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from leakscope.core.assets import ROOT
from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.export import readings_csv, readings_json
from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.attacks.inversion.sentence import describe_scored
from leakscope.core.figures import inversion as figures
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.findings.reading import strongest
from leakscope.core.formatting import join_words
from leakscope.core.language import language_evidence
from leakscope.core.names.discovery import likely_names
from leakscope.core.protocols import Vectors
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import sentence_progress
from leakscope.dashboard.inversion.cost import show_cost
from leakscope.dashboard.names import state as names_state
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv, save_json
from leakscope.dashboard.ui.state import is_presenting

_MOST_CARRIED = 6
_NAMES_PAGE = ROOT / "pages" / "names.py"


def show_answer(slot: Any, readings: Sequence[Reading]) -> None:
    """Draw the sentence with its words marked by the strongest reading, and a legend."""
    best = strongest(readings)
    slot.html(markup.marked_sentence(best))
    slot.html(markup.legend([best]))


def names_link(readings: Sequence[Reading]) -> None:
    """Draw a button that opens the names page with the sentence's possible names.

    Includes recovered and missed names, since an attacker with a list of names needs no vocabulary.
    Leaves out numbers, e-mail addresses and accounts. In a text of another language, where all
    words are outside the vocabulary, two capitalised words in a row count as a name.
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
        help="Opens the page Names with this sentence and the words that look like names; you can "
        "correct them there. It tests which of some candidate names is in a vector, without a "
        "vocabulary. The sentence stays in your session.",
        on_click=names_state.carry_sentence,
        args=(text, names, others),
    ):
        st.switch_page(_NAMES_PAGE)


def card_columns(n: int) -> list[Any]:
    """Create and return n containers for cards, two in a row."""
    if n == 1:
        return [st.container()]
    return [place for _ in range(0, n, 2) for place in st.columns(2)][:n]


def attack_header(name: str) -> None:
    """Draw the title and reference of a named attack."""
    entry = INVERSION_ATTACKS[name]
    st.subheader(entry.title, anchor=False, help=entry.summary)
    reference = "made for Leakscope" if entry.reference == "ours" else entry.reference
    st.caption(reference[:1].upper() + reference[1:])


def reading_card(reading: Reading, *, with_sentence: bool = True) -> Callable[[], None]:
    """Draw a reading's sentence, wrong answers, scores, cost; return a function for its chart.

    `with_sentence` is False for a single reading, whose sentence is below the headline. Call the
    returned function after the page's text: charts take the browser almost a second to load.
    """
    if with_sentence:
        st.html(markup.marked_sentence(reading))
    if reading.recovery.sentence is not None:
        sentence_progress.show_sentence(reading)
    st.html(markup.wrong_words(reading))
    score_row(reading)
    is_listed = reading.recovery.words and reading.recovery.sentence is None
    if is_listed and INVERSION_ATTACKS[reading.attack].answers_in_order:
        st.html(markup.ordered_words(reading))
    place = st.container()
    show_cost(reading)
    return partial(_score_chart, reading, place)


def _score_chart(reading: Reading, place: Any) -> None:
    """Draw the bar chart of the answered words' scores."""
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
    """Draw a reading's recovered words, F1, precision and recall, each beside guessing.

    Without a word to score there is no score: a zero would suggest that nothing leaks.
    """
    own, prior, is_scored = reading.scores, reading.prior, bool(reading.targets)
    with st.container(horizontal=True, gap="xsmall"):
        st.metric(
            "Recovered",
            f"{reading.n_recovered} of {len(reading.targets)}" if is_scored else "–",
            f"guessing: {reading.n_guessed}" if is_scored else "not scored",
            delta_color="off",
            delta_arrow="off",
            width=112,
            help="How many different words of the text this attack recovered, out of those in its "
            "vocabulary. Below: the same for an attacker who never sees the vector.",
        )
        for title, value, guess, about in (
            ("F1", own.f1, prior.f1, "The harmonic mean of precision and recall"),
            (
                "Precision",
                own.precision,
                prior.precision,
                "The percentage of the attack's answers that are in the text",
            ),
            (
                "Recall",
                own.recall,
                prior.recall,
                "The percentage recovered of the words of the text in the attack's vocabulary",
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
        st.markdown("The attack's vocabulary contains no word of the text: **not tested**.")
    else:
        st.caption(describe_groups([reading]))


_CAPITALS = "capitalised words"
_FIRST = "the first word does not count"
"""What counts as a name."""
_MOST_LISTED = 5
"""The most words of a group that are named."""


def describe_groups(readings: Sequence[Reading]) -> str:
    """Describe how many names, numbers and rare words were recovered or untestable, in Markdown."""
    recovered: list[str] = []
    untested: list[str] = []
    absent: list[str] = []
    texts = "The text contains" if len(readings) == 1 else "The texts contain"
    for title in readings[0].groups:
        shown = _CAPITALS if title == "names" else title
        counts = [reading.groups[title] for reading in readings]
        n_read, n = (sum(column) for column in zip(*counts, strict=True))
        n_unnamed = sum(reading.unnamed.get(title, 0) for reading in readings)
        if n:
            notes = [_list_words(readings[0], title)] if len(readings) == 1 else []
            notes += [_FIRST] * (title == "names")
            told = "; ".join(filter(None, notes))
            recovered.append(f"{n_read} of {n} {shown}{told and f' ({told})'}")
        if n_unnamed:
            untested.append(f"{n_unnamed} of the {shown}")
        if not n and not n_unnamed:
            absent.append(shown)
    sentences = [
        f"The attack recovered {join_words(recovered)}." if recovered else "",
        f"The attack cannot name {join_words(untested)} (not tested)." if untested else "",
        f"{texts} no {' and no '.join(absent)}." if absent else "",
    ]
    n_named, n_unknown = (
        sum(map(len, words))
        for words in ([r.targets for r in readings], [r.unknown for r in readings])
    )
    if not n_unknown:
        return " ".join(filter(None, sentences))
    scored = f"The scores count {describe_scored(n_named, n_unknown)}"
    counted = " ".join(filter(None, [*sentences, scored]))
    counted += ", which are untested"
    f1 = readings[0].all_words_f1
    missed = f" With these words counted as missed, F1 would be {f1:.0f}."
    return f"{counted}.{missed if len(readings) == 1 else ''}"


def _list_words(reading: Reading, title: str) -> str:
    """List the words of a group as the text has them; "" if there are too many."""
    words = reading.grouped[title]
    found = dict.fromkeys(piece for piece, _ in reading.pieces if piece.lower() in words)
    return plain(", ".join(found)) if len(found) <= _MOST_LISTED else ""


def comparison_chart(finding: Finding) -> None:
    """Draw the figure of a finding that compares the attacks' scores with guessing."""
    st.plotly_chart(finding.figure, key="comparison", config=chart_config(), alt=finding.alt)


def vector_panel(
    vector: Vectors, *, lead: str = "What the attacker sees of the text: ", key: str = "vector"
) -> None:
    """Draw the vector as a strip of coloured cells."""
    low, high = float(vector.min()), float(vector.max())
    st.html(markup.label(f"{lead}{vector.size} numbers"))
    st.plotly_chart(
        figures.vector_strip(vector),
        key=key,
        config=chart_config(has_bar=False),
        alt=f"The embedding as {vector.size} coloured cells, from {low:.2f} to {high:.2f}",
    )


def downloads(readings: Sequence[Reading]) -> None:
    """Draw the buttons that download the readings as JSON and CSV."""
    save_json(
        lambda: readings_json(readings),
        "inversion",
        about="Words, scores, baseline and cost, for programs. It contains your sentence.",
    )
    save_csv(
        lambda: readings_csv(readings),
        "inversion",
        about="One row per word, for spreadsheets. It contains your sentence.",
    )
