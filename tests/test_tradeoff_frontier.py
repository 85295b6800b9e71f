from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from core.defences.registry import guarantee_of
from core.errors import InvalidInputError
from core.figures.tradeoff import tradeoff_figure
from core.results import Interval, Score
from core.specs import DefenceSpec
from core.studies.tradeoff_choice import choose, reads_of, untimed, within
from core.studies.tradeoff_files import shipped_tradeoff
from core.studies.tradeoff_frontier import frontier, steps
from core.studies.tradeoff_setting import (
    NO_PROMISE,
    can_follow,
    entry_shown,
    first_of,
    milliseconds_said,
    minutes_said,
    promise_said,
    promises,
    read_setting,
    setting_name,
    training_command,
    why_not_tried,
)
from core.studies.tradeoff_summary import Point, Tradeoff


def score(value: float, half: float = 0.0, chance: float = 0.0) -> Score:
    return Score(value, Interval(value - half, value + half), 9, chance)


def point(
    name: str, useful: tuple[float, float], leaks: tuple[float, float], **settings: object
) -> Point:
    return Point(name, tuple(settings.items()), {"MR": score(*useful, chance=50)},
                 {"tuned": score(*leaks, chance=3)}, None)  # fmt: skip


BASE = point("none", (90, 1), (60, 1))
GOOD = point("gaussian", (70, 2), (20, 2), sigma=0.1)
WEAK = point("gaussian", (80, 1), (40, 2), sigma=0.05)
WORSE = point("rounding", (66, 1), (30, 2), decimals=1)
UNSURE = point("binary", (78, 4), (38, 4))


def study(*points: Point) -> Tradeoff:
    return Tradeoff((BASE, *points), {}, {"MR": "accuracy"})


def test_a_limit_of_time_keeps_what_is_no_slower_what_was_not_timed_and_no_defence() -> None:
    base, quick, slow = (replace(p, milliseconds=t) for p, t in ((BASE, 5.0), (GOOD, 4.0),
                                                                  (WEAK, 4.01)))  # fmt: skip
    found = Tradeoff((base, quick, slow, UNSURE), {}, {"MR": "accuracy"})
    assert within(found, None) is found
    assert within(found, 4.0).points == (base, quick, UNSURE)
    assert within(found, 0.001).points == (base, UNSURE), "all are held against no defence"
    assert untimed(within(found, 4.0)) == [UNSURE]
    assert choose(within(found, 4.0), "MR", 0.4).best is quick
    slower = Tradeoff((base, replace(GOOD, milliseconds=9.0), slow), {}, {"MR": "accuracy"})
    assert choose(slower, "MR", 0.4).best is slower.points[1]
    assert choose(within(slower, 5.0), "MR", 0.4).best is slow


def test_what_was_not_timed_is_hollow_where_a_limit_is_set() -> None:
    found = Tradeoff(
        (replace(BASE, milliseconds=5.0), replace(GOOD, milliseconds=4.0), WEAK), {}, {"MR": "a"}
    )

    def symbols(*, is_timed: bool) -> dict[str, object]:
        figure = tradeoff_figure(found, "MR", is_timed=is_timed)
        return {trace.name: trace.marker.symbol for trace in figure.data}

    assert symbols(is_timed=False)["Gaussian noise"] == "triangle-up"
    assert symbols(is_timed=True)["Gaussian noise"] == ("triangle-up", "triangle-up-open")
    assert symbols(is_timed=True)["No defence"] == "star"


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
    assert np.allclose(edge.surely, [(65, good), (68, good), (68, weak), (79, weak), (79, base),
                                     (89, base)])  # fmt: skip
    # At best GOOD, UNSURE and BASE; WEAK adds nothing.
    good, unsure, base = 20 - 2 * w, 38 - 4 * w, 60 - w
    assert np.allclose(edge.perhaps, [(65, good), (72, good), (72, unsure), (82, unsure),
                                      (82, base), (91, base)])  # fmt: skip


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
    found = shipped_tradeoff("minilm")
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


def test_the_figure_draws_the_frontier_below_and_rings_by_letter() -> None:
    found = study(GOOD, WEAK)
    edge = frontier(found, "MR")
    plain = tradeoff_figure(found, "MR")
    drawn = tradeoff_figure(found, "MR", edge=edge, chosen={"A": 1, "B": 0})
    added = [s for s in drawn.layout.shapes if s.type == "path"]
    assert not [s for s in plain.layout.shapes if s.type == "path"]
    assert [s.layer for s in added] == ["below", "below"]
    assert added[1].path.startswith(f"M 68.0000,{20 + 2 * wider(3):.4f}") and added[
        0
    ].path.endswith("Z")
    assert len(drawn.data) == len(plain.data) + 2
    assert [trace.text[0] for trace in drawn.data[-2:]] == ["<b>A</b>", "<b>B</b>"]
    assert "not timed" in str(drawn.data[1].customdata)


def with_reads(plain: Point, attribute: float, members: float) -> Point:
    return replace(plain, attribute={"linear": score(attribute, 1, 10)},
                   membership={"threshold": score(members, 2, 50),
                               "feature": score(50, 2, 50)})  # fmt: skip


def test_the_choice_goes_by_what_the_attacker_is_after() -> None:
    good, weak = with_reads(GOOD, 30, 70), with_reads(WEAK, 10, 52)
    found = Tradeoff((with_reads(BASE, 40, 71), good, weak), {}, {"MR": "accuracy"})
    assert reads_of(found) == ["words", "attribute", "membership"]
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
    assert reads_of(study(GOOD)) == ["words"]
    assert reads_of(Tradeoff((BASE, with_reads(GOOD, 1, 50)), {})) == ["words"], "nought to hold to"


@pytest.mark.parametrize(
    "name",
    ["none", "int8", "text_to_text:eta=75", "text_to_text:eta=60+int8", "gaussian:sigma=0.05",
     "truncation:dimension=96", "custext:epsilon=4,k=20,mapping=aggressive",
     "santext:epsilon=12.5+truncation:dimension=48+int8"],
)  # fmt: skip
def test_a_name_is_read_as_it_was_written(name: str) -> None:
    spec = read_setting(name)
    assert setting_name(spec.name, dict(spec.settings)) == name


def test_names_of_what_ships_are_different() -> None:
    points = shipped_tradeoff("minilm").points
    names = [setting_name(p.defence, dict(p.settings)) for p in points]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("told", "why"),
    [("text_to_text:eta=0", "must lie in"), ("text_to_text:eta=-3", "must lie in"),
     ("text_to_text:eta=nan", "must lie in"), ("text_to_text:eta=1e308", "must lie in"),
     ("text_to_text:eta=x", "must be a number"), ("int8+text_to_text", "Put it before"),
     ("nonsense", "point must be of none")],
)  # fmt: skip
def test_what_is_no_setting_is_told(told: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        read_setting(told, "point")


def test_a_set_of_its_own_for_each_token_promises_nothing() -> None:
    shared = point("custext", (70, 1), (20, 1), epsilon=4.0)
    alone = point("custext", (70, 1), (20, 1), epsilon=4.0, mapping="aggressive")
    chained = point("custext+int8", (70, 1), (20, 1), **{"custext.mapping": "aggressive"})
    assert promises(shared) and not promises(alone) and not promises(chained)
    assert promise_said(read_setting("custext:mapping=aggressive+int8")) == NO_PROMISE
    assert "the set shows" in promise_said(read_setting("custext"))
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
    assert promise_said(free.spec) == "nothing: at an ε of 0 it is trained without noise"
    base = replace(BASE, membership={"attack": score(90, 1, 50)})
    chosen = choose(Tradeoff((base, free), {}), "MR", 0.1, "membership")
    assert chosen.promising is None and chosen.measured is free
    chosen = choose(Tradeoff((base, free, kept), {}), "MR", 0.1, "membership")
    assert chosen.promising is kept


@pytest.mark.parametrize(
    ("name", "setting", "given"),
    [
        *(("private_head", "epsilon", e) for e in (math.nan, math.inf, -1.0, 1e308)),
        *(("constrained", "eta", e) for e in (0.0, -1.0, math.nan, math.inf, 1e308)),
    ],
)
def test_a_strength_beyond_its_range_promises_nothing_but_is_refused(
    name: str, setting: str, given: float
) -> None:
    with pytest.raises(InvalidInputError, match=f"{setting} must lie in"):
        guarantee_of(DefenceSpec.of(name, {setting: given}))


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


def test_trained_and_unknown_defences_are_named_and_say_why_they_cannot_be_tried() -> None:
    assert why_not_tried(read_setting("text_to_text+int8"), "minilm") == ""
    assert training_command(read_setting("text_to_text+int8")) == ""
    for told in ("adversarial:weight=0.3+gaussian", "adversarial:against=attribute,weight=3"):
        assert "none ships" in why_not_tried(read_setting(told), "minilm")
    settings = {"adversarial.against": "attribute", "adversarial.weight": 0.3}
    assert training_command(DefenceSpec.of("adversarial+gaussian", settings)) == (
        "python -m core defend --defence adversarial --set against=attribute --set weight=0.3 "
        "--texts FILE --label-column COLUMN --out DIR"
    )
    assert entry_shown("adversarial+gaussian").title == "Adversarial training, then Gaussian noise"
    assert entry_shown("yesterdays").title == "yesterdays"
    assert why_not_tried(DefenceSpec(name="yesterdays"), "minilm")
    found = study(*(point(n, (70, 1), (20, 1)) for n in ("adversarial", "leace+int8", "old")))
    names = [trace.name for trace in tradeoff_figure(found, "MR").data]
    assert names[1:] == ["Adversarial training", "LEACE, then 8-bit quantising", "old"]


def test_what_is_no_strength_parts_the_lines_of_a_defence() -> None:
    hides = [("words", 0.3), ("words", 1.0), ("attribute", 1.0)]
    found = study(
        *(point("adversarial", (70, 1), (20, 1), against=of, weight=w) for of, w in hides), GOOD
    )
    lines = {trace.name: trace for trace in tradeoff_figure(found, "MR").data[1:]}
    words = lines["Adversarial training, against words"]
    assert len(words.x) == 2 and len(lines["Adversarial training, against attribute"].x) == 1
    assert words.line.dash != lines["Adversarial training, against attribute"].line.dash
    assert lines.keys() - {words.name} == {
        "Adversarial training, against attribute", "Gaussian noise"
    }  # fmt: skip


def test_cost_is_told_where_it_is_known() -> None:
    timed = replace(GOOD, training_minutes=12.4, milliseconds=3.14)
    assert minutes_said(timed) == "12 min" and milliseconds_said(timed) == "3.1 ms"
    assert minutes_said(replace(GOOD, training_minutes=0.0)) == "nothing is trained"
    assert minutes_said(GOOD) == milliseconds_said(GOOD) == "not timed"
    hover = str(tradeoff_figure(study(timed), "MR").data[1].customdata)
    assert "training: 12 min; a text: 3.1 ms" in hover
