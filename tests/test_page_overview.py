from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from story_pages import strip_markdown
from streamlit.testing.v1 import AppTest

from leakscope.core.attacks.inversion import shipped
from leakscope.core.studies.leak_figures import leak_figures
from leakscope.dashboard import cache
from leakscope.dashboard.ui import state
from leakscope.dashboard.ui.leakage import TITLES

PAGES = Path(__file__).parents[1] / "pages"


def test_the_first_visit_shows_a_sentence_already_inverted(small_app: AppTest) -> None:
    page = small_app.run()
    assert not page.exception and not page.error
    assert page.title[0].value.endswith("No: treat them as personal data")
    assert re.fullmatch(
        r"The attacker recovered (\d+|none) of \d+ words?|None of \d+ words? could be tested",
        strip_markdown(page.header[0].value),
    )
    marked = [html.value for html in page.html if '<p class="ls-sentence"' in html.value]
    assert len(marked) == 2  # as written, and with its words marked
    assert any("Recovered:" in html or "can be scored" in html for html in marked)
    is_told = any("untested, possibly recoverable" in part.value for part in page.markdown)
    assert is_told == ("ls-unknown" in marked[1]), "words outside the vocabulary"
    assert "384 numbers" in " ".join(html.value for html in page.html)
    charts = page.get("plotly_chart")
    assert len(charts) == 2  # the vector, and the scores of the shipped attacks
    assert all(chart.proto.alt for chart in charts)


def test_it_links_every_page_and_says_why_pages_differ_where_it_is_asked(
    small_app: AppTest,
) -> None:
    page = small_app.run()
    told = [link.proto for link in page.get("page_link")]
    linked = {link.page for link in told if link.label.startswith("**")}  # those of the menu do not
    pages = {path.stem for path in PAGES.glob("*.py")} - {"overview"}
    assert {name for name in pages if any(name in to for to in linked)} == pages
    assert not [m for m in page.markdown if "One encoder, several figures" in m.value]
    page.session_state["why-pages-differ"] = True
    page.run()
    assert not page.exception
    (told,) = [m.value for m in page.markdown if "One encoder, several figures" in m.value]
    assert all(f"**{TITLES[name]}, " in told for name in leak_figures())
    page.button(key="try-it").click().run()
    assert not page.exception
    assert page.text_input(key=state.TEXT_KEY).value == cache.samples()[0]["text"]


def test_no_page_shows_a_note_of_its_source() -> None:
    """Streamlit draws a bare string of a page; only the one that begins the file is left out."""
    for path in PAGES.glob("*.py"):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body[1:]:
            bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            assert not bare, f"{path.name}:{statement.lineno} would be drawn"


def test_missing_weights_are_told_with_the_remedy(
    small_app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    page = small_app.run()
    assert not page.exception
    assert "leakscope train" in page.error[0].value.replace("\\", "")
