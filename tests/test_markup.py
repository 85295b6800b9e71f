from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from example_reading import READING
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leakscope.core.attacks.inversion.reading import Mark
from leakscope.core.results import RecoveredWord, Recovery, Sentence
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.errors import plain

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt; & 'quotes' \"double\"",
    ":red[not red] $x^2$ **bold** [link](javascript:alert(1))",
    "\u202eright to left",
]


class Visible(HTMLParser):
    """Collects the tags of a page and the text outside hidden parts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._hidden = ("class", "ls-hidden") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def parsed(html: str) -> Visible:
    page = Visible()
    page.feed(html)
    return page


@pytest.mark.parametrize("text", NASTY)
def test_nothing_typed_becomes_markup(text: str) -> None:
    reading = replace(READING, pieces=((text, Mark.RECOVERED), (text, Mark.BETWEEN)))
    page = parsed(markup.marked_sentence(reading))
    assert page.tags == {"p", "mark"}
    assert page.attributes <= {"class", "dir", "title"}
    assert page.text == text * 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.text(), st.sampled_from(Mark))))
def test_the_sentence_is_shown_as_it_was_typed(pieces: list[tuple[str, Mark]]) -> None:
    page = parsed(markup.marked_sentence(replace(READING, pieces=tuple(pieces))))
    assert page.text == "".join(piece for piece, _ in pieces)
    assert page.tags <= {"p", "mark", "span"}


def test_answered_words_are_escaped_too() -> None:
    word = RecoveredWord("<b>bold</b>", 1.0)
    reading = replace(READING, wrong=(word,), recovery=Recovery((word,)))
    for html in (markup.wrong_words(reading), markup.ordered_words(reading)):
        assert "b" not in parsed(html).tags and "<b>bold</b>" in parsed(html).text


def test_screen_readers_are_told_what_the_marks_say() -> None:
    html = markup.marked_sentence(READING)
    assert "Recovered: minister. Missed: said." in html
    assert [
        w.split("<")[0]
        for w in re.findall(r'ls-wrong"[^>]*>([^<]*<)', markup.ordered_words(READING))
    ] == ["-1+1"]


def test_words_that_cannot_be_scored_are_neither_recovered_nor_missed() -> None:
    html = markup.marked_sentence(replace(READING, pieces=(("שלום", Mark.UNKNOWN),)))
    assert "None of its words can be scored" in html and "vocabulary: שלום" in html
    assert "Recovered" not in html and "Missed" not in html


def test_no_wrong_guess_is_said_to_be_none() -> None:
    assert "The attacker gave no wrong word" in markup.wrong_words(replace(READING, wrong=()))


def test_messages_are_shown_without_their_markdown() -> None:
    assert plain("a\n:red[b] $x$ <c>") == r"a \:red\[b\] \$x\$ \<c\>"


@pytest.mark.parametrize("text", NASTY)
def test_a_passage_is_marked_where_it_is_told_and_nowhere_else(text: str) -> None:
    page = parsed(markup.marked_passage(text, [(2, 5)], 'the "canary"'))
    assert page.text == text and page.tags == {"p", "mark"}
    assert page.attributes <= {"class", "dir", "title"}
    assert parsed(markup.marked_passage(text, [], "x")).tags == {"p"}


def test_a_sentence_that_was_read_marks_right_words_and_right_order() -> None:
    reading = replace(
        READING,
        text="The old doctor lost <b> his violin",
        recovery=Recovery((), sentence=Sentence("his violin, lost <i> doctor. old cat", 0.93)),
    )
    drawn = markup.reconstructed_sentence(reading)
    assert "cosine 0.930" in drawn
    assert '<u><mark class="ls-hit" title="in the text, first or after the same word">' in drawn
    assert '<mark class="ls-hit" title="in the text">doctor</mark>' in drawn
    assert "<u><mark" in drawn and drawn.count("<u>") == 1
    assert "5 of its 6 words are in the text, 1 of them first or after the same word" in drawn
    whole = markup.scored_sentence("The old, old cat", "the old cat")
    assert whole.count("<u>") == 3, "what begins the text is in its place; once too often is wrong"
    assert "3 of its 4 words are in the text, 3 of them first or after the same word" in whole
    assert "&lt;i&gt;" in drawn and "<i>" not in drawn and " cat" in drawn
    assert markup.reconstructed_sentence(replace(reading, recovery=Recovery(()))) == ""
    assert "Confidence in" not in drawn
    sure = Sentence("his <i>", 0.9, 0.31, words=(RecoveredWord("<i>", 0.725),))
    told = markup.reconstructed_sentence(replace(reading, recovery=Recovery((), sentence=sure)))
    assert "31 % of such sentences are right word for word" in told and "&lt;i&gt; 72 %" in told
