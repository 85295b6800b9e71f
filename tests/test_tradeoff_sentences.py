"""What the page of trade-offs and its slide say of a choice: nothing safer than was measured."""

from __future__ import annotations

import pytest

from leakscope.core.findings.tradeoff import (
    KEEPS,
    defence_to_take,
    defences,
    describe_beyond,
    describe_elsewhere,
    describe_kept,
    describe_point,
    describe_title,
    describe_unproven,
)
from leakscope.core.studies.tradeoff.choice import (
    SHARE,
    attacked_settings,
    beside_none,
    choose,
    high,
    keeps_share,
    leak_of,
    low,
    unproven,
)
from leakscope.core.studies.tradeoff.summary import Tradeoff, shipped_tradeoff
from leakscope.core.tasks.names import use_of


@pytest.fixture(scope="module")
def shipped() -> Tradeoff:
    return shipped_tradeoff()


def helpless(found: Tradeoff) -> list[str]:
    return [task for task in found.tasks if not choose(found, task).helps]


def test_what_too_few_texts_show_is_not_said_to_be_no_help(shipped: Tradeoff) -> None:
    tasks = helpless(shipped)
    assert tasks
    for task in tasks:
        choice, point = choose(shipped, task), unproven(shipped, task)
        assert f"({task}), no " in describe_title(choice, task, SHARE)
        if point is None:
            continue
        told = describe_unproven(choice, point, task)
        assert describe_point(point) in told and f"{point.utility[task].n:,} texts" in told
        assert describe_kept(point, choice.base, task) in told and "not resolvable" in told
        assert told in defences(task=task).body


@pytest.mark.slow
def test_a_headline_is_of_its_task_and_the_page_says_what_is_best_on_others(
    shipped: Tradeoff,
) -> None:
    for task in shipped.tasks:
        choice = choose(shipped, task)
        assert f"({task})" in describe_title(choice, task, SHARE)
        assert f"({task})" in defences(task=task).title
    told = defence_to_take(shipped, "QQP", SHARE, rings={}).body
    other = choose(shipped, "BANKING77-search")
    assert other.best is not None and describe_point(other.best) in told
    assert other.leak(other.best).in_text(0, is_inside=True) in told
    helped = [
        t
        for t in shipped.tasks
        if use_of(shipped.measures[t]) == "classification"
        and t != "SST-2"
        and choose(shipped, t).helps
    ]
    assert f"for {len(helped)} of the 6 other tasks" in describe_elsewhere(
        shipped, "SST-2", SHARE, "words"
    )


def test_the_setting_that_may_keep_enough_keeps_it_by_value_alone(shipped: Tradeoff) -> None:
    base, seen = shipped.undefended, 0
    for task in shipped.tasks:
        point = unproven(shipped, task)
        if point is None:
            continue
        seen += 1
        assert keeps_share(point, base, task, SHARE, is_shown=False)
        assert not keeps_share(point, base, task, SHARE), "else it is one to choose"
        assert beside_none(leak_of(point), leak_of(base)) == ""
        others = [
            p
            for p in attacked_settings(shipped, task)
            if keeps_share(p, base, task, SHARE, is_shown=False)
            and not keeps_share(p, base, task, SHARE)
            and p is not base
        ]
        least = min(others, key=lambda p: leak_of(p).value)
        assert leak_of(point).value == pytest.approx(leak_of(least).value, abs=3)
    assert seen


def test_where_a_defence_helps_nothing_unproven_is_offered(shipped: Tradeoff) -> None:
    task = next(t for t in shipped.tasks if choose(shipped, t).helps)
    assert "may keep enough" not in defences(task=task).body


def test_what_decides_whether_a_setting_is_useful_enough_is_what_is_told(shipped: Tradeoff) -> None:
    base = shipped.undefended
    for task in shipped.tasks:
        worth = base.utility[task].value - base.utility[task].chance
        choice = choose(shipped, task)
        for point in attacked_settings(shipped, task):
            if point is base:
                continue
            change = point.change[task]
            assert f"{change.in_text(1)} on the same texts" in describe_unproven(
                choice, point, task
            )
            assert keeps_share(point, base, task, SHARE) == (low(change) >= (SHARE - 1) * worth)
    assert "with no defence on the same texts" in KEEPS
    assert "loses no more than allowed even at the worse end of the 95 % CI" in KEEPS


def test_what_else_leaks_more_or_was_not_tested_is_told_of_a_setting(shipped: Tradeoff) -> None:
    base = shipped.undefended
    for point in shipped.points:
        told = describe_beyond(point, base, "words")
        for what, said in (("attribute", "an attribute"), ("membership", "training texts")):
            is_tested = bool(point.read_by(what))
            is_more = is_tested and low(leak_of(point, what)) > high(leak_of(base, what))
            assert (said in told) == (is_more or not is_tested)
        assert ("no evidence of safety" in told) == ("these attacks were not tested" in told)
    best = choose(shipped, "QQP").best
    assert best is not None and not best.read_by("membership"), "else the next line is of nothing"
    assert describe_beyond(best, base, "words") in str(defences(task="QQP").facts)
