from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import bundled_sentences
from core.figures.tradeoff import READABLE, READABLE_MARK, attacker_said
from core.results import Score
from core.studies.registry import STUDIES
from core.studies.tradeoff_choice import (
    LEAKS_LEAST,
    SHARE,
    attacked,
    choose,
    is_readable_and_worse,
    keeps,
    to_compare,
)
from core.studies.tradeoff_files import SHIPPED, load_rows, shipped_tradeoff
from core.studies.tradeoff_said import ATTACKERS_SINCE, OF_TOKENS
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_summary import Tradeoff, summarise
from core.studies.tradeoff_told import title_said
from core.tasks.names import USES, task_said, use_of
from dashboard import cache, state
from dashboard.tradeoff import controls, finding, tried
from dashboard.tradeoff import state as tradeoff_state
from dashboard.tradeoff.state import name_of

TEXT = "The harbour master counted twelve ships."
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit(**address: str) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/tradeoff.py").run()
        assert not small_app.exception
        return small_app

    return visit


def opening(found: Tradeoff) -> str:
    return found.opening_task(found.uses[0])


def pick_task(page: AppTest, found: Tradeoff, task: str) -> None:
    page.session_state[tradeoff_state.USE_KEY] = use_of(found.measures[task])
    page.session_state[tradeoff_state.TASK_KEY] = task


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert not page.error
    found = shipped_tradeoff("minilm")
    task = opening(found)
    chosen = choose(found, task)
    assert title_said(chosen, task, SHARE) in page.title[0].value
    assert f"corrected for choosing among {chosen.n_compared} settings" in " ".join(
        m.value for m in page.markdown
    )
    tasks, points = (frame.value for frame in page.dataframe)
    shown = attacked(found, task)
    assert len(tasks) == len(found.tasks) and len(points) == len(shown)
    assert set(points["by"]) == {attacker_said(p.attacker) for p in shown}


def test_the_page_asks_what_the_vectors_are_for_and_opens_on_search(opened: Open) -> None:
    page = opened()
    found = shipped_tradeoff("minilm")
    assert found.uses == list(USES) == ["search", "classification", "similarity"]
    picker = page.segmented_control(key=tradeoff_state.USE_KEY)
    assert picker.value == "search" and picker.options == list(USES.values())
    assert page.segmented_control[0].label == "What are the vectors for?", "it is asked first"
    task = page.session_state[tradeoff_state.TASK_KEY]
    assert task == opening(found) and found.measures[task] in ("recall@1", "precision@1")
    for use in ("classification", "similarity"):
        picker.set_value(use).run()
        task = page.session_state[tradeoff_state.TASK_KEY]
        assert use_of(found.measures[task]) == use and task == found.opening_task(use)
        assert task_said(task) in " ".join(m.value for m in page.markdown)


@pytest.mark.parametrize(
    ("address", "use", "task"),
    [({"task": "TREC"}, "classification", "TREC"), ({"use": "similarity"}, "similarity", "STS-b"),
     ({"use": "search", "task": "STS-b"}, "similarity", "STS-b")],
)  # fmt: skip
def test_an_address_names_a_use_or_a_task(
    opened: Open, address: dict[str, str], use: str, task: str
) -> None:
    page = opened(**address)
    assert not page.warning
    assert page.session_state[tradeoff_state.USE_KEY] == use
    assert page.session_state[tradeoff_state.TASK_KEY] == task


def test_what_releases_readable_text_says_so_beside_its_point(opened: Open) -> None:
    page = opened(task="SST-2")
    found = shipped_tradeoff("minilm")
    worse = [p for p in attacked(found, "SST-2")
             if is_readable_and_worse(p, found.undefended)]  # fmt: skip
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    labels = next(t for t in figure["data"] if t.get("mode") == "text")
    assert len(labels["text"]) == len(worse) > 3 and set(labels["text"]) == {READABLE_MARK}
    assert READABLE in " ".join(c.value for c in page.caption)
    beside = list(page.dataframe[1].value["beside none"])
    assert beside.count(f"more than without a defence: {READABLE}") == len(worse)
    assert "significantly less" in beside and beside[0] == ""


def test_settings_not_measured_for_a_task_are_named(opened: Open) -> None:
    page = opened(task="QQP")
    found = shipped_tradeoff("minilm")
    missing = [p for p in found.points if "QQP" not in p.utility]
    told = next(c.value for c in page.caption if "not measured for this" in c.value)
    assert told.startswith(f"{len(missing)} settings were") and missing
    assert all(entry_shown(p.defence).title in told for p in missing)


def test_ring_box_and_headline_agree_until_the_reader_picks(opened: Open) -> None:
    page = opened()
    found = shipped_tradeoff("minilm")

    def compared(task: str, share: float = SHARE) -> str:
        return name_of(to_compare(found, task, choose(found, task, share)))

    first = opening(found)
    other = next(task for task in found.tasks if compared(task) != compared(first))

    def box() -> str:
        return page.selectbox(key=tradeoff_state.POINT_KEY).value

    assert box() == compared(first)
    pick_task(page, found, other)
    page.run()
    assert box() == compared(other), "another task, another headline: the box follows"
    page.session_state[tradeoff_state.SHARE_KEY] = 99
    page.run()
    assert box() == compared(other, 0.99)
    picked = name_of(found.points[7])
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(picked).run()
    pick_task(page, found, first)
    page.run()
    assert box() == picked, "what the reader picked stands"
    page.button(key="forget_pick").click().run()
    assert box() == compared(first, 0.99)


def test_where_nothing_surely_keeps_enough_the_page_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shipped_tradeoff("minilm")
    base = found.undefended
    poor = [p for p in attacked(found, "SST-2")
            if p is not base and not keeps(p, base, "SST-2", SHARE)]  # fmt: skip
    assert poor
    monkeypatch.setattr(cache, "tradeoff", lambda on: replace(found, points=(base, *poor)))
    page = opened(task="SST-2")
    assert page.title[0].value == (
        "For film reviews, whole sentences: liked or not (SST-2): no tested defence is shown to "
        "lose at most 3.1 points"
    )
    assert "No tested setting is shown to lose so little (90 % of the way" in " ".join(
        m.value for m in page.markdown
    )
    compared = page.selectbox(key=tradeoff_state.POINT_KEY).value
    assert compared in map(name_of, poor), "no defence against itself compares nothing"
    assert page.selectbox(key=tradeoff_state.AGAINST_KEY).value == "none"


def test_what_is_not_told_apart_from_no_defence_is_no_winner(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shipped_tradeoff("minilm")
    base = found.undefended
    alike = next(p for p in found.points if p.defence == "int8")
    monkeypatch.setattr(cache, "tradeoff", lambda on: replace(found, points=(base, alike)))
    page = opened()
    choice = choose(cache.tradeoff(None), opening(cache.tradeoff(None)))
    assert choice.best is alike and not choice.helps, "else this test is of nothing"
    said = " ".join(m.value for m in page.markdown)
    assert "leaks significantly less than no defence" in said and "leaks least" not in said
    assert LEAKS_LEAST["words"] not in said
    for point in (alike, base):
        assert choice.leak(point).said(0) in said
    assert all("leaks least" not in str(cell) for cell in page.dataframe[0].value["best"])
    assert page.dataframe[0].value["best"][0].startswith("none significantly less; nearest ")
    sides = [page.selectbox(key=key).value for key in tradeoff_state.SIDES.values()]
    assert sides == [name_of(alike), name_of(base)]


def test_the_letters_in_the_figure_are_explained_where_they_are_drawn(opened: Open) -> None:
    page = opened()
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    rings = {t["text"][0]: t for t in figure["data"] if str(t.get("name")).startswith("ring ")}
    caption = next(c.value for c in page.caption if "The rings are" in c.value)
    for side, key in tradeoff_state.SIDES.items():
        said = controls.setting_said(page.selectbox(key=key).value)
        ring = rings[f"<b>{side}</b>"]
        assert ring["name"] == f"ring {side}: {said}" and ring.get("showlegend", True)
        assert f"**{side}** is {said}" in caption
    assert len({page.selectbox(key=key).value for key in tradeoff_state.SIDES.values()}) == 2


def test_no_column_fills_a_telephone(opened: Open) -> None:
    for frame in opened().dataframe:
        columns = json.loads(frame.proto.columns)
        assert not [name for name, each in columns.items() if each.get("pinned")]


def test_each_attacker_is_shown_on_demand(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shipped_tradeoff("minilm")
    points = tuple(replace(p, leaks={"tuned": p.leakage, "search": p.leakage})
                   for p in found.points)  # fmt: skip
    monkeypatch.setattr(cache, "tradeoff", lambda on: replace(found, points=points))
    page = opened()
    assert not [name for name in page.dataframe[1].value if name.startswith("by: ")]
    page.toggle(key="each_attacker").set_value(True).run()
    shown = [name for name in page.dataframe[1].value if name.startswith("by: ")]
    assert shown == ["by: tuned classifier", "by: re-embedding search"]


def test_words_of_all_have_a_column_where_rows_tell_them(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shipped_tradeoff("minilm")
    told = [replace(p, all_words={p.attacker: Score(12.5)}) for p in found.points]
    monkeypatch.setattr(cache, "tradeoff", lambda on: replace(found, points=(*told,)))
    assert set(opened().dataframe[1].value["of all words"]) == {12.5}
    bare = [replace(p, all_words={}) for p in found.points]
    monkeypatch.setattr(cache, "tradeoff", lambda on: replace(found, points=(*bare,)))
    assert "of all words" not in opened().dataframe[1].value


def test_a_link_opens_task_and_text(opened: Open) -> None:
    page = opened(text=TEXT, task="TREC")
    assert "TREC" in " ".join(m.value for m in page.markdown)
    assert page.text_input(key=state.TEXT_KEY).value == TEXT


def test_an_unknown_task_is_ignored(opened: Open) -> None:
    assert not opened(task="nonsense").error


@pytest.fixture
def few_own_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hundredth of the attacker's own texts: a law is learnt in a second, not in ten."""

    def forget() -> None:
        for cached in (tried._own_texts, tried._law):
            cached.clear()

    forget()
    monkeypatch.setattr(tried, "bundled_sentences", lambda: bundled_sentences()[::100])
    yield
    forget()


@pytest.mark.usefixtures("few_own_texts")
def test_every_setting_can_be_seen_on_a_sentence(opened: Open) -> None:
    page = opened(text=TEXT)
    points = shipped_tradeoff("minilm").points
    seen = set()
    for point in points:
        if point.defence in seen:
            continue
        seen.add(point.defence)
        page.selectbox(key=tradeoff_state.POINT_KEY).set_value(name_of(point)).run()
        assert not page.exception and not page.error
        if point.defence == "text_to_text":
            assert "came back unchanged" in html(page)
    assert len(seen) >= 10


@pytest.mark.parametrize(("text", "told"), [("", "empty"), ("null\0byte", "null byte")])
def test_bad_input_is_told(opened: Open, text: str, told: str) -> None:
    page = opened()
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    assert not page.exception
    assert told in " ".join(e.value for e in page.error)


@pytest.mark.parametrize("defence", ["token_representation", "sequence_representation"])
def test_a_mechanism_is_shown_with_what_its_eta_promises(opened: Open, defence: str) -> None:
    page = opened(text=TEXT, task="SST-2")
    points = attacked(shipped_tradeoff("minilm"), "SST-2")
    index = next(i for i, point in enumerate(points) if point.defence == defence)
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(name_of(points[index])).run()
    told = " ".join(m.value for m in page.markdown).replace("\\", "")
    eta = dict(points[index].settings)["eta"]
    assert f"At η = {eta:g} the output can tell" in told and "odds of up to" in told
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value("none").run()
    bare = " ".join(m.value for m in page.markdown)  # the headline may name an η of its own
    assert bare.count("odds of up to") == told.count("odds of up to") - 1
    table = page.dataframe[1].value
    parts = {"token_representation": 3, "sequence_representation": 2}[defence]
    assert table["promise"][index].count("10^") == parts and table["promise"][0] == "none"
    assert ("for a whole sentence of" in told) == (parts == 3)


@pytest.mark.parametrize(("n_texts", "is_said"), [(3000, True), (20_000, False)])
def test_an_attacker_that_learnt_from_few_texts_is_called_a_lower_bound(
    n_texts: int, is_said: bool
) -> None:
    said: list[str] = []

    class Slot:
        def warning(self, text: str, icon: str) -> None:
            said.append(text)

    finding._say_if_weak(Slot(), Tradeoff((), {"n_auxiliary": n_texts}))
    assert bool(said) is is_said
    assert not said or ("A lower bound" in said[0] and "3,000" in said[0])


@pytest.mark.parametrize(("behind", "is_said"), [(1, True), (0, False)])
def test_figures_of_former_attackers_are_called_a_lower_bound(behind: int, is_said: bool) -> None:
    said: list[str] = []
    slot = SimpleNamespace(caption=said.append)
    finding._say_if_weak(slot, Tradeoff((), {"version": ATTACKERS_SINCE - behind}))
    assert bool(said) is is_said and all("A lower bound" in told for told in said)


def test_the_version_of_rows_is_that_of_the_attacks_that_count_and_learn() -> None:
    assert STUDIES["tradeoff"].version >= ATTACKERS_SINCE
    rows = load_rows(SHIPPED / "minilm.json")
    learnt = {p.defence for p in summarise(rows).points if p.attacker not in OF_TOKENS}
    assert "truncation" in learnt and "token_representation" not in learnt
    for defence, counts in (("truncation", True), ("token_representation", False)):
        older = [replace(row, facts={**row.facts, "versions": {"study": 0}})
                 if row["defence"] == defence else row for row in rows]  # fmt: skip
        assert (summarise(older).facts["version"] == 0) is counts
