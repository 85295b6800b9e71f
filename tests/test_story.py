"""Stories as files: what was pinned comes back, and what is hostile is refused or plain text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import plotly.graph_objects as go
import pytest

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.findings.drawing import checked_figure, plain_figure
from leakscope.core.findings.finding import RESTS_ON, Finding, Table
from leakscope.core.findings.prose import Run, parse_blocks, plain_blocks
from leakscope.core.findings.registry import VIEWS, build_view
from leakscope.core.pages import PAGES
from leakscope.core.story.deck import live_address, make_deck
from leakscope.core.story.format import KIND, VERSION, Pin, Story
from leakscope.core.story.reading import (
    MOST_BYTES,
    MOST_PINS,
    parse_story,
    read_story,
    story_from_data,
)
from leakscope.core.story.shipped import STORIES, open_story, shipped_stories

ROOT = Path(__file__).parents[1]


def seen() -> Finding:
    return Finding(
        title="6 of 10 words read",
        body="By **one** attack.",
        sentence=(("Berlin", "recovered"), (" ", "between words")),
        figure=plain_figure(go.Figure(go.Bar(x=[1.5, 2.0], y=["<b>a</b>", "c"]))),
        alt="two bars",
        table=Table(columns=("Attack", "F1"), rows=(("msp", "45 [43, 47]"),)),
        facts=(("n", "500 sentences"), ("Attacker", "MSP")),
        caveat="One sentence.",
        commands=("python -m core list",),
    )


def whole() -> Story:
    pin = Pin(
        page="inversion",
        parameters=(("attack", "msp"), ("text", "a&b=c")),
        heading="Mine",
        remark="A remark",
        notes="Say it",
        slide=seen(),
    )
    rows = Pin(page="tradeoff", shows="defences", parameters=(("task", "TREC"),))
    return Story(title="A story", audience="a board", minutes=10, pins=(pin, rows))


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(whole().to_dict()))
    return found


def test_a_story_of_the_first_version_opens_for_ever() -> None:
    """The file is never written anew: what people saved with it has to open."""
    found = read_story(ROOT / "tests" / "stories" / "version_1.json")
    assert found == whole() and found.lacks == ()
    (page, rows) = make_deck(found, "2026-03-01").pages
    assert (page.heading, page.finding) == ("Mine", "6 of 10 words read")
    assert page.table == seen().table and page.facts == seen().facts and page.figure
    assert page.legend == (("recovered", "recovered"),)
    assert "cannot be shown" not in rows.heading


def test_a_story_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps(stored()), encoding="utf-8")
    assert read_story(path) == whole()


def test_every_page_can_be_pinned_and_no_other() -> None:
    assert set(PAGES) == {p.stem for p in (ROOT / "pages").glob("*.py")}
    assert {view.page for view in VIEWS.values()} <= set(PAGES)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"kind": "something"}, "leakscope-story"),
        ({"version": VERSION + 1}, "newer Leakscope"),
        ({"version": True}, "version"),
        ({"version": 0}, "version"),
        ({"minutes": 1e9}, "minutes"),
        ({"title": "x" * 301}, "title"),
        ({"title": 5}, "title"),
        ({"pins": {}}, "pins"),
        ({"pins": [{}] * (MOST_PINS + 1)}, "pins"),
        ({"pins": [None]}, "Slide 1"),
        ({"pins": [{"page": "../../etc/passwd", "shows": "news"}]}, "page"),
        ({"pins": [{"page": "inversion"}]}, "Slide 1"),
        ({"pins": [{"page": "inversion", "shows": "news", "is_live": "no"}]}, "is_live"),
        ({"pins": [{"page": "inversion", "shows": "../news"}]}, "Slide 1"),
        ({"pins": [{"page": "inversion", "shows": "news", "parameters": [["a"]]}]}, "parameters"),
        (
            {
                "pins": [
                    {
                        "page": "inversion",
                        "slide": {"title": "a", "table": {"columns": ["a"], "rows": [["1", "2"]]}},
                    }
                ]
            },
            "table",
        ),
    ],
)
def test_what_is_no_story_is_refused_with_the_part_that_is_wrong(
    change: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(InvalidInputError, match=wrong):
        story_from_data({**stored(), **change})


def test_what_is_no_json_or_too_large_is_refused(tmp_path: Path) -> None:
    for content in (b"\xff\xfe", b"{", b"[" * 100_000, b'{"a": ' + b"9" * 9000 + b"}"):
        with pytest.raises(ArtifactError):
            parse_story(content)
    large = tmp_path / "large.json"
    with large.open("wb") as out:
        out.truncate(MOST_BYTES + 1)
    with pytest.raises(ArtifactError, match="bytes"):
        read_story(large)
    with pytest.raises(ArtifactError, match="does not exist"):
        read_story(tmp_path / "none.json")


def test_what_turns_letters_around_or_controls_a_terminal_is_left_out() -> None:
    found = story_from_data({**stored(), "title": "a\u202eb\x1b[31mc\u0000"})
    assert found.title == "ab[31mc"


@pytest.mark.parametrize(
    ("figure", "wrong"),
    [
        ({"data": [{"type": "scattergeo"}]}, "scattergeo"),
        ({"data": [{"type": "image", "source": "http://a.example/x.png"}]}, "image"),
        ({"data": [], "layout": {"images": [{"source": "http://a.example/x.png"}]}}, "images"),
        ({"data": [], "layout": {"mapbox": {}}}, "mapbox"),
        ({"data": [], "layout": {"updatemenus": []}}, "updatemenus"),
        ({"data": [{"type": "bar", "x": [[[[[[[[[[[[[1]]]]]]]]]]]]]}]}, "nested"),
        ({"data": [{"type": "bar", "x": [0] * 200_001}]}, "large"),
        ({"data": [{"type": "bar", "name": "x" * 4_001}]}, "characters"),
        ({"data": [{"type": "bar", "x": {"bdata": "<script>"}}]}, "Base64"),
        ({"data": [{"type": "histogram", "x": [1], "nbinsx": 10**9}]}, "histogram"),
        ({"data": [{"type": "bar", "x": [0] * 20_001}]}, "too large to draw"),
        ({"data": [{"x": [0] * 11_000}, {"x": [0] * 11_000}]}, "too large to draw"),
        ({"data": [{"x": {"dtype": "i1", "bdata": "AAAA" * 7_000}}]}, "too large to draw"),
        ({"data": [{"x": {"dtype": "O", "bdata": "AAAA"}}]}, "does not match its stated type"),
        ({"data": [{"x": {"bdata": "AAAA"}}]}, "does not match its stated type"),
        ({"data": [], "layout": {"annotations": [{"text": "a"}] * 1_001}}, "too large to draw"),
        ({"data": [], "layout": {"height": 1e9}}, "too large to draw"),
        ({"data": [], "layout": {"xaxis": {"rangebreaks": [{"dvalue": 1e-9}]}}}, "rangebreaks"),
        ({"data": "bar"}, "list"),
        ([], "list"),
    ],
)
def test_a_figure_that_could_load_or_run_something_is_refused(figure: Any, wrong: str) -> None:
    with pytest.raises(InvalidInputError, match=wrong):
        checked_figure(figure)


@pytest.mark.parametrize(
    ("axis", "x", "kept"),
    [
        ({"dtick": 1, "tick0": 0}, [0, 12], {"dtick": 1, "tick0": 0}),
        ({"dtick": 1e-9, "tick0": 0}, [0, 12], {}),
        ({"dtick": 1}, [0, 1e9], {}),
        ({"dtick": 25, "range": [0, 100]}, [1], {"dtick": 25, "range": [0, 100]}),
        ({"dtick": 25, "range": [0, 1e9]}, [1], {"range": [0, 1e9]}),
        ({"dtick": 1}, ["0001-01-01", "9999-12-31"], {}),
        ({"dtick": 1, "type": "log"}, [1, 1e300], {"dtick": 1, "type": "log"}),
        ({"dtick": "L1e-300", "type": "log"}, [1, 9], {"type": "log"}),
        ({"dtick": -1}, [0, 12], {}),
        ({"minor": {"dtick": 1e-9}}, [0, 12], {"minor": {}}),
        ({"minor": {"dtick": "D1"}, "type": "log"}, [1], {"minor": {"dtick": "D1"}, "type": "log"}),
        ({"nticks": 5}, [0, 12], {"nticks": 5}),
        ({"nticks": 10**9}, [0, 12], {}),
    ],
)
def test_an_axis_has_no_more_ticks_than_can_be_drawn(axis: Any, x: Any, kept: Any) -> None:
    chart = {"type": "bar", "x": x, "y": [1]}
    layout = {"xaxis": axis, "scene2": {"xaxis": axis}}
    found = checked_figure({"data": [chart], "layout": layout})["layout"]
    assert found == {"xaxis": kept, "scene2": {"xaxis": kept}}


def test_marks_in_texts_of_a_figure_are_those_that_plotly_needs() -> None:
    name = '<b>a</b> <a href="http://a.example">b</a> <img src=x onerror=alert(1)> R&D &lt;'
    (trace,) = checked_figure({"data": [{"type": "bar", "name": name}]})["data"]
    assert trace["name"] == (
        '<b>a</b> &lt;a href="http://a.example">b&lt;/a> '
        "&lt;img src=x onerror=alert(1)> R&amp;D &lt;"
    )


def test_a_figure_of_ours_is_taken_as_it_is() -> None:
    figure = go.Figure(go.Scatter(x=[1, 2], y=[3.5, float("nan")], name="a<br>b"))
    figure.update_layout(title="<b>t</b>", legend={"orientation": "h"})
    found = plain_figure(figure)
    assert found["data"][0]["name"] == "a<br>b"
    assert found["data"][0]["y"] in ([3.5, None], {"dtype": "f8", "bdata": found["data"][0]["y"]})
    assert "template" not in found["layout"]


def test_findings_are_read_as_the_pages_write_them() -> None:
    found = parse_blocks("One **bold** and `code`, a\\_b\\*.\n\n- first\n- second\nline\n\nlast")
    assert [block.text for block in found] == [
        "One bold and code, a_b*.",
        "first",
        "second line",
        "last",
    ]
    assert [block.is_item for block in found] == [False, True, True, False]
    assert found[0].runs[1:4] == (Run("bold", True), Run(" and "), Run("code", False, True))


def test_what_people_type_has_no_marks() -> None:
    assert plain_blocks("**a**\n\n - b ")[0].runs == (Run("**a**"),)
    assert [block.is_item for block in plain_blocks("- a\n- b")] == [False, False]


def test_a_pin_opens_where_it_was_pinned() -> None:
    mine, rows = whole().pins
    assert live_address(mine) == "/inversion?attack=msp&text=a%26b%3Dc"
    assert live_address(rows) == "/tradeoff?task=TREC"
    assert live_address(Pin(page="nowhere", slide=seen())) == ""


def test_a_mechanism_opens_at_the_eta_that_its_slide_names() -> None:
    """The page knows no parameter `defence`: it would open at a setting of another."""
    asked = (("defence", "text_to_text"), ("task", "MR"))
    pin = Pin(page="tradeoff", shows="mechanism", parameters=asked)
    (page,) = make_deck(Story(title="t", pins=(pin,)), "2026-03-01").pages
    named = re.search(r"leaks significantly less up to η ([^\s,]+),", page.heading)
    assert named
    kept = dict(parse_qsl(urlsplit(page.live).query))
    assert kept == {"task": "MR", "point": f"text_to_text:eta={named[1]}"}


def test_a_view_that_there_is_not_leaves_a_slide_that_says_so() -> None:
    pins = (
        Pin(page="inversion", shows="nonsense"),
        Pin(page="inversion", shows="news", parameters=(("attack", "/etc/passwd"),)),
        Pin(page="tradeoff", shows="defences", parameters=(("task", "/etc/passwd"),)),
    )
    deck = make_deck(Story(title="t", pins=pins), "2026-01-01")
    assert len(deck.pages) == len(deck.lacks) == 3
    assert all("cannot be shown" in page.heading for page in deck.pages)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_tells_what_a_number_rests_on(name: str) -> None:
    slide = build_view(name, {})
    facts = dict(slide.facts)
    assert slide.title and slide.caveat
    assert [fact for fact in RESTS_ON if not facts.get(fact, "").strip()] == []
    if name in ("remedies", "words"):  # those that measure nothing, and say so
        assert "not measurements" in facts["Data"]
        assert not re.search(r"\d", slide.body.replace("F1", ""))
        return
    assert slide.commands
    assert slide.figure is None or slide.alt
    assert slide.figure is not None or slide.table is not None or slide.sentence
    if name == "pages":  # there each row of the table has its own
        assert slide.table is not None and {"n", "Texts", "Attacker"} <= set(slide.table.columns)
        return
    assert re.search(r"Python \d.*torch \d.*transformers \d", facts["Versions"])


@pytest.mark.slow
def test_slides_of_a_story_do_not_contradict_each_other_on_what_is_recovered() -> None:
    deck = make_deck(open_story("safe-to-store"), "2026-01-01")
    texts = [" ".join(block.text for block in (*p.body, *p.caveat)) for p in deck.pages]
    assert any("word for word" in text for text in texts)
    denied = re.compile(
        r"not (in )?their order|words only|only words|no sentences?\b", re.IGNORECASE
    )
    assert [text for text in texts if denied.search(text)] == []
    assert any("another attack, reconstruction, recovers whole sentences" in text for text in texts)


def test_a_view_refuses_what_it_does_not_have() -> None:
    for name, parameters in (
        ("defences", {"keep": "5"}),
        ("defences", {"task": "none"}),
        ("mechanism", {"defence": "int8"}),
        ("encoders", {"domain": "../x"}),
        ("shipped", {"attack": "msp"}),
        ("nonsense", {}),
    ):
        with pytest.raises(InvalidInputError):
            build_view(name, parameters)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(shipped_stories()))
def test_a_story_that_ships_types_no_number(name: str) -> None:
    found = json.loads((STORIES / f"{name}.json").read_text(encoding="utf-8"))
    assert found["kind"] == KIND
    for pin in found["pins"]:
        assert "slide" not in pin
        texts = [pin.get(part, "") for part in ("heading", "remark", "notes")]
        assert not any(letter.isdigit() for letter in "".join(texts))
        assert pin.get("notes")
    deck = make_deck(open_story(name), "2026-01-01")
    assert deck.lacks == ()
    assert len(deck.pages) >= 5


def test_three_stories_ship_and_another_name_is_refused() -> None:
    assert len(shipped_stories()) == 3
    with pytest.raises(InvalidInputError, match="safe-to-store"):
        open_story("safe-to-stor")
