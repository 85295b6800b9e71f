from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import job_work
import pytest
from job_work import use_weights
from streamlit.testing.v1 import AppTest

from core.attacks.inversion import INVERSION_ATTACKS
from core.jobs import Job, Jobs, JobState
from dashboard import cache, state
from dashboard.inversion import answers
from dashboard.inversion import state as inversion_state
from dashboard.inversion.settings import adjustable_settings
from dashboard.names import state as names_state

TEXT = "The government said the river is near the city of London."
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit(**address: str | list[str]) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/inversion.py").run()
        assert not small_app.exception
        return small_app

    return visit


def cards(page: AppTest) -> list[str]:
    return [heading.value for heading in page.subheader]


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def job_in(page: AppTest) -> str:
    """Return the id of the job in the address."""
    found = page.query_params["job"]
    return found if isinstance(found, str) else found[0]


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
    assert re.match(r"Of (the )?\d+ words?.* the attacker reads", page.title[0].value)
    assert any("How much leaks" in caption.value for caption in page.caption)
    named = [INVERSION_ATTACKS[name].title for name in ("probe_mlc", "search")]
    assert cards(page) == named, "the strongest attack answers by itself"
    assert not page.error
    labels = [metric.label for metric in page.metric]
    assert labels == ["Words read", "F1", "Precision", "Recall"] * 2
    said = page.metric[:4]  # the small search of the tests knows none of these words
    assert all(metric.delta.startswith("guessing: ") for metric in said)
    assert "300" in html(page), "training pairs"


def test_an_attack_that_names_word_after_word_tells_the_order(opened: Open) -> None:
    assert "In the order in which it chose them" in html(opened(attack="msp"))


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
    said = f"Of the {n_named} words that it can name, the attacker reads {n_read or 'none'}"
    assert page.title[0].value.startswith(f"{said}; {n_unnamed} more it cannot")
    card = {metric.label: metric.value for metric in page.metric}
    assert card["Words read"] == f"{n_read} of {n_named}"
    assert card["Recall"] == f"{100 * n_read / n_named:.0f}"
    counted = f"The scores count the {n_named} words that it can name; {n_unnamed} more it cannot"
    assert any(counted in caption.value for caption in page.caption)


def test_words_that_cannot_be_named_are_no_evidence_of_safety(opened: Open) -> None:
    page = opened(text="The zweigling visited Quendor with 48151 Łódźers.", attack="mlc")
    assert "no evidence of safety" in page.title[0].value
    assert page.button(key="test-names").label == "Test 2 names"  # Quendor and Łódźers
    known = opened(text="The government said the river.", attack="mlc")
    assert "no evidence" not in known.title[0].value
    assert "test-names" not in {button.key for button in known.button}
    assert any("Read of words with a capital" in caption.value for caption in known.caption)


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
    words = cache.opened("mlc", answers.ENCODER).vocabulary_.words
    rare = [word for word in words[len(words) // 2 :] if word.isascii() and word.isalpha()]
    name = next(word for word in rare if len(word) > 4).capitalize()
    page = opened(text=f"On the phone the widow asked why {name} had paid.", attack="mlc")
    assert page.button(key="test-names").label == f"Test {name} as a name"


def test_typing_changes_the_answer(opened: Open) -> None:
    page = opened(attack="mlc")
    page.text_input(key=state.TEXT_KEY).set_value(TEXT).run()
    assert not page.exception and "government" in html(page)


def test_a_link_opens_text_and_several_attacks(opened: Open) -> None:
    page = opened(text=TEXT, attack=["mlc", "probe_mlc"])
    assert page.text_input(key=state.TEXT_KEY).value == TEXT
    assert cards(page) == [INVERSION_ATTACKS["mlc"].title, INVERSION_ATTACKS["probe_mlc"].title]
    page.text_input(key=state.TEXT_KEY).set_value("Another sentence about a garden.").run()
    assert "text" not in page.query_params, "the address no longer tells the truth"


def test_attacks_in_a_link_may_be_separated_by_commas(opened: Open) -> None:
    assert len(cards(opened(text=TEXT, attack="mlc,msp,probe_mlc"))) == 3


def test_an_unknown_attack_in_a_link_is_named(opened: Open) -> None:
    page = opened(text=TEXT, attack=["mlc", "nonsense"])
    assert cards(page) == [INVERSION_ATTACKS["mlc"].title]
    assert "nonsense" in messages(page) and "probe_mlc" in messages(page)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("word " * 20_000, "100,000"),
        ("\N{GRINNING FACE}", "nothing to recover"),
        ("the of and", "switch on “Count stop words”"),
        ("null\0byte", "null byte"),
    ],
)
def test_bad_input_is_told_and_nothing_is_inverted(opened: Open, text: str, told: str) -> None:
    page = opened(attack="mlc")
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    assert not page.exception
    assert told in messages(page)
    assert cards(page) == []


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> the government",
        "costs $5 or $6 :red[today] **now** [x](javascript:alert(1)) government",
        "\N{GRINNING FACE} government \N{SNOWMAN}",
        "הממשלה אמרה כי הנהר קרוב לעיר",
        "=HYPERLINK(1) said the government",
    ],
)
def test_odd_but_valid_input_is_shown_as_it_is(opened: Open, text: str) -> None:
    page = opened(text=text, attack="mlc")
    assert not page.error
    assert "<script" not in html(page)
    marked = next(part.value for part in page.html if '<p class="ls-sentence"' in part.value)
    assert 'dir="auto"' in marked


def test_no_attack_chosen_is_told(opened: Open) -> None:
    page = opened()
    page.session_state[inversion_state.ATTACKS_KEY] = []
    page.run()
    assert "at least one attack" in messages(page)


def test_stop_words_can_count(opened: Open) -> None:
    page = opened(text=TEXT, attack="mlc")
    assert "stop word, not scored" in html(page)
    page.toggle(key=inversion_state.STOP_WORDS_KEY).set_value(True).run()
    assert not page.exception and "stop word, not scored" not in html(page)


def test_an_attack_that_cannot_answer_leaves_the_others_alone(opened: Open) -> None:
    page = opened(text=TEXT, attack=["mlc", "sparse"])
    assert cards(page) == [INVERSION_ATTACKS["mlc"].title, INVERSION_ATTACKS["sparse"].title]
    page.button(key="run-sparse").click().run()
    cache.jobs().wait(job_in(page), timeout=120)
    page.run()
    assert "No trained 'sparse' ships" in messages(page)
    assert len(page.metric) == 4


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
    assert [m.label for m in page.metric] == ["Words read", "F1", "Precision", "Recall"]
    assert "job" not in page.query_params, "the job is done and forgotten"
    assert "for this text" in html(page), "the number of queries is told"


def test_a_reloaded_page_finds_its_job_again(
    opened: Open, small_app: AppTest, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.work.visitor", lambda: "by a cookie")
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


def test_a_search_that_is_stopped_shows_the_best_that_it_had(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "read_text", job_work.read_until_stopped)
    page = opened(text=TEXT, attack="reconstruct")
    page.button(key="run-reconstruct").click().run()
    job_id = job_in(page)
    wait_until(lambda: "cosine" in view(job_id).message)
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
    assert "The best sentence before it was stopped, cosine 0.871" in html(page)
    assert "How the sentence grew" in html(page) and "until it was stopped" in html(page)
    assert any("did not come to its end" in caption.value for caption in page.caption)
    assert page.button(key="run-reconstruct").label.endswith("again")


def view(job_id: str) -> Job:
    job = cache.jobs().view(job_id)
    assert job is not None
    return job


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


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


def test_every_control_explains_itself(opened: Open) -> None:
    page = opened()
    for control in [*page.button, *page.toggle, *page.text_input]:
        assert control.help, control.label
    assert all(chart.proto.alt for chart in page.get("plotly_chart"))


def test_settings_change_the_answer_and_reset(opened: Open) -> None:
    page = opened(text=TEXT, attack="mlc")
    page.session_state["more-settings"] = True
    page.run()
    n_before = html(page).count("ls-wrong")
    page.number_input(key="setting-mlc-size_factor").set_value(10.0).run()
    assert not page.exception and not page.error
    assert html(page).count("ls-wrong") > n_before, "a longer text is taken for granted"
    page.button(key="reset-mlc").click().run()
    assert html(page).count("ls-wrong") == n_before


@pytest.mark.parametrize("name", [n for n, e in INVERSION_ATTACKS.items() if not e.is_baseline])
def test_adjustable_settings_are_declared_and_can_be_drawn(opened: Open, name: str) -> None:
    adjustable = adjustable_settings(name)
    assert adjustable, "something can be changed without training anew"
    page = opened(text=TEXT, attack=name)
    page.session_state["more-settings"] = True
    page.run()
    assert not page.exception
    drawn = [*page.number_input, *page.selectbox, *page.toggle]
    assert {f"setting-{name}-{key}" for key in adjustable} <= {w.key for w in drawn}
    assert all(widget.help for widget in drawn)
