from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import job_work
import pytest
from job_work import use_weights
from processes import wait_until
from story_pages import strip_markdown
from streamlit.testing.v1 import AppTest
from visiting import Open, finish_job, job_in, open_page

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.jobs import Jobs, JobState
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion import state as inversion_state
from leakscope.dashboard.inversion.controls import adjustable_settings
from leakscope.dashboard.names import state as names_state
from leakscope.dashboard.ui import state

TEXT = "The government said the river is near the city of London."


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    return partial(open_page, small_app, "inversion")


def cards(page: AppTest) -> list[str]:
    return [heading.value for heading in page.subheader]


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


@pytest.fixture
def held(
    small_app: AppTest, small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Hold slow attacks back until the test makes a file, so that none is done too early."""
    slow = replace(INVERSION_ATTACKS["search"], is_live=False)
    monkeypatch.setitem(INVERSION_ATTACKS, "search", slow)
    jobs = Jobs(prepare=partial(use_weights, small_weights, tmp_path / "go"))
    monkeypatch.setattr(cache, "jobs", lambda: jobs)
    yield tmp_path / "go"
    jobs.close()


def messages(page: AppTest) -> str:
    return " ".join(e.value for e in [*page.error, *page.warning, *page.info]).replace("\\", "")


def test_the_first_visit_answers_without_a_click(opened: Open) -> None:
    page = opened()
    assert re.fullmatch(
        r"The attacker recovered (\d+|none) of \d+ words?", strip_markdown(page.title[0].value)
    )
    named = [INVERSION_ATTACKS[name].title for name in ("probe_mlc", "search")]
    assert cards(page) == named, "the strongest attack answers by itself"
    assert not page.error
    labels = [metric.label for metric in page.metric]
    assert labels == ["Recovered", "F1", "Precision", "Recall"] * 2
    said = page.metric[:4]  # the small search of the tests knows none of these words
    assert all(metric.delta.startswith("guessing: ") for metric in said)
    assert "300" in html(page), "training pairs"
    for control in [*page.button, *page.toggle, *page.text_input]:
        assert control.help, control.label
    assert all(chart.proto.alt for chart in page.get("plotly_chart"))
    page.session_state[inversion_state.ATTACKS_KEY] = []
    page.run()
    assert "at least one attack" in messages(page)


def test_the_marked_sentence_stands_before_every_control(opened: Open) -> None:
    page = opened(text=TEXT, attack=["mlc", "probe_mlc"])
    parts = [part.value for part in page.html if "<style" not in part.value]
    assert 'class="ls-sentence"' in parts[0] and "What the marks mean" in parts[1]
    assert sum('class="ls-sentence"' in part for part in parts) == 3, "and on the card of each"
    alone = opened(text=TEXT, attack="mlc")
    assert sum('class="ls-sentence"' in part.value for part in alone.html) == 1, "said once"


def test_the_headline_the_card_and_the_scores_count_the_words_that_can_be_named(
    opened: Open,
) -> None:
    page = opened(text=f"{TEXT} Quendor and Zweigling, too.", attack="mlc")
    n_read = html(page).count('<mark class="ls-hit"')
    n_named = n_read + html(page).count('<span class="ls-miss" title="missed"')
    n_unnamed = html(page).count('<span class="ls-unknown" title="outside')
    assert n_unnamed >= 2
    said = f"The attacker recovered {n_read or 'none'} of {n_named} words"
    assert strip_markdown(page.title[0].value) == said
    assert any(m.value.startswith(f"{n_unnamed} more") for m in page.markdown)
    card = {metric.label: metric.value for metric in page.metric}
    assert card["Recovered"] == f"{n_read} of {n_named}"
    assert card["Recall"] == f"{100 * n_read / n_named:.0f}"
    counted = f"the {n_named} words that the attack can name, not the other {n_unnamed}"
    assert any(f"The scores count {counted}" in caption.value for caption in page.caption)


def test_words_that_cannot_be_named_are_no_evidence_of_safety(opened: Open) -> None:
    page = opened(text="The zweigling visited Quendor with 48151 Łódźers.", attack="mlc")
    assert any("**untested, possibly recoverable**" in m.value for m in page.markdown)
    assert page.button(key="test-names").label == "Test 2 names"  # Quendor and Łódźers
    known = opened(text="The government said the river.", attack="mlc")
    assert not any("untested" in m.value for m in known.markdown)
    assert "test-names" not in {button.key for button in known.button}
    said = "The text contains no capitalised words"
    assert any(said in caption.value for caption in known.caption)


def test_an_untested_name_is_carried_to_the_page_of_names(opened: Open) -> None:
    text = "Please ring Dana Quendorf [home]\nunder 555 0142."
    page = opened(text=text, attack="mlc")
    page.button(key="test-names").click().run()
    assert not page.exception
    sentences = page.session_state[names_state.SENTENCES_KEY]
    assert sentences == "Please ring Dana Quendorf (home) under 555 0142."
    names = page.session_state[names_state.NAMES_KEY].split("\n")
    assert names[0] == "Dana Quendorf" and len(names) == 5
    numbers = opened(text="The code of the door is 48151623 and 42108.", attack="mlc")
    assert "test-names" not in {button.key for button in numbers.button}, "numbers are no names"


def test_a_name_that_was_missed_is_carried_to_the_page_of_names_too(opened: Open) -> None:
    words = cache.open_attack_once("mlc", answers.ENCODER).vocabulary_.words
    rare = [word for word in words[len(words) // 2 :] if word.isascii() and word.isalpha()]
    name = next(word for word in rare if len(word) > 4).capitalize()
    page = opened(text=f"On the phone the widow asked why {name} had paid.", attack="mlc")
    assert page.button(key="test-names").label == f"Test {name} as a name"


ODD = (
    "<script>alert(1)</script> the government",
    "costs $5 or $6 :red[today] **now** [x](javascript:alert(1)) government",
    "\N{GRINNING FACE} government \N{SNOWMAN}",
    "הממשלה אמרה כי הנהר קרוב לעיר",
    "=HYPERLINK(1) said the government",
)


@pytest.mark.slow
def test_odd_but_valid_input_is_shown_as_it_is(opened: Open) -> None:
    for text in ODD:
        page = opened(text=text, attack="mlc")
        assert not page.error
        assert "<script" not in html(page)
        marked = next(part.value for part in page.html if '<p class="ls-sentence"' in part.value)
        assert 'dir="auto"' in marked, text


@pytest.mark.slow
def test_an_attack_that_cannot_answer_leaves_the_others_alone(opened: Open) -> None:
    page = opened(text=TEXT, attack=["mlc", "sparse"])
    assert cards(page) == [INVERSION_ATTACKS["mlc"].title, INVERSION_ATTACKS["sparse"].title]
    finish_job(page.button(key="run-sparse").click().run())
    assert "No trained 'sparse' ships" in messages(page)
    assert len(page.metric) == 4


@pytest.mark.slow
def test_a_slow_attack_runs_when_asked_and_its_reading_stays(opened: Open, held: Path) -> None:
    page = opened(text=TEXT, attack="search")
    assert not page.metric
    page.button(key="run-search").click().run()
    job_id = job_in(page)
    held.touch()
    job = cache.jobs().wait(job_id, timeout=240)
    assert job is not None and job.state is JobState.DONE, job
    page.run()
    assert not page.exception and not page.error
    assert [m.label for m in page.metric] == ["Recovered", "F1", "Precision", "Recall"]
    assert "job" not in page.query_params, "the job is done and forgotten"
    assert "for this text" in html(page), "the number of queries is told"


@pytest.mark.slow
def test_a_reloaded_page_finds_its_job_again(
    opened: Open, small_app: AppTest, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leakscope.dashboard.ui.work.visitor", lambda: "by a cookie")
    page = opened(text=TEXT, attack="search")
    page.button(key="run-search").click().run()
    job_id = job_in(page)
    held.touch()
    cache.jobs().wait(job_id, timeout=240)
    anew = AppTest.from_file(small_app._script_path, default_timeout=180).run()
    anew.query_params["job"] = job_id
    anew.switch_page("../pages/inversion.py").run()
    assert not anew.exception
    assert anew.text_input(key=state.TEXT_KEY).value == TEXT
    assert INVERSION_ATTACKS["search"].title in cards(anew)
    assert len(anew.metric) == 4 * len(cards(anew))


@pytest.mark.slow
def test_a_search_that_is_stopped_shows_the_best_that_it_had(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "read_text", job_work.read_until_stopped)
    page = opened(text=TEXT, attack="reconstruct")
    page.button(key="run-reconstruct").click().run()
    job_id = job_in(page)
    wait_until(lambda: "cosine" in cache.jobs().view(job_id).message)
    page.run()
    grown = html(page)
    assert "first or after the same word</p>" in grown and "<b>" not in grown, (
        "it is seen while it grows"
    )
    page.button(key=f"stop-{job_id}").click().run()
    stopped = cache.jobs().wait(job_id, timeout=60)
    assert stopped is not None and stopped.state is JobState.STOPPED and stopped.result
    page.run()
    assert not page.exception and not page.error
    assert "The best sentence before the search was stopped, cosine 0.871" in html(page)
    assert "Steps of the search" in html(page) and "until it was stopped" in html(page)
    assert any("the work did not finish" in caption.value for caption in page.caption)
    assert page.button(key="run-reconstruct").label.endswith("again")


def test_a_new_sentence_stops_the_attack_on_the_old_one(opened: Open, held: Path) -> None:
    page = opened(text=TEXT, attack="search")
    page.button(key="run-search").click().run()
    job_id = job_in(page)
    page.text_input(key=state.TEXT_KEY).set_value("A garden by the sea.").run()
    assert cache.jobs().view(job_id) is None
    assert "job" not in page.query_params


def test_presenting_hides_the_controls_and_steps_through_the_samples(opened: Open) -> None:
    page = opened(attack="mlc")
    page.button(key="present").click().run()
    assert not page.text_input and not page.toggle
    assert page.title and page.metric
    first = html(page)
    page.button(key="present-Next").click().run()
    assert html(page) != first
    page.button(key="present-leave").click().run()
    assert page.text_input


def test_samples_and_corpora_fill_the_sentence(opened: Open) -> None:
    page = opened(attack="mlc")
    for sample in cache.samples():
        page.button(key=f"sample-{sample['id']}").click().run()
        assert page.text_input(key=state.TEXT_KEY).value == sample["text"]
        assert not page.error
    assert len(json.dumps(cache.samples())) > 100 and len(cache.samples()) == 5


def test_controls_and_typing_change_the_answer(opened: Open) -> None:
    page = opened(text=TEXT, attack="mlc")
    assert "stop word, not scored" in html(page)
    page.toggle(key=inversion_state.STOP_WORDS_KEY).set_value(True).run()
    assert not page.exception and "stop word, not scored" not in html(page)
    page.toggle(key=inversion_state.STOP_WORDS_KEY).set_value(False).run()
    page.session_state["more-settings"] = True
    page.run()
    n_before = html(page).count("ls-wrong")
    page.number_input(key="setting-mlc-size_factor").set_value(10.0).run()
    assert not page.exception and not page.error
    assert html(page).count("ls-wrong") > n_before, "a longer text is taken for granted"
    page.button(key="reset-mlc").click().run()
    assert html(page).count("ls-wrong") == n_before
    page.text_input(key=state.TEXT_KEY).set_value("The garden lies by the sea.").run()
    assert not page.exception and "garden" in html(page) and "government" not in html(page)


@pytest.mark.slow
def test_adjustable_settings_are_declared_and_can_be_drawn(opened: Open) -> None:
    names = [name for name, entry in INVERSION_ATTACKS.items() if not entry.is_baseline]
    page = opened(text=TEXT, attack=names)
    page.session_state["more-settings"] = True
    page.run()
    assert not page.exception
    drawn = [*page.number_input, *page.selectbox, *page.toggle]
    assert all(widget.help for widget in drawn)
    for name in names:
        adjustable = adjustable_settings(name)
        assert adjustable, "something can be changed without training anew"
        assert {f"setting-{name}-{key}" for key in adjustable} <= {w.key for w in drawn}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Please write to Anna Kowalski at anna.kowalski@example.org.",
            ("**anna", "e-mail address", "among 1,000", "2 identifiers were found in this text"),
        ),
        (TEXT, ("The rules found no personal data", "no evidence that there is none")),
    ],
)
def test_personal_data_of_the_sentence_is_tested_on_request(
    opened: Open, text: str, told: tuple[str, ...]
) -> None:
    pytest.importorskip("presidio_analyzer")
    page = opened(text=text)

    def shown() -> str:
        return re.sub(r"[\\\u2060]", "", "\n".join(line.value for line in page.markdown))

    assert told[0] not in shown()
    page.button(key="personal-start").click().run()
    assert not finish_job(page).error
    for part in told:
        assert part in shown()
