"""What the page of trade-offs and its slide say of a choice: nothing safer than was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.results import Interval, Score
from core.story.views_defend import defences
from core.studies.eta_outlook import kept_of
from core.studies.tradeoff_choice import (
    SHARE,
    Choice,
    attacked,
    beside_none,
    choose,
    high,
    keeps,
    leak_of,
    low,
    unproven,
)
from core.studies.tradeoff_files import shipped_tradeoff
from core.studies.tradeoff_summary import Tradeoff
from core.studies.tradeoff_told import (
    KEEPS,
    beyond_said,
    elsewhere_said,
    kept_said,
    others_said,
    point_said,
    store_said,
    title_said,
    unproven_said,
)
from core.tasks.names import use_of


@pytest.fixture(scope="module")
def shipped() -> Tradeoff:
    return shipped_tradeoff("minilm")


def helpless(found: Tradeoff) -> list[str]:
    return [task for task in found.tasks if not choose(found, task).helps]


def test_what_too_few_texts_show_is_not_said_to_be_no_help(shipped: Tradeoff) -> None:
    tasks = helpless(shipped)
    assert tasks
    for task in tasks:
        choice, point = choose(shipped, task), unproven(shipped, task)
        assert f"({task}): no " in title_said(choice, task, SHARE)
        if point is None:
            continue
        told = unproven_said(choice, point, task)
        assert point_said(point) in told and f"{point.utility[task].n:,} texts" in told
        assert kept_said(point, choice.base, task) in told and "not resolvable" in told
        assert told in defences(task=task).body


def test_a_headline_is_of_its_task_and_the_page_says_what_is_best_on_others(
    shipped: Tradeoff,
) -> None:
    for task in shipped.tasks:
        choice = choose(shipped, task)
        assert f"({task})" in title_said(choice, task, SHARE)
        assert f"({task})" in defences(task=task).title
    told = elsewhere_said(shipped, "QQP", SHARE, "words")
    other = choose(shipped, "BANKING77-search")
    assert other.best is not None and point_said(other.best) in told
    assert other.leak(other.best).said(0) in told
    helped = [t for t in shipped.tasks if use_of(shipped.measures[t]) == "classification"
              and t != "SST-2" and choose(shipped, t).helps]  # fmt: skip
    assert f"for {len(helped)} of the 6 others" in elsewhere_said(shipped, "SST-2", SHARE, "words")


def test_the_setting_that_may_keep_enough_keeps_it_by_value_alone(shipped: Tradeoff) -> None:
    base, seen = shipped.undefended, 0
    for task in shipped.tasks:
        point = unproven(shipped, task)
        if point is None:
            continue
        seen += 1
        assert keeps(point, base, task, SHARE, is_shown=False)
        assert not keeps(point, base, task, SHARE), "else it is one to choose"
        assert beside_none(leak_of(point), leak_of(base)) == ""
        others = [p for p in attacked(shipped, task)
                  if keeps(p, base, task, SHARE, is_shown=False)
                  and not keeps(p, base, task, SHARE) and p is not base]  # fmt: skip
        least = min(others, key=lambda p: leak_of(p).value)
        assert leak_of(point).value == pytest.approx(leak_of(least).value, abs=3)
    assert seen


def test_where_a_defence_helps_nothing_unproven_is_offered(shipped: Tradeoff) -> None:
    task = next(t for t in shipped.tasks if choose(shipped, t).helps)
    assert "may keep enough" not in defences(task=task).body


def test_search_says_among_how_many_texts(shipped: Tradeoff) -> None:
    stored = {"QQP": "2,000", "BANKING77-search": "1,540"}
    for task in shipped.tasks:
        told = store_said(shipped, task)
        assert bool(told) == (use_of(shipped.measures[task]) == "search")
        assert not told or f"{stored[task]} stored texts" in told
    bare = replace(shipped, facts={})
    assert store_said(bare, "QQP") == "", "nothing is made up where it was not kept"


def test_a_setting_for_one_use_says_what_it_costs_others(shipped: Tradeoff) -> None:
    best = choose(shipped, "QQP").best
    assert best is not None
    kept = kept_of(best, shipped.undefended)
    told = others_said(shipped, best)
    assert f"{100 * min(kept.values()):.0f} %" in told and f"all {len(kept)} tasks" in told


def test_the_slide_keeps_what_the_page_warns_of(shipped: Tradeoff) -> None:
    slide = defences(task="QQP")
    told_there = f"{slide.body} {slide.facts}"
    choice = choose(shipped, "QQP")
    assert choice.best is not None and choice.promising is not choice.best
    for told in (
        "It promises nothing.",
        others_said(shipped, choice.best, is_brief=True),
        elsewhere_said(shipped, "QQP", SHARE, "words", is_brief=True),
        "among 2,000 stored (the largest store measured)",
        f"corrected for choosing among {choice.n_compared} settings",
        "one seed; invented ones; a lower bound; guessing 2.5 %; without a defence 92, 23 and 41 %",
    ):
        assert told and told in told_there
    assert choice.alike and slide.table is not None
    named = {row[0] for row in slide.table.rows}
    assert {point_said(point) for point in choice.alike} <= named


def test_what_decides_whether_a_setting_is_useful_enough_is_what_is_told(shipped: Tradeoff) -> None:
    base = shipped.undefended
    for task in shipped.tasks:
        worth = base.utility[task].value - base.utility[task].chance
        for point in attacked(shipped, task):
            if point is base:
                continue
            change = point.change[task]
            assert f"{change.said(1)} on the same texts" in kept_said(point, base, task)
            assert keeps(point, base, task, SHARE) == (low(change) >= (SHARE - 1) * worth)
    assert "its difference from no defence, on the same texts" in KEEPS


def test_what_else_leaks_more_or_was_not_tested_is_told_of_a_setting(shipped: Tradeoff) -> None:
    base = shipped.undefended
    for point in shipped.points:
        told = beyond_said(point, base, "words")
        for what, said in (("attribute", "an attribute"), ("membership", "in the training")):
            is_tested = bool(point.read_by(what))
            is_more = is_tested and low(leak_of(point, what)) > high(leak_of(base, what))
            assert (said in told) == (is_more or not is_tested)
        assert ("no evidence of safety" in told) == ("Not tested" in told)
    best = choose(shipped, "QQP").best
    assert best is not None and not best.read_by("membership"), "else the next line is of nothing"
    assert beyond_said(best, base, "words") in str(defences(task="QQP").facts)


def test_what_leaks_is_told_with_its_unit(shipped: Tradeoff) -> None:
    leak = {"any": Score(12.0, Interval(11, 13), 100, 2.0)}
    point = replace(shipped.undefended, leaks=leak, attribute=leak, membership=leak)
    for reads, said in (
        ("words", "F1 12"),
        ("attribute", "12 % of texts"),
        ("membership", "AUC 12"),
    ):
        choice = Choice(None, point, point, (), reads)
        assert not choice.helps
        assert f"{said} at the least, {said} without" in title_said(choice, "QQP", SHARE)
