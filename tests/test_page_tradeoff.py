from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core.studies.tradeoff_summary import SHIPPED, load_tradeoff
from dashboard import state
from dashboard.tradeoff import state as tradeoff_state

TEXT = "The harbour master counted twelve ships."
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit(**address: str) -> AppTest:
        small_app.run()
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/tradeoff.py").run()
        assert not small_app.exception
        return small_app

    return visit


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert "leaks least of what stays useful" in page.title[0].value and not page.error
    n_points = len(load_tradeoff(SHIPPED / "minilm.json").points)
    assert len(page.dataframe[0].value) == n_points


def test_a_link_opens_task_and_text(opened: Open) -> None:
    page = opened(text=TEXT, task="TREC")
    assert "TREC" in " ".join(m.value for m in page.markdown)
    assert page.text_input(key=state.TEXT_KEY).value == TEXT


def test_an_unknown_task_is_ignored(opened: Open) -> None:
    assert not opened(task="nonsense").error


def test_every_setting_can_be_seen_on_a_sentence(opened: Open) -> None:
    page = opened(text=TEXT)
    points = load_tradeoff(SHIPPED / "minilm.json").points
    seen = set()
    for i, point in enumerate(points):
        if point.defence in seen:
            continue
        seen.add(point.defence)
        page.selectbox(key=tradeoff_state.POINT_KEY).set_value(i).run()
        assert not page.exception and not page.error
        if point.defence == "text_to_text":
            assert "came back unchanged" in html(page)
    assert len(seen) == 10


@pytest.mark.parametrize(("text", "told"), [("", "empty"), ("null\0byte", "null byte")])
def test_bad_input_is_told(opened: Open, text: str, told: str) -> None:
    page = opened()
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    assert not page.exception
    assert told in " ".join(e.value for e in page.error)


@pytest.mark.parametrize("defence", ["token_representation", "sequence_representation"])
def test_a_mechanism_is_shown_with_what_its_eta_promises(opened: Open, defence: str) -> None:
    page = opened(text=TEXT)
    points = load_tradeoff(SHIPPED / "minilm.json").points
    index = next(i for i, point in enumerate(points) if point.defence == defence)
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(index).run()
    told = " ".join(m.value for m in page.markdown).replace("\\", "")
    eta = dict(points[index].settings)["eta"]
    assert f"At η = {eta:g} the output can tell" in told and "odds of up to" in told
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(0).run()
    assert "odds of up to" not in " ".join(m.value for m in page.markdown)
    table = page.dataframe[0].value
    assert "10^" in table["promise"][index] and table["promise"][0] == "none"
