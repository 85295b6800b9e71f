from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import StorageError
from core.studies import representation_summary
from core.studies.representation_summary import FILES, SHIPPED, load_representations
from dashboard import cache, representation_jobs, state
from dashboard.representation_state import key_of
from dashboard.representation_views import QUESTION

TEXT = "The government said police had found zanzibarian people after two days."
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Iterator[Open]:
    cache.representations.clear()
    representation_jobs._shared().clear()

    def visit(**address: str | list[str]) -> AppTest:
        small_app.run()
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/representations.py").run()
        assert not small_app.exception
        return small_app

    yield visit
    cache.representations.clear()
    if "_try_job" in small_app.session_state:
        cache.jobs().forget(small_app.session_state["_try_job"][1])


def told(page: AppTest) -> str:
    return " ".join(part.value for part in (*page.title, *page.markdown, *page.caption))


def table(page: AppTest, column: str):
    return next(t.value for t in page.dataframe if column in t.value)


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def fitted(page: AppTest) -> AppTest:
    """Press the button and wait until the job has fitted the encoders."""
    page.button(key="try-encoders").click().run()
    end = time.monotonic() + 120
    while '<p class="ls-sentence' not in html(page) and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert not page.error and not page.warning
    assert "leak" in page.title[0].value and page.title[0].value != QUESTION
    assert "95 % intervals" in told(page) and "n = " in told(page)
    found = load_representations(SHIPPED)
    n_points = len(found.points(found.encoders, found.attacks, "cross", "sentences"))
    assert len(table(page, "guessing")) == n_points > 3
    (chart,) = page.get("plotly_chart")
    assert f"{len(found.encoders)} encoders" in chart.proto.alt


def test_the_thesis_stands_beside_ours(opened: Open) -> None:
    page = opened(encoder=["tfidf", "hashing"], domain="in")
    numbers, steps = table(page, "guessing"), table(page, "thesis (MSP)")
    ours = numbers[numbers["encoder"] == "Bag of words, tf-idf"]
    assert set(ours["C22: useful"]) == {82.35} and set(ours["C22: leaks under MSP"]) == {89.05}
    assert set(steps["thesis (MSP)"]) == {"89.05 and 89.33"}
    assert "of 1 step," in told(page)


def test_a_link_opens_a_view(opened: Open) -> None:
    page = opened(encoder="tfidf,minilm", domain="in", view="text", n="1000", text=TEXT)
    assert page.multiselect(key=key_of("encoder")).value == ["tfidf", "minilm"]
    assert page.session_state[key_of("domain")] == "in"
    assert page.session_state[key_of("view")] == "text"
    assert page.selectbox(key=key_of("n")).value == 1000
    assert page.text_input(key=state.TEXT_KEY).value == TEXT
    assert "encoder" in page.query_params and not page.warning
    page.multiselect(key=key_of("encoder")).set_value(["tfidf"]).run()
    assert "encoder" not in page.query_params, "the address no longer told the truth"


@pytest.mark.parametrize("wrong", [{"encoder": "st:some/model"}, {"attack": "magic"},
                                   {"domain": "out"}, {"view": "<b>"}, {"n": "7"}],
                         ids=str)  # fmt: skip
def test_what_a_link_may_not_open_is_told(opened: Open, wrong: dict[str, str]) -> None:
    page = opened(**wrong)
    (name,) = wrong
    assert name in " ".join(w.value for w in page.warning) and not page.error


@pytest.mark.parametrize("kind", ["encoder", "attack"])
def test_choosing_nothing_is_answered(opened: Open, kind: str) -> None:
    page = opened()
    control = page.multiselect if kind == "encoder" else page.button_group
    control(key=key_of(kind)).set_value([]).run()
    assert not page.exception and not page.error
    assert page.title[0].value == QUESTION and "at least one encoder" in page.info[0].value


@pytest.mark.parametrize("content", [None, "{", '{"study": "inversion", "rows": [{}]}'])
def test_rows_that_are_not_here_leave_the_rest_of_the_page(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    monkeypatch.setattr(representation_summary, "SHIPPED", tmp_path)
    for name in FILES.values():
        if content is not None:
            (tmp_path / name).write_text(content)
    page = opened()
    assert "python -m core study " in page.error[0].value.replace("\\", "")
    assert page.title[0].value == QUESTION and page.button(key="try-encoders")


def test_a_sentence_is_read_from_all_encoders_and_stays_in_memory(
    opened: Open, leakscope_home: Path
) -> None:
    page = fitted(opened(encoder=["tfidf", "lsa_hashing"], corpus="lee", n="1000", text=TEXT))
    assert not page.error
    scores = table(page, "words read")
    assert list(scores["encoder"]) == ["Bag of words, tf-idf", "LSA on hashed words", "none"]
    assert list(scores["attack"])[-1] == "Guessing without any vector"
    assert scores["recall"][0] == 100 and scores["F1"][0] > scores["F1"][2]
    assert html(page).count("Recovered:") == 2 and "outside the attack" in html(page)
    kept = [p for p in leakscope_home.rglob("*") if p.is_file()]
    assert kept and not any(b"zanzibarian" in p.read_bytes() for p in kept)
    # Typed on: no button any more, and an answer at once.
    page.text_input(key=state.TEXT_KEY).set_value("Police found a new government.").run()
    assert "government" in html(page) and "zanzibarian" not in html(page)


def test_words_that_no_encoder_knows(opened: Open) -> None:
    page = fitted(opened(encoder="tfidf,lsa_tfidf", corpus="lee", n="1000", text="Qwzx vbnm 🦊 ﷺ"))
    assert not page.error and "The vector is zero" in told(page)
    assert "0 of 0" in list(table(page, "words read")["words read"])


@pytest.mark.parametrize(("text", "wrong"), [("", "empty"), ("null\0byte", "null byte"),
                                             ("x " * 60_000, "characters"),
                                             ("the of and", "stop words")])  # fmt: skip
def test_a_sentence_that_cannot_be_read_is_told(opened: Open, text: str, wrong: str) -> None:
    page = opened()
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    assert not page.exception and wrong in " ".join(e.value for e in page.error)


def test_a_full_disk_is_told_with_the_remedy(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("Could not write x: No space left. Free some disk space.")

    monkeypatch.setattr(representation_jobs, "prepare", full)
    page = fitted(opened(encoder="tfidf", corpus="lee", n="1000", text=TEXT))
    assert "Free some disk space" in page.error[0].value and page.button(key="try-encoders")
