"""Reports: one HTML document that fetches nothing, and the command that writes it."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from leakscope.core.findings.drawing import plain_figure
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.storage.artifacts import write_json
from leakscope.core.story.deck import Deck, make_deck
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.html import html_report
from leakscope.core.story.shipped import open_story

EVIL = '"><script>alert(1)</script><img src="http://a.example/x.png" onerror=alert(1)>'
VOID = {"meta", "br", "img", "input", "link"}


class Document(HTMLParser):
    """Elements that are opened and closed in order, with what would be fetched."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.headings: list[int] = []
        self.text = ""
        self.scripts: list[dict[str, str | None]] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert len(named) == len(attrs), "an attribute stands twice"
        assert not any(name.startswith("on") for name in named)
        self.fetched += [
            str(v) for k, v in attrs if k in ("src", "srcset", "href", "data", "action")
        ]
        self.ids += [str(named["id"])] if "id" in named else []
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "script":
            self.scripts.append(named)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


@pytest.fixture(scope="module")
def board() -> Deck:
    return make_deck(open_story("safe-to-store"), "2026-03-01")


@pytest.fixture(scope="module")
def document(board: Deck) -> str:
    return html_report(board)


@pytest.mark.slow
def test_a_report_is_small_and_whole_and_fetches_nothing(board: Deck, document: str) -> None:
    assert len(document.encode()) <= 3_000_000
    found = Document(document)
    assert found.fetched == []
    assert len(found.ids) == len(set(found.ids))
    assert found.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(found.headings, found.headings[1:], strict=False))
    for page in board.pages:
        assert page.heading in found.text
    assert "default-src 'none'" in unescape(document)


@pytest.mark.slow
def test_a_report_tells_date_version_facts_limits_questions_and_commands(
    board: Deck, document: str
) -> None:
    text = Document(document).text
    for told in ("2026-03-01", board.version, *board.limits, *board.commands):
        assert told in text
    for clause in (
        "Article 32",
        "Articles 33 and 34",
        "Article 35",
        "28/2024",
        "AML.T0024.001",
        "LLM08 in the 2025",
        "LLM09 in the 2026",
        "11.2.1 to 11.2.5",
    ):
        assert clause in text
    for clause in board.clauses:
        assert clause.source in text
        assert re.search(r"\b20\d\d\b", clause.source), f"{clause.source} has no date"
    for name in ("Data", "n", "Interval", "Attacker", "Access", "Cost", "Measured", "Versions"):
        assert name in dict(board.facts)
    for name in ("torch", "transformers"):
        assert f"{name} {version(name)}" in dict(board.facts)["Written with"]
    assert "fingerprint" in dict(board.facts)["Bundled encoder"]
    assert not re.search(r"\bcompli(ant|es with)\b", text)


def test_every_number_of_a_slide_stands_in_the_report(board: Deck, document: str) -> None:
    text = " ".join(Document(document).text.split())
    for page in board.pages:
        for block in page.body:
            assert " ".join(block.text.split()) in text
        for row in page.table.rows if page.table else ():
            assert all(cell in text for cell in row)


def hostile() -> Story:
    slide = Finding(
        title=EVIL,
        body=EVIL,
        sentence=((EVIL, "recovered"), (EVIL, EVIL)),
        figure=plain_figure(go.Figure(go.Bar(x=[1], y=[EVIL], name="</script><b>x</b>"))),
        alt=EVIL,
        table=Table(columns=(EVIL,), rows=((EVIL,),)),
        facts=((EVIL, EVIL),),
        caveat=EVIL,
        commands=(EVIL,),
    )
    pin = Pin(
        page="inversion",
        parameters=(("text", EVIL),),
        heading=EVIL,
        remark=EVIL,
        notes=EVIL,
        slide=slide,
    )
    return Story(title=EVIL, audience=EVIL, pins=(pin,))


def test_a_hostile_story_is_shown_as_plain_text() -> None:
    document = html_report(make_deck(hostile(), "2026-03-01"), base="http://localhost:1")
    found = Document(document)
    assert len(found.scripts) == 3
    back, *pages = found.fetched  # links alone: to the story, and to the page of each slide
    assert back == "http://localhost:1/story"
    assert all(page.startswith("http://localhost:1/inversion?") for page in pages)
    assert pages
    assert found.text.count(EVIL) >= 8


@pytest.mark.slow
def test_the_command_writes_a_report(core: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    n = len(open_story("safe-to-store").pins)
    assert f"{n} slides" in core("report", "safe-to-store", "--out", str(out)).out
    assert Document(out.read_text(encoding="utf-8")).fetched == []
    own = tmp_path / "own.json"
    write_json(own, hostile().to_dict())
    assert "1 slides" in core("report", str(own), "--out", str(out)).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("safe-to-stor", "--out", "a.html"), "safe-to-store"),
        (("none.json", "--out", "a.html"), "does not exist"),
        (("safe-to-store", "--out", "a.docx"), ".pptx"),
        (("safe-to-store", "--out", "none/a.html"), "folder"),
    ],
)
def test_the_command_says_what_is_wrong(
    core: Any, arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in core("report", *arguments).refusal()


def test_the_list_names_the_stories(core: Any) -> None:
    found = json.loads(core("list", "--json").out)
    assert {each["name"] for each in found["stories"]} >= {"safe-to-store", "which-eta"}
