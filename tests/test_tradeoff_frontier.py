from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from leakscope.core.defences.registry import guarantee_of
from leakscope.core.defences.setting import (
    NO_PROMISE,
    can_follow,
    describe_promise,
    first_of,
    read_setting,
    setting_name,
)
from leakscope.core.results import Interval, Score
from leakscope.core.studies.tradeoff.choice import (
    attacked_targets,
    choose,
    frontier,
    steps,
    untimed,
    within_time,
)
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff, promises, shipped_tradeoff


def score(value: float, half: float = 0.0, chance: float = 0.0) -> Score:
    return Score(value, Interval(value - half, value + half), 9, chance)


def point(
    name: str, useful: tuple[float, float], leaks: tuple[float, float], **settings: object
) -> Point:
    return Point(
        name,
        tuple(settings.items()),
        {"MR": score(*useful, chance=50)},
        {"tuned": score(*leaks, chance=3)},
        None,
    )


BASE = point("none", (90, 1), (60, 1))
GOOD = point("gaussian", (70, 2), (20, 2), sigma=0.1)
WEAK = point("gaussian", (80, 1), (40, 2), sigma=0.05)
WORSE = point("rounding", (66, 1), (30, 2), decimals=1)
UNSURE = point("binary", (78, 4), (38, 4))


def study(*points: Point) -> Tradeoff:
    return Tradeoff((BASE, *points), {}, {"MR": "accuracy"})


def test_a_limit_of_time_keeps_what_is_no_slower_what_was_not_timed_and_no_defence() -> None:
    base, quick, slow = (
        replace(p, milliseconds=t) for p, t in ((BASE, 5.0), (GOOD, 4.0), (WEAK, 4.01))
    )
    found = Tradeoff((base, quick, slow, UNSURE), {}, {"MR": "accuracy"})
    assert within_time(found, None) is found
    assert within_time(found, 4.0).points == (base, quick, UNSURE)
    assert within_time(found, 0.001).points == (base, UNSURE), "all are held against no defence"
    assert untimed(within_time(found, 4.0)) == [UNSURE]
    assert choose(within_time(found, 4.0), "MR", 0.4).best is quick
    slower = Tradeoff((base, replace(GOOD, milliseconds=9.0), slow), {}, {"MR": "accuracy"})
    assert choose(slower, "MR", 0.4).best is slower.points[1]
    assert choose(within_time(slower, 5.0), "MR", 0.4).best is slow


def wider(n: int) -> float:
    """Return by how much an interval of leakage is wider where n settings are compared."""
    return float(ndtri(1 - 0.025 / n) / ndtri(0.975))


def test_the_frontier_is_that_worked_by_hand() -> None:
    edge = frontier(study(WEAK, WORSE, GOOD, UNSURE), "MR")
    # WORSE is useful to 67 and leaks 27.4 at best: GOOD, at worst, is to 68 and leaks 22.6.
    assert edge.members == (GOOD, UNSURE, WEAK, BASE)
    # At worst GOOD, WEAK and BASE, with leaks corrected for five; WORSE and UNSURE add nothing.
    w = wider(5)
    good, weak, base = 20 + 2 * w, 40 + 2 * w, 60 + w
    assert np.allclose(
        edge.surely, [(65, good), (68, good), (68, weak), (79, weak), (79, base), (89, base)]
    )
    # At best GOOD, UNSURE and BASE; WEAK adds nothing.
    good, unsure, base = 20 - 2 * w, 38 - 4 * w, 60 - w
    assert np.allclose(
        edge.perhaps, [(65, good), (72, good), (72, unsure), (82, unsure), (82, base), (91, base)]
    )


def test_equals_beat_nobody_and_without_an_interval_the_value_counts() -> None:
    twin = replace(GOOD, defence="rounding")
    assert frontier(study(GOOD, twin), "MR").members == (GOOD, twin, BASE)
    bare = replace(GOOD, leaks={"tuned": Score(20.0)}, utility={"MR": Score(70.0)})
    assert (70.0, 20.0) in frontier(study(bare), "MR").surely
    assert frontier(Tradeoff((), {}), "MR").members == ()


def test_steps_take_the_least_that_is_reached_from_each_usefulness_on() -> None:
    assert steps([(3.0, 1.0)], 0.0) == ((0.0, 1.0), (3.0, 1.0))
    assert steps([(3.0, 1.0), (3.0, 2.0), (2.0, 1.0)], 0.0) == ((0.0, 1.0), (3.0, 1.0))
    assert steps([], 0.0) == ()


def test_the_frontier_of_what_ships_lies_within_its_band() -> None:
    found = shipped_tradeoff()
    n_beaten = {}
    for task in found.tasks:
        edge = frontier(found, task)
        assert found.undefended in edge.members

        def least(corners: tuple[tuple[float, float], ...], at: float) -> float:
            return min(leaks for useful, leaks in corners if useful >= at)

        for useful, leaks in edge.surely:
            assert least(edge.perhaps, useful) <= leaks
        measured = [point for point in found.points if task in point.utility]
        for point in measured:
            value, leak = point.utility[task].value, point.leakage.value
            assert least(edge.perhaps, value) <= leak
        n_beaten[task] = len(measured) - len(edge.members)
    support = [task for task in found.tasks if "BANKING77" in task]
    assert support, "measured for fewer settings than the other tasks"
    assert all(n > 0 for task, n in n_beaten.items() if task not in support), n_beaten


def with_reads(plain: Point, attribute: float, members: float) -> Point:
    return replace(
        plain,
        attribute={"linear": score(attribute, 1, 10)},
        membership={"threshold": score(members, 2, 50), "feature": score(50, 2, 50)},
    )


def test_the_choice_goes_by_what_the_attacker_is_after() -> None:
    good, weak = with_reads(GOOD, 30, 70), with_reads(WEAK, 10, 52)
    found = Tradeoff((with_reads(BASE, 40, 71), good, weak), {}, {"MR": "accuracy"})
    assert attacked_targets(found) == ["words", "attribute", "membership"]
    assert choose(found, "MR", 0.4).best is good
    assert choose(found, "MR", 0.4, "attribute").best is weak
    by_members = choose(found, "MR", 0.4, "membership")
    assert by_members.best is weak and by_members.helps
    assert by_members.leak(weak).value == 52, "the stronger of two attacks"
    edge = frontier(found, "MR", "attribute")
    assert edge.members == (weak, found.undefended), "GOOD is less useful and leaks more"
    assert len(frontier(found, "MR").members) == 3


def test_what_was_not_attacked_is_not_offered_and_not_chosen() -> None:
    found = Tradeoff((with_reads(BASE, 40, 71), GOOD, with_reads(WEAK, 10, 52)), {})
    assert choose(found, "MR", 0.1, "attribute").best is found.points[2]
    assert attacked_targets(study(GOOD)) == ["words"]
    assert attacked_targets(Tradeoff((BASE, with_reads(GOOD, 1, 50)), {})) == ["words"], (
        "nought to hold to"
    )


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "int8",
        "text_to_text:eta=75",
        "text_to_text:eta=60+int8",
        "gaussian:sigma=0.05",
        "truncation:dimension=96",
        "custext:epsilon=4,k=20,mapping=aggressive",
        "santext:epsilon=12.5+truncation:dimension=48+int8",
    ],
)
def test_a_name_is_read_as_it_was_written(name: str) -> None:
    spec = read_setting(name)
    assert setting_name(spec.name, dict(spec.settings)) == name


def test_names_of_what_ships_are_different() -> None:
    points = shipped_tradeoff().points
    names = [setting_name(p.defence, dict(p.settings)) for p in points]
    assert len(set(names)) == len(names)


def test_a_set_of_its_own_for_each_token_promises_nothing() -> None:
    shared = point("custext", (70, 1), (20, 1), epsilon=4.0)
    alone = point("custext", (70, 1), (20, 1), epsilon=4.0, mapping="aggressive")
    chained = point("custext+int8", (70, 1), (20, 1), **{"custext.mapping": "aggressive"})
    assert promises(shared) and not promises(alone) and not promises(chained)
    assert describe_promise(read_setting("custext:mapping=aggressive+int8")) == NO_PROMISE
    assert "the set is visible" in describe_promise(read_setting("custext"))
    chosen = choose(Tradeoff((BASE, alone), {}), "MR", 0.1)
    assert chosen.promising is None and chosen.measured is alone


def test_a_promise_is_of_what_is_read() -> None:
    """What hides a token says nothing of members, and what hides members nothing of tokens."""
    noise = point("text_to_text", (70, 1), (20, 1), eta=60.0)
    head = point("private_head", (70, 1), (60, 1), epsilon=8.0)
    assert promises(noise) and promises(noise, "attribute") and not promises(noise, "membership")
    assert not promises(head) and promises(head, "membership")


def test_a_classifier_without_noise_promises_nothing_and_is_not_chosen_as_if_it_did() -> None:
    told = {"attack": score(80, 1, 50)}
    free, kept = (
        replace(point("private_head", (85, 1), (60, 1), epsilon=e), membership=told)
        for e in (0.0, 8.0)
    )
    assert promises(kept, "membership") and not promises(free, "membership")
    assert guarantee_of(free.spec) == "" and "(ε, δ)" in guarantee_of(kept.spec)
    assert describe_promise(free.spec) == "none, because with ε = 0 it is trained without noise"
    base = replace(BASE, membership={"attack": score(90, 1, 50)})
    chosen = choose(Tradeoff((base, free), {}), "MR", 0.1, "membership")
    assert chosen.promising is None and chosen.measured is free
    chosen = choose(Tradeoff((base, free, kept), {}), "MR", 0.1, "membership")
    assert chosen.promising is kept


def test_a_task_without_a_classifier_chooses_none_that_was_trained_in_private() -> None:
    told = {"attack": score(80, 1, 50)}
    base = replace(BASE, membership=told)
    head = replace(
        point("private_head", (90, 1), (60, 1), epsilon=8.0),
        membership={"attack": score(55, 1, 50)},
    )
    chosen = choose(Tradeoff((base, head), {}), "MR", 0.9, "membership")
    assert chosen.best is head
    lent = replace(head, as_without=frozenset({"MR"}))
    assert choose(Tradeoff((base, lent), {}), "MR", 0.9, "membership").best is None
    assert choose(Tradeoff((base, lent), {}), "MR", 0.9).base is base


def test_a_chain_tells_what_can_follow() -> None:
    after = can_follow(["text_to_text"])
    assert {"santext", "token_representation", "int8"} <= set(after)
    assert not {"none", "text_to_text"} & set(after)
    assert "gaussian" in can_follow(["int8"]) and "text_to_text" not in can_follow(["int8"])
    assert "sequence_representation" not in can_follow(["int8", "sequence_representation"])
    assert first_of(read_setting("text_to_text:eta=60+int8")) == read_setting("text_to_text:eta=60")
