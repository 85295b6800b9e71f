from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, finish_job, open_page

from leakscope.core.findings.representations import QUESTION
from leakscope.core.specs import AttackSpec
from leakscope.core.studies.inversion import representation_summary
from leakscope.core.studies.inversion.prepared import Preparation, prepare
from leakscope.core.studies.inversion.representation_summary import (
    FILES,
    SHIPPED,
    load_representations,
)
from leakscope.core.text import STOP_WORDS, word_set
from leakscope.dashboard import cache
from leakscope.dashboard.representations import cards
from leakscope.dashboard.representations.state import key_of
from leakscope.dashboard.ui import state

TEXT = "The government said police had found zanzibarian people after two days."


@pytest.fixture
def opened(small_app: AppTest) -> Iterator[Open]:
    cache.representations.clear()
    cards._shared_encoders().clear()

    def visit(**address: str | list[str]) -> AppTest:
        return open_page(small_app, "representations", **address)

    yield visit
    cache.representations.clear()


def told(page: AppTest) -> str:
    return " ".join(part.value for part in (*page.title, *page.markdown, *page.caption))


def title(page: AppTest) -> str:
    return page.title[0].value.replace("\\", "")


def table(page: AppTest, column: str):
    return next(t.value for t in page.dataframe if column in t.value)


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def fitted(page: AppTest) -> AppTest:
    """Press the button and wait until the job has fitted the encoders."""
    return finish_job(page.button(key="try-encoders").click().run())


def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert not page.error and not page.warning
    assert "leak" in title(page) and title(page) != QUESTION
    assert "95 % intervals" in told(page) and "on 500 sentences of BBC news" in told(page)
    found = load_representations(SHIPPED)
    points = found.points(found.encoders, found.attacks, "cross", "sentences")
    assert len(table(page, "guessing")) == len(points) > 3
    every = [None if p.leak.all_words is None else round(p.leak.all_words, 1) for p in points]
    assert list(table(page, "guessing")["F1, every word"]) == every and every[0] != 0
    assert all(word < p.leak.f1.value for word, p in zip(every, points, strict=True) if word)
    (chart,) = page.get("plotly_chart")
    n_useful = len({point.leak.encoder for point in points if point.useful})
    assert f"{n_useful} encoders" in chart.proto.alt
    leak = found.leaks["minilm", "probe_mlc", "cross"]
    assert title(page).startswith("Of the 3 most useful encoders tested, all-MiniLM-L6-v2 leaked")
    assert "a better-trained attack still recovers about 5 of 10 words from it" in title(page)
    (note,) = (m.value for m in page.markdown if "trained on more text" in m.value)
    same, most = found.better_trained(leak)
    for score in (same, most):
        value, ends = score.f1.parts(0)
        assert f"(F1 {value}, 95 % CI {ends}) on {score.f1.n:,} sentences" in note
    assert f"{leak.n_fitted_on:,}" in note and f"{most.n_fitted_on:,}" in note
    page.multiselect(key=key_of("encoder")).set_value(["tfidf", "hashing"]).run()
    assert "trained on more text" not in told(page), "these have no such rows"
    for kind, names in (("encoder", found.encoders), ("attack", found.attacks)):
        control = page.multiselect if kind == "encoder" else page.button_group
        control(key=key_of(kind)).set_value([]).run()
        assert not page.exception and not page.error
        assert title(page) == QUESTION and "at least one encoder" in page.info[0].value
        control(key=key_of(kind)).set_value(names).run()


def test_a_missing_usefulness_is_told_where_it_matters(opened: Open) -> None:
    page = opened(encoder="fasttext", attack="probe_mlc")
    assert title(page) == QUESTION and len(table(page, "guessing")) == 1
    assert "Leakage was measured, but not utility: FastText" in page.info[0].value
    page.multiselect(key=key_of("encoder")).set_value(["fasttext", "lsa_tfidf", "minilm"]).run()
    assert "Of the 2 encoders compared" in told(page)
    assert (
        "The comparison leaves out FastText \\(mean\\), because utility was not measured"
        in told(page)
    )


def test_the_thesis_stands_beside_ours(opened: Open) -> None:
    page = opened(encoder=["tfidf", "hashing"], domain="in")
    numbers, steps = table(page, "guessing"), table(page, "Corò 2022 (MSP)")
    ours = numbers[numbers["encoder"] == "Bag of words (tf-idf)"]
    assert set(ours["Corò 2022: utility"]) == {82.3}
    assert set(ours["Corò 2022: leakage under MSP"]) == {89.0}
    assert set(steps["Corò 2022 (MSP)"]) == {"89.0 and 89.3"}
    assert "of 1 comparison," in told(page).lower()


@pytest.mark.parametrize("content", [None, "{", '{"study": "encoders", "rows": [{}]}'])
def test_rows_that_are_not_here_leave_the_rest_of_the_page(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    monkeypatch.setattr(representation_summary, "SHIPPED", tmp_path)
    for name in FILES.values():
        if content is not None:
            (tmp_path / name).write_text(content)
    page = opened()
    assert "leakscope study " in page.error[0].value.replace("\\", "")
    assert title(page) == QUESTION and page.button(key="try-encoders")


@pytest.mark.slow
def test_a_sentence_is_read_from_all_encoders_and_stays_in_memory(
    opened: Open, leakscope_home: Path
) -> None:
    page = fitted(opened(encoder=["tfidf", "lsa_hashing"], corpus="lee", n="1000", text=TEXT))
    assert not page.error
    scores = table(page, "words recovered")
    assert list(scores["encoder"]) == ["Bag of words (tf-idf)", "LSA on hashed words", "none"]
    assert list(scores["attack"])[-1] == "Guessing without any vector"
    most = load_representations(SHIPPED).most_read("tfidf", "cross")
    assert most is not None
    assert scores["strongest attack measured, F1"][0].startswith(most.f1.format(0))
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


def test_an_encoder_with_shipped_weights_is_read_by_them_too(
    opened: Open, leakscope_home: Path
) -> None:
    plan = Preparation(
        encoder="minilm",
        corpus="lee",
        n_texts=300,
        attack=AttackSpec.of("probe", {"vocabulary_size": 300}),
    )
    probe, trained = cards.read_from_encoders(TEXT, {"minilm": prepare(plan)})
    assert (probe.reading.attack, trained.reading.attack) == ("probe", "probe_mlc")
    assert probe.n_texts == 300 and trained.n_texts is None and trained.guess != probe.guess


@pytest.mark.slow
def test_words_that_no_encoder_knows(opened: Open) -> None:
    page = fitted(opened(encoder="tfidf,lsa_tfidf", corpus="lee", n="1000", text="Qwzx vbnm 🦊 ﷺ"))
    assert not page.error and "The vector is zero" in told(page)
    scores = table(page, "words recovered")  # the last sign stands for four words
    assert set(scores["words scored"]) == {"0 of 6"} and set(scores["words recovered"]) == {
        "0 of 0"
    }
    assert scores["F1"].isna().all() and set(scores["recovered"]) == {"cannot be scored"}
    assert {m.value for m in page.metric} == {"–"}, "nothing scored is not nothing leaked"
    assert "Missed: none" not in html(page)


@pytest.mark.slow
def test_a_disk_that_refuses_is_told_with_the_remedy(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = opened(encoder="tfidf", corpus="lee", n="1000", text=TEXT)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEAKSCOPE_HOME", str(tmp_path / "file" / "folder"))
    page = fitted(page)
    assert "could not" in page.error[0].value.lower() and page.button(key="try-encoders")
