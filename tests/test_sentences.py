from __future__ import annotations

import doctest
import time

import pytest
import sentencex
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.core.corpora import nltk_corpora, sentences, wikipedia
from leakscope.core.corpora.nltk_corpora import paragraphs_of_lines
from leakscope.core.corpora.sentences import MAX_SEGMENT_CHARACTERS, sentence_spans, split_sentences
from leakscope.core.corpora.wikipedia import article_paragraphs

LONG = "It began here and " + "went on and on " * 12 + "until noon"


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Ada met J. R. R. Tolkien.", "They had tea."],
        ["It costs 3.50 euros, i.e. too much.", "Buy it anyway!"],
        ["He moved to the U.S. in 1999.", "Was it wise?", "Perhaps."],
        ['"Stop. Wait!" she said.', "Nobody did."],
        ["See www.example.org for more.", "Then write to us."],
        ["It is (as she said. Twice.) over.", "Go home."],
        ["one thing happened.", "then another did."],
    ],
    ids=lambda e: e[0][:20],
)
def test_sentences_are_cut_where_a_reader_would(expected: list[str]) -> None:
    assert split_sentences(" ".join(expected)) == expected


def test_italian_abbreviations_need_italian_rules() -> None:
    text = "Il dott. Rossi è arrivato. Era tardi."
    assert split_sentences(text, "it") == ["Il dott. Rossi è arrivato.", "Era tardi."]
    assert len(split_sentences(text, "en")) == 3


def test_an_unknown_language_is_cut_by_the_english_rules() -> None:
    assert split_sentences("Dr. Ada came. She sat.", "xx") == ["Dr. Ada came.", "She sat."]


def test_only_an_empty_line_ends_a_sentence() -> None:
    text = "A heading\n \r\nA line\nthat is\twrapped.\n\n\n\nThe end"
    assert split_sentences(text) == ["A heading", "A line that is wrapped.", "The end"]


@pytest.mark.parametrize("pair", ["()", '""', "“”", "[]"])
def test_a_quotation_of_many_sentences_is_not_one_sentence(pair: str) -> None:
    text = f"{pair[0]}{LONG}. {LONG}. {LONG}{pair[1]}."
    assert len(sentencex.segment("en", text)) == 1
    assert split_sentences(text) == [f"{pair[0]}{LONG}.", f"{LONG}.", f"{LONG}{pair[1]}."]


def test_a_short_quotation_stays_whole() -> None:
    text = '"She came. She saw." It was over.'
    assert split_sentences(text) == ['"She came. She saw."', "It was over."]


def test_an_apostrophe_stays_within_its_word_when_a_segment_is_split_again() -> None:
    text = f"({LONG}, wasn't it the dog's. {LONG})."
    assert split_sentences(text) == [f"({LONG}, wasn't it the dog's.", f"{LONG})."]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \r\n \n"])
def test_nothing_to_split(text: str) -> None:
    assert split_sentences(text) == []


def test_a_lone_surrogate_and_a_null_byte_do_not_stop_the_splitter() -> None:
    assert split_sentences("One \ud800 two. Three\0 four.") == ["One \ud800 two.", "Three\0 four."]


@pytest.mark.parametrize(
    "unit", ["word ", "a", ".", "Mr. ", "(", '"a. ', "“A. ", "(\"a. ' [", "\n", "\r\n\r\n", "。"]
)
def test_hostile_text_is_split_in_bounded_time_and_loses_nothing(unit: str) -> None:
    text = (unit * 300_000)[:300_000]
    start = time.process_time()
    spans = sentence_spans(text)
    assert time.process_time() - start < 4.0  # 0.6 s; the splitter alone needs 9 s for open quotes
    assert "".join(text[a:b] for a, b in spans) == text
    assert max(b - a for a, b in spans) <= MAX_SEGMENT_CHARACTERS


def test_a_long_paragraph_is_cut_between_words() -> None:
    text = "word " * 5_000
    assert {w for s in split_sentences(text) for w in s.split()} == {"word"}


@settings(deadline=None)  # a busy machine is no fault
@given(st.text(alphabet="aB1 .!?\"'()[]“”«»\n\r\t,;é。\u2028\ue000", max_size=400))
def test_spans_follow_each_other_and_cover_the_text(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join(text[a:b] for a, b in spans) == text
    assert all(a < b for a, b in spans)
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("module", [sentences, wikipedia, nltk_corpora], ids=lambda m: m.__name__)
def test_examples_in_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("he said , `` well '' ; it 's 5 % .", 'he said, "well"; it\'s 5%.'),
        ('a " fantasy " world ( of sorts ) !', 'a "fantasy" world (of sorts)!'),
        ("by Ivan Allen Jr. .", "by Ivan Allen Jr."),
        ("who knows . . .", "who knows..."),
        ("why ? ?", "why?"),
    ],
)
def test_tokens_become_prose(tokens: str, expected: str) -> None:
    assert nltk_corpora.detokenise(tokens.split()) == expected


def test_wrapped_lines_are_one_paragraph_and_long_lines_are_one_each() -> None:
    long = "A line nobody wrapped, " + "since it is long, " * 6 + "as one sees."
    assert paragraphs_of_lines("One two\nthree four.\n") == "One two\nthree four."
    assert paragraphs_of_lines(f"Heading\n{long}\n") == f"Heading\n\n{long}"


def test_tokenised_lines_are_joined() -> None:
    assert paragraphs_of_lines("plain , he said , and simple .") == "plain, he said, and simple."


def prose(markup: str) -> list[str]:
    return list(article_paragraphs(markup))


def test_markup_becomes_prose() -> None:
    markup = (
        "{{Infobox|name={{lang|fr|Ada}}|size=3}}\n"
        "'''Ada''' met [[Charles Babbage|Babbage]] in [[London]].<ref name=a>Moore, p. 3.</ref>\n"
        "[[File:Ada.jpg|thumb|A [[portrait]] of her.]]\n"
        "== Life ==\n"
        "* A list is not prose.\n"
        "{| class=wikitable\n|-\n| A table cell.\n|}\n"
        "It was {{convert|5|km}} away &ndash; &quot;far&quot;, she wrote.<!-- hidden. -->\n"
        "[[Category:People]]\n"
        "A line without an end\n"
    )
    assert prose(markup) == [
        "Ada met Babbage in London.",
        'It was 5 km away – "far", she wrote.',
    ]


def test_a_sentence_that_lost_something_is_left_out() -> None:
    markup = "Here is <math>x^2</math> in a row. This one is whole. {{IPA|a}} is a sound. So is b."
    assert prose(markup) == ["This one is whole. So is b."]


def test_a_note_after_a_stop_is_no_loss() -> None:
    markup = "It is so.{{citation needed|date=May}} It is not,{{sfn|Ada}} said the other."
    assert prose(markup) == ["It is so. It is not, said the other."]


def test_markup_that_is_never_closed_ends() -> None:
    assert prose("{{" * 500 + "Text [[" * 500 + "{|" * 100 + ".") == []
