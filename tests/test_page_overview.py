from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from streamlit.testing.v1 import AppTest

from core.attacks.inversion import shipped
from core.studies.leak_figures import leak_figures
from dashboard import cache, compiling, state
from dashboard.inversion.answers import ENCODER
from dashboard.inversion.cost import cost_in_words
from dashboard.leakage import TITLES


def test_the_first_visit_shows_a_sentence_already_inverted(small_app: AppTest) -> None:
    page = small_app.run()
    assert not page.exception and not page.error
    assert re.fullmatch(
        r"Of \d+ words? the attacker reads (\d+|none)"
        r"|Of the \d+ words? that it can name, the attacker reads (\d+|none); \d+ more it cannot: "
        r"no evidence of safety|The attacker can name none of \d+ words?: no evidence of safety",
        page.title[0].value,
    )
    assert any("How much leaks" in caption.value for caption in page.caption)
    marked = [html.value for html in page.html if '<p class="ls-sentence"' in html.value]
    assert len(marked) == 2  # as written, and with its words marked
    assert any("Recovered:" in html or "can be scored" in html for html in marked)
    assert "384 numbers" in " ".join(html.value for html in page.html)


def test_why_pages_differ_is_asked_at_the_head_of_the_page(small_app: AppTest) -> None:
    page = small_app.run()
    assert not [m for m in page.markdown if "One encoder, several figures" in m.value]
    page.session_state["why-pages-differ"] = True
    page.run()
    assert not page.exception
    (told,) = [m.value for m in page.markdown if "One encoder, several figures" in m.value]
    assert all(f"**{TITLES[name]}, " in told for name in leak_figures())


def test_a_first_opening_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []

    @contextmanager
    def noted(told: str, **_: Any) -> Iterator[None]:
        waits.append(told)
        yield

    class Slot(nullcontext[None]):
        def skeleton(self, *, height: int) -> Any:
            return noted(f"a grey block of {height}")

    monkeypatch.setattr("dashboard.compiling.st.spinner", noted)
    monkeypatch.setattr(cache, "open_names", lambda: opened)
    opened: set[Any] = set()
    for _ in range(2):
        with compiling.opening(Slot(), ENCODER):
            opened.add(("search", ENCODER))
    assert waits[0].startswith("Opening the encoder") and waits[1].startswith("a grey block")


def test_the_cost_of_an_attack_names_the_one_that_it_is_built_on() -> None:
    def told(attack: str = "search", **training: Any) -> str:
        reading = SimpleNamespace(
            attack=attack, seconds=0.4, training=training, is_unfinished=False
        )
        return cost_in_words(cast(Any, reading))

    alone = "trained once on 1,200 example sentences, answered in 400 ms"
    assert told(n_texts=1200) == alone
    built = told(n_texts=1200, built_on="probe_mlc")
    assert "1,200 example sentences, beside those of the probe-started classifier" in built
    corpus = cache.shipped_records(ENCODER)["probe_mlc"]["corpus"]
    corrects = told(n_texts=1200, built_on="probe_mlc", corpus=corpus)
    n = cache.shipped_records(ENCODER)["probe_mlc"]["n_texts"]
    assert f"taught by {n:,} example sentences, and to correct itself by 1,200" in corrects
    writes = told("reconstruct", n_texts=1200, built_on="probe_mlc", corpus=corpus)
    assert f"taught by {n:,} example sentences, its language model by 1,200" in writes
    assert told() == "not trained, answered in 400 ms"


def test_no_page_shows_a_note_of_its_source() -> None:
    """Streamlit draws a bare string of a page; only the one that begins the file is left out."""
    pages = sorted((Path(__file__).parents[1] / "pages").glob("*.py"))
    assert pages
    for path in pages:
        for statement in ast.parse(path.read_text(encoding="utf-8")).body[1:]:
            bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            assert not bare, f"{path.name}:{statement.lineno} would be drawn"


def test_it_leads_on_and_shows_measured_averages(small_app: AppTest) -> None:
    page = small_app.run()
    charts = page.get("plotly_chart")
    assert len(charts) == 2  # the vector, and the scores of the shipped attacks
    assert all(chart.proto.alt for chart in charts)
    page.button(key="try-it").click().run()
    assert not page.exception
    assert page.text_input(key=state.TEXT_KEY).value == cache.samples()[0]["text"]


def test_missing_weights_are_told_with_the_remedy(
    small_app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    page = small_app.run()
    assert not page.exception
    assert "core train" in page.error[0].value.replace("\\", "")


def test_every_other_page_is_linked(small_app: AppTest) -> None:
    page = small_app.run()
    told = [link.proto for link in page.get("page_link")]
    linked = {link.page for link in told if link.label.startswith("**")}  # those of the menu do not
    pages = {path.stem for path in (Path(__file__).parents[1] / "pages").glob("*.py")}
    assert {name for name in pages - {"overview"} if any(name in to for to in linked)} == (
        pages - {"overview"}
    )
