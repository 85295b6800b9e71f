from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, open_page

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.setting import entry_shown
from leakscope.core.figures.tradeoff import READABLE, READABLE_MARK, format_attacker
from leakscope.core.findings.tradeoff import describe_title
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.registry import STUDIES
from leakscope.core.studies.tradeoff import summary
from leakscope.core.studies.tradeoff.choice import (
    LEAKS_LEAST,
    SHARE,
    attacked_settings,
    choose,
    is_readable_and_worse,
    keeps_share,
    setting_to_compare,
)
from leakscope.core.studies.tradeoff.summary import (
    ATTACKERS_SINCE,
    OF_TOKENS,
    SHIPPED,
    Tradeoff,
    shipped_tradeoff,
    summarise,
)
from leakscope.core.tasks.names import USES, describe_task, use_of
from leakscope.dashboard.tradeoff import live_attack
from leakscope.dashboard.tradeoff import state as tradeoff_state
from leakscope.dashboard.tradeoff.state import setting_name_of

TEXT = "The harbour master counted twelve ships."


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    return partial(open_page, small_app, "tradeoff")


def opening(found: Tradeoff) -> str:
    return found.default_task(found.uses[0])


def pick_task(page: AppTest, found: Tradeoff, task: str) -> None:
    page.session_state[tradeoff_state.USE_KEY] = use_of(found.measures[task])
    page.session_state[tradeoff_state.TASK_KEY] = task


def title(page: AppTest) -> str:
    return str(page.title[0].value).replace("\\", "")


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def test_the_first_visit_asks_for_the_use_and_opens_with_a_finding_on_search(opened: Open) -> None:
    page = opened()
    assert not page.error
    found = shipped_tradeoff()
    task = opening(found)
    chosen = choose(found, task)
    assert describe_title(chosen, task, SHARE) in title(page)
    assert f"corrected for choosing among {chosen.n_compared} settings" in " ".join(
        m.value for m in page.markdown
    )
    _, tasks, points = (frame.value for frame in page.dataframe)
    shown = attacked_settings(found, task)
    assert len(tasks) == len(found.tasks) and len(points) == len(shown)
    assert set(points["by"]) == {format_attacker(p.attacker) for p in shown}
    assert found.uses == list(USES) == ["search", "classification", "similarity"]
    picker = page.segmented_control(key=tradeoff_state.USE_KEY)
    assert picker.value == "search" and picker.options == list(USES.values())
    assert page.segmented_control[0].label == "What are the vectors for?", "it is asked first"
    assert page.session_state[tradeoff_state.TASK_KEY] == task
    assert found.measures[task] in ("recall@1", "precision@1")
    for use in ("classification", "similarity"):
        picker.set_value(use).run()
        task = page.session_state[tradeoff_state.TASK_KEY]
        assert use_of(found.measures[task]) == use and task == found.default_task(use)
        assert f"For {describe_task(task)}, " in title(page)


@pytest.mark.parametrize(
    ("address", "use", "task"),
    [
        ({"task": "TREC"}, "classification", "TREC"),
        ({"use": "similarity"}, "similarity", "STS-b"),
        ({"use": "search", "task": "STS-b"}, "similarity", "STS-b"),
    ],
)
def test_an_address_names_a_use_or_a_task(
    opened: Open, address: dict[str, str], use: str, task: str
) -> None:
    page = opened(**address)
    assert not page.warning
    assert page.session_state[tradeoff_state.USE_KEY] == use
    assert page.session_state[tradeoff_state.TASK_KEY] == task


def test_what_releases_readable_text_says_so_beside_its_point(opened: Open) -> None:
    page = opened(task="SST-2")
    found = shipped_tradeoff()
    worse = [
        p for p in attacked_settings(found, "SST-2") if is_readable_and_worse(p, found.undefended)
    ]
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    labels = next(t for t in figure["data"] if t.get("mode") == "text")
    assert len(labels["text"]) == len(worse) > 3 and set(labels["text"]) == {READABLE_MARK}
    assert READABLE in " ".join(c.value for c in page.caption)
    beside = list(page.dataframe[2].value["beside none"])
    assert beside.count(f"more than without a defence: {READABLE}") == len(worse)
    assert "significantly less" in beside and beside[0] == ""


def test_settings_not_measured_for_a_task_are_named(opened: Open) -> None:
    page = opened(task="QQP")
    found = shipped_tradeoff()
    missing = [p for p in found.points if "QQP" not in p.utility]
    told = next(c.value for c in page.caption if "not measured for this" in c.value)
    assert told.startswith(f"{len(missing)} settings were") and missing
    assert all(entry_shown(p.defence).title in told for p in missing)


@pytest.mark.slow
def test_ring_box_and_headline_agree_until_the_reader_picks(opened: Open) -> None:
    page = opened()
    found = shipped_tradeoff()

    def compared(task: str, share: float = SHARE) -> str:
        return setting_name_of(setting_to_compare(found, task, choose(found, task, share)))

    first = opening(found)
    other = next(task for task in found.tasks if compared(task, 0.99) != compared(first))

    def box() -> str:
        return page.selectbox(key=tradeoff_state.POINT_KEY).value

    assert box() == compared(first)
    pick_task(page, found, other)
    page.session_state[tradeoff_state.SHARE_KEY] = 99
    page.run()
    assert box() == compared(other, 0.99), "another task, another headline: the box follows"
    picked = setting_name_of(found.points[7])
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(picked).run()
    pick_task(page, found, first)
    page.run()
    assert box() == picked, "what the reader picked stands"
    page.button(key="forget_pick").click().run()
    assert box() == compared(first, 0.99)


def test_where_nothing_surely_keeps_enough_the_page_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shipped_tradeoff()
    base = found.undefended
    poor = [
        p
        for p in attacked_settings(found, "SST-2")
        if p is not base and not keeps_share(p, base, "SST-2", SHARE)
    ]
    assert poor
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: replace(found, points=(base, *poor)))
    page = opened(task="SST-2")
    assert title(page) == (
        "For film reviews, whole sentences: liked or not (SST-2), no tested defence was shown to "
        "keep 90 % of the advantage over guessing"
    )
    told = " ".join(m.value for m in page.markdown)
    assert "No tested setting was shown to keep this much utility." in told
    assert "To keep 90 % of the advantage over guessing" in told
    assert "a setting may lose at most 3.1 points" in told
    compared = page.selectbox(key=tradeoff_state.POINT_KEY).value
    assert compared in map(setting_name_of, poor), "no defence against itself compares nothing"
    assert page.selectbox(key=tradeoff_state.AGAINST_KEY).value == "none"


def test_what_is_not_told_apart_from_no_defence_is_no_winner(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shipped_tradeoff()
    base = found.undefended
    alike = next(p for p in found.points if p.defence == "int8")
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: replace(found, points=(base, alike)))
    page = opened()
    choice = choose(summary.shipped_tradeoff(), opening(summary.shipped_tradeoff()))
    assert choice.best is alike and not choice.helps, "else this test is of nothing"
    said = " ".join(m.value for m in page.markdown).replace("**", "")
    assert "not significantly less than without a defence" in said and "leaks least" not in said
    assert LEAKS_LEAST["words"] not in said
    for point in (alike, base):
        assert choice.leak(point).in_text(0) in said
    assert all("leaks least" not in str(cell) for cell in page.dataframe[1].value["best"])
    assert page.dataframe[1].value["best"][0].startswith("none significantly less; at best ")
    sides = [page.selectbox(key=key).value for key in tradeoff_state.SIDES.values()]
    assert sides == [setting_name_of(alike), setting_name_of(base)]


@pytest.fixture
def few_own_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hundredth of the attacker's own texts: a law is learnt in a second, not in ten."""

    def forget() -> None:
        for cached in (live_attack._attacker_texts, live_attack._mechanism_law):
            cached.clear()

    forget()
    monkeypatch.setattr(live_attack, "bundled_sentences", lambda: bundled_sentences()[::100])
    yield
    forget()


@pytest.mark.slow
@pytest.mark.usefixtures("few_own_texts")
def test_every_setting_can_be_seen_on_a_sentence(opened: Open) -> None:
    page = opened(text=TEXT)
    settings = {p.defence: setting_name_of(p) for p in reversed(shipped_tradeoff().points)}
    assert len(settings) >= 10
    names = list(settings)
    for pair in (names[i : i + 2] for i in range(0, len(names), 2)):
        for key, name in zip(tradeoff_state.SIDES.values(), pair, strict=False):
            page.selectbox(key=key).set_value(settings[name])
        page.run()
        assert not page.exception and not page.error
        if "text_to_text" in pair:
            assert "came back unchanged" in html(page)


@pytest.mark.slow
@pytest.mark.usefixtures("few_own_texts")
@pytest.mark.parametrize("defence", ["token_representation", "sequence_representation"])
def test_a_mechanism_is_shown_with_what_its_eta_promises(opened: Open, defence: str) -> None:
    page = opened(text=TEXT, task="SST-2")
    points = attacked_settings(shipped_tradeoff(), "SST-2")
    index = next(i for i, point in enumerate(points) if point.defence == defence)
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value(setting_name_of(points[index])).run()
    told = " ".join(m.value for m in page.markdown).replace("\\", "")
    eta = dict(points[index].settings)["eta"]
    assert f"At η = {eta:g}, whoever sees the output may tell apart" in told
    page.selectbox(key=tradeoff_state.POINT_KEY).set_value("none").run()
    bare = " ".join(m.value for m in page.markdown)  # the headline may name an η of its own
    shift = "whoever sees the output may tell apart"
    assert bare.count(shift) == told.count(shift) - 1
    table = page.dataframe[2].value
    parts = {"token_representation": 3, "sequence_representation": 2}[defence]
    assert table["promise"][index].count("10") == parts and table["promise"][0] == "none"
    assert ("for a whole sentence of" in told) == (parts == 3)


def test_the_version_of_rows_is_that_of_the_attacks_that_count_and_learn() -> None:
    assert STUDIES["tradeoff"].version >= ATTACKERS_SINCE
    rows = read_rows(SHIPPED / "tradeoff.json", "tradeoff")
    learnt = {p.defence for p in summarise(rows).points if p.attacker not in OF_TOKENS}
    assert "truncation" in learnt and "token_representation" not in learnt
    for defence, counts in (("truncation", True), ("token_representation", False)):
        older = [
            replace(row, facts={**row.facts, "versions": {"study": 0}})
            if row["defence"] == defence
            else row
            for row in rows
        ]
        assert (summarise(older).facts["version"] == 0) is counts
