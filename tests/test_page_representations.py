from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.studies import representation_summary
from core.studies.representation_summary import FILES, SHIPPED, load_representations
from core.text import STOP_WORDS, word_set
from dashboard import cache, state
from dashboard.representations import job as representation_jobs
from dashboard.representations.finding import QUESTION
from dashboard.representations.state import key_of

TEXT = "The government said police had found zanzibarian people after two days."
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Iterator[Open]:
    cache.representations.clear()
    representation_jobs._shared().clear()

    def visit(**address: str | list[str]) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/representations.py").run()
        assert not small_app.exception
        return small_app

    yield visit
    cache.representations.clear()


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
    assert "95 % intervals" in told(page) and "on 500 sentences of BBC news" in told(page)
    found = load_representations(SHIPPED)
    n_points = len(found.points(found.encoders, found.attacks, "cross", "sentences"))
    assert len(table(page, "guessing")) == n_points > 3
    points = found.points(found.encoders, found.attacks, "cross", "sentences")
    every = [None if p.leak.all_words is None else round(p.leak.all_words, 1) for p in points]
    assert list(table(page, "guessing")["F1, every word"]) == every and every[0] != 0
    assert all(word < p.leak.f1.value for word, p in zip(every, points, strict=True) if word)
    (chart,) = page.get("plotly_chart")
    assert f"{len(found.encoders)} encoders" in chart.proto.alt


def test_attacks_with_more_text_stand_beside_the_number(opened: Open) -> None:
    page = opened()
    found = load_representations(SHIPPED)
    leak = found.leaks["minilm", "probe_mlc", "cross"]
    assert page.title[0].value.startswith("Under these attacks, ")
    (note,) = (i.value for i in page.info if "from more text" in i.value)
    same, most = found.taught_more(leak)
    for score in (same, most):
        low, high = score.f1.ci95.low, score.f1.ci95.high
        assert f"(F1 {score.f1.value:.0f} [{low:.0f}, {high:.0f}]), n = {score.f1.n:,}" in note
    assert f"{leak.n_fitted_on:,}" in note and f"{most.n_fitted_on:,}" in note
    page.multiselect(key=key_of("encoder")).set_value(["tfidf", "hashing"]).run()
    assert not any("from more text" in i.value for i in page.info), "these have no such rows"


def test_a_missing_usefulness_is_told_where_it_matters(opened: Open) -> None:
    page = opened(encoder="fasttext", attack="probe_mlc")
    assert page.title[0].value == QUESTION and len(table(page, "guessing")) == 1
    assert "was measured, what it is good for was not: FastText" in page.info[0].value
    page.multiselect(key=key_of("encoder")).set_value(["fasttext", "lsa_tfidf", "minilm"]).run()
    assert "Of 2 compared" in told(page)
    assert "Of the 3 chosen, it leaves out FastText \\(mean\\), whose usefulness" in told(page)


def test_one_encoder_is_not_compared(opened: Open) -> None:
    page = opened(encoder="minilm")
    assert (
        "Of 1 compared" not in told(page)
        and "stands alone here" in told(page)
        and "no other is there" in page.title[0].value
    )
    assert any("next to each other in this order" in i.value for i in page.info)


def test_what_is_shown_instead_of_an_unknown_attack_is_told(opened: Open) -> None:
    (warning,) = opened(attack="search").warning
    assert "attack\\=search" in warning.value
    assert "Shown instead: Word probe" in warning.value


def test_names_in_lists_hold_no_comma(opened: Open) -> None:
    page = opened()
    assert "FastText \\(mean\\)" in told(page) and ", mean" not in told(page)
    assert not any(", mean" in str(v) for v in table(page, "guessing")["encoder"])


def test_the_thesis_stands_beside_ours(opened: Open) -> None:
    page = opened(encoder=["tfidf", "hashing"], domain="in")
    numbers, steps = table(page, "guessing"), table(page, "Corò 2022 (MSP)")
    ours = numbers[numbers["encoder"] == "Bag of words (tf-idf)"]
    assert set(ours["Corò 2022: useful"]) == {82.3}
    assert set(ours["Corò 2022: leaks under MSP"]) == {89.0}
    assert set(steps["Corò 2022 (MSP)"]) == {"89.0 and 89.3"}
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


@pytest.mark.parametrize("content", [None, "{", '{"study": "encoders", "rows": [{}]}'])
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
    assert list(scores["encoder"]) == ["Bag of words (tf-idf)", "LSA on hashed words", "none"]
    assert list(scores["attack"])[-1] == "Guessing without any vector"
    most = load_representations(SHIPPED).most_read("tfidf", "cross")
    assert most is not None
    assert scores["most read, measured above"][0].startswith(most.f1.said(0))
    assert any("does not mean that nothing leaks" in i.value for i in page.info)
    # One of the words is in no text of the collection.
    n_words = len(word_set(TEXT) - STOP_WORDS)
    assert scores["words scored"][0] == f"{n_words - 1} of {n_words}"
    assert f"Scored on **{n_words - 1} of {n_words} words**" in told(page)
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
    scores = table(page, "words read")  # the last sign stands for four words
    assert set(scores["words scored"]) == {"0 of 6"} and set(scores["words read"]) == {"0 of 0"}
    assert scores["F1"].isna().all() and set(scores["recovered"]) == {"cannot be scored"}
    assert {m.value for m in page.metric} == {"–"}, "nothing scored is not nothing leaked"
    assert "cannot be scored" in told(page) and "Missed: none" not in html(page)


@pytest.mark.parametrize(("text", "wrong"), [("", "empty"), ("null\0byte", "null byte"),
                                             ("x " * 60_000, "characters"),
                                             ("the of and", "stop words")])  # fmt: skip
def test_a_sentence_that_cannot_be_read_is_told(opened: Open, text: str, wrong: str) -> None:
    page = opened()
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    shown = " ".join(e.value for e in page.error)
    assert not page.exception and wrong in shown and "switch on" not in shown


def test_a_disk_that_refuses_is_told_with_the_remedy(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = opened(encoder="tfidf", corpus="lee", n="1000", text=TEXT)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEAKSCOPE_HOME", str(tmp_path / "file" / "folder"))
    page = fitted(page)
    assert "could not" in page.error[0].value.lower() and page.button(key="try-encoders")
