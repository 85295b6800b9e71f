from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import ArtifactError
from leakscope.core.registry import marker_styles
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows, write_rows
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.tradeoff.choice import choose
from leakscope.core.studies.tradeoff.defence_grid import GRID
from leakscope.core.studies.tradeoff.summary import (
    Point,
    Tradeoff,
    load_tradeoff,
    shipped_tradeoff,
    summarise,
)
from leakscope.core.studies.tradeoff.tables import markdown


def measured(defence: str, seed: int, scores: dict[str, Score], **settings: float) -> Row:
    place = {"study": "tradeoff", "n_train": 5, "defence": defence, "seed": seed}
    return Row({**place, "defence_settings": settings}, scores, {"n": 100})


def of_100(value: float, half: float) -> Score:
    return Score(value, Interval(value - half, value + half), 100, 50.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = []
    for seed, (a, b) in enumerate([(80.0, 40.0), (84.0, 46.0), (82.0, 34.0)]):
        plain = {"accuracy: MR": of_100(a, 1.96), "token_set_f1: probe_mlc": of_100(b, 1.96)}
        noisy = {
            "accuracy: MR": of_100(a - 10, 3.92),
            "token_set_f1: probe_mlc": of_100(b / 2, 1.96),
            "token_inversion": of_100(25.0, 1.0),
        }
        rows += [measured("none", seed, plain), measured("text_to_text", seed, noisy, eta=60.0)]
    target = tmp_path / "t.json"
    write_rows(target, "tradeoff", rows, "")
    return target


def test_seeds_are_averaged_with_the_greater_of_two_errors(path: Path) -> None:
    found = load_tradeoff(path)
    assert [p.defence for p in found.points] == ["none", "text_to_text"]
    assert found.tasks == ["MR"]
    told = {"study": "tradeoff", "n_train": 5, "seeds": [0, 1, 2], "seconds": 0, "version": 1}
    assert found.facts == told
    useful, leak = found.undefended.utility["MR"], found.undefended.leakage
    assert (useful.value, useful.n, useful.n_seeds) == (82.0, 300, 3)
    # Between seeds the variance is 4, within it is 1: √(4/3), times Student's t of 2 degrees.
    assert useful.ci95.high == pytest.approx(82 + 4.3027 * (4 / 3) ** 0.5, abs=1e-3)
    # Between seeds the variance is 36.
    assert leak.ci95.low == pytest.approx(40 - 4.3027 * (36 / 3) ** 0.5, abs=1e-3)
    other = found.points[1]
    # Within a seed the error is 2, its square as great as the variance between seeds.
    assert other.utility["MR"].ci95.high == pytest.approx(72 + 1.96 * (4 / 3) ** 0.5)
    assert other.token_inversion is not None and other.token_inversion.value == 25
    assert other.label == "η 60" and found.undefended.token_inversion is None


@pytest.mark.parametrize("content", ["{}", "[]", '{"rows": []}', '{"rows": [{"defence": 1}]}', "{"])
def test_another_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ArtifactError, match=r"x\.json"):
        load_tradeoff(path)


def cell(defence: str, seed: int, **settings: float) -> dict[str, Any]:
    return {
        "study": "tradeoff",
        "encoder": "tiny",
        "attack": "mlc",
        "settings": {},
        "n_train": 5,
        "n_test": 9,
        "n_auxiliary": 7,
        "n_targets": 8,
        "defence": defence,
        "defence_settings": settings,
        "seed": seed,
    }


def scores(useful: float, leak: float) -> dict[str, Score]:
    return {
        "accuracy: MR": Score(useful, Interval(useful - 1, useful + 1), 9, 50.0),
        "token_set_f1": Score(leak, Interval(leak - 1, leak + 1), 8, 3.0),
    }


def test_what_the_study_writes_is_read_back(tmp_path: Path) -> None:
    rows = [
        Row(cell("none", 0), scores(80, 40), seconds=60.0),
        Row(cell("none", 1), scores(84, 44), seconds=60.0),
        Row(cell("gaussian", 0, sigma=0.1), scores(60, 20), seconds=60.0),
        Row(cell("gaussian", 1, sigma=0.1), error="MemoryError"),
    ]
    table = markdown(rows)
    write_rows(tmp_path / "t.json", "tradeoff", rows, table)
    found = load_tradeoff(tmp_path / "t.json")
    assert [(p.defence, p.label) for p in found.points] == [("none", ""), ("gaussian", "σ 0.1")]
    assert found.undefended.utility["MR"].value == 82 and found.undefended.leakage.n == 16
    assert found.points[1].leakage.format() == "20.0 [19.0, 21.0]"
    assert found.facts["seeds"] == [0, 1] and found.facts["seconds"] == 180
    assert markdown(read_rows(tmp_path / "t.json", "tradeoff")) == table
    assert "| guessing |  | 50.0 |" in table and "| guessing |  | 3.0 |  |" in table
    assert "3 minutes of computing." in table
    assert "| gaussian | σ 0.1 | 1 | MemoryError |" in table


def test_every_defence_has_a_colour_and_a_symbol_of_its_own() -> None:
    looks = marker_styles(DEFENCES)
    assert set(looks) == set(DEFENCES) and len(set(looks.values())) == len(looks)
    assert looks["none"] == ("#D55E00", "star") and looks["gaussian"][0] == "#E69F00"
    assert all(entry.colour and entry.symbol for entry in DEFENCES.values())
    assert len({entry.colour for entry in DEFENCES.values()}) == len(DEFENCES)


def test_what_ships_is_the_whole_study() -> None:
    found = shipped_tradeoff()
    measured = {(p.defence, p.settings) for p in found.points}
    assert measured >= {(s.name, s.settings) for s in GRID}
    assert set(found.tasks) >= {"SST-2", "TREC", "SUBJ", "MR", "MPQA", "CR", "STS-b"}
    for point in found.points:
        in_grid = DefenceSpec(name=point.defence, settings=point.settings) in GRID
        assert point.leakage.n_seeds == len(found.facts["seeds"]) or not in_grid
        assert all(0 <= score.value <= 100 for score in point.utility.values() if score.chance)
    base = found.undefended
    assert base.leakage.ci95.low > base.leakage.chance + 5


def test_rows_of_attack_and_of_use_make_one_point_with_the_strongest_named() -> None:
    attack, use = {"part": "attack"}, {"part": "use"}
    rows = [
        Row(cell("none", 0) | attack, leaks(tuned=60, search=64)),
        Row(cell("text_to_text", 0, eta=75.0) | attack, leaks(tuned=30, search=33, tokens=50)),
        Row(cell("gaussian", 0, sigma=0.1) | attack, leaks(tuned=20, search=18)),
        Row(cell("none", 0) | use, used(80, 0)),
        Row(cell("text_to_text", 0, eta=75.0) | use, used(70, -10)),
    ]
    found = summarise(rows)
    assert [p.defence for p in found.points] == ["none", "text_to_text"], "one has no use yet"
    assert [p.attacker for p in found.points] == ["search", "tokens"]
    assert found.points[1].leakage.value == 50 and found.tasks == ["MR"]
    assert found.measures == {"MR": "accuracy"}
    assert found.points[1].change["MR"].value == -10
    table = markdown(rows)
    assert "| text_to_text | η 75 | 70.0 [69.0, 71.0] |" in table
    assert "| text_to_text | η 75 | 50.0 [49.0, 51.0] | tokens |" in table
    titles = [line for line in table.splitlines() if line.startswith("## ")]
    assert titles[:3] == ["## Utility", "## Leakage", "## Leakage, by attacker"]


def test_words_of_all_stand_beside_those_that_can_be_named_and_are_no_usefulness() -> None:
    every = {"all_words_f1: tuned": score(40, chance=2.0), "all_words_f1: search": score(44)}
    rows = [
        Row(cell("none", s), {**leaks(tuned=60, search=55), **used(80, 0), **every})
        for s in range(2)
    ]
    found = summarise(rows)
    assert found.tasks == ["MR"] and found.measures == {"MR": "accuracy"}
    assert found.undefended.leakage.value == 60
    assert {name: s.value for name, s in found.undefended.all_words.items()} == {
        "tuned": 40,
        "search": 44,
    }
    lines = markdown(rows).partition("## Leakage\n")[2].partition("##")[0].splitlines()
    head, guess, row = (line.strip("| ").split(" | ") for line in lines if " | " in line)
    column = head.index("of all words, F1")
    assert guess[column].startswith("2.0") and row[column].startswith("40.0"), "of the strongest"


def score(value: float, half: float = 1.0, chance: float = 50.0) -> Score:
    return Score(value, Interval(value - half, value + half), 9, chance)


def leaks(half: float = 1.0, **by: float) -> dict[str, Score]:
    return {f"token_set_f1: {name}": score(value, half, 3.0) for name, value in by.items()}


def used(value: float, change: float, half: float = 1.0) -> dict[str, Score]:
    return {"accuracy: MR": score(value, half), "change of accuracy: MR": score(change, half, 0.0)}


def test_errors_of_one_official_split_do_not_average_out() -> None:
    same = {"same_texts": ["MR"]}
    rows = [Row(cell("none", s), {**leaks(tuned=60), **used(80, 0)}, facts=same) for s in range(4)]
    found = summarise(rows).undefended
    assert found.utility["MR"].ci95.high == pytest.approx(81) and found.utility["MR"].n == 9
    assert found.leakage.ci95.high == pytest.approx(60.5), "other targets under each seed"


def test_targets_of_the_same_documents_do_not_average_out_either() -> None:
    facts = {"unit": "document", "n_documents": 50}
    rows = [Row(cell("none", s), {**leaks(tuned=60), **used(80, 0)}, facts=facts) for s in range(4)]
    assert summarise(rows).undefended.leakage.ci95.high == pytest.approx(61)


def test_an_attacker_tried_later_is_no_second_sample_of_what_it_tells_again() -> None:
    back = {"token_inversion": score(40)}
    place = cell("text_to_text", 0, eta=75.0), cell("text_to_text", 1, eta=75.0)
    rows = [Row(cell("none", s), {**leaks(tuned=60), **used(80, 0)}) for s in range(2)]
    rows += [Row(p, {**leaks(tokens=50), **used(70, -10), **back}) for p in place]
    first = summarise(rows).points[1]
    rows += [Row({**p, "attackers": ["posterior"]}, {**leaks(posterior=52), **back}) for p in place]
    later = summarise(rows).points[1]
    assert later.attacker == "posterior" and set(later.leaks) == {"tokens", "posterior"}
    assert later.token_inversion == first.token_inversion and later.token_inversion is not None
    assert later.token_inversion.n == 18 and later.token_inversion.n_seeds == 2


def test_no_point_stands_with_weaker_attackers_than_others_of_its_kind() -> None:
    """Where the likeliest tokens could not be read, what is left would tell too little."""
    rows = [Row(cell("none", 0), {**leaks(tuned=60), **used(80, 0)})]
    for eta in (60.0, 75.0):
        place = cell("text_to_text", 0, eta=eta)
        rows.append(Row(place, {**leaks(tokens=50), **used(70, -10)}))
        rows.append(Row({**place, "attackers": ["posterior"]}, leaks(posterior=52)))
    assert [p.attacker for p in summarise(rows).points] == ["tuned", "posterior", "posterior"]
    rows[-1] = replace(rows[-1], scores={}, error="the disk is full")
    assert [p.label for p in summarise(rows).points] == ["", "η 60"]
    told = [row for row in rows if "attackers" not in row.cell]
    assert len(summarise(told).points) == 3, "nobody read them: all were attacked alike"


def made(*points: tuple[str, float, float, float]) -> Tradeoff:
    """Return points of (defence, leak, change, half a width)."""
    base = Point("none", (), {"MR": score(80)}, {"tuned": score(60, 2)}, None, {"MR": score(0, 0)})
    rest = [
        Point(
            name,
            (),
            {"MR": score(80 + change)},
            {"tuned": score(leak, half)},
            None,
            {"MR": score(change, half)},
        )
        for name, leak, change, half in points
    ]
    return Tradeoff((base, *rest), {}, {"MR": "accuracy"})


def test_a_defence_that_may_lose_too_much_is_not_chosen() -> None:
    # 90 % of the way from 50 to 80 is a loss of 3: −2.5 ± 1 may be more, −1.5 ± 1 is not.
    found = made(("binary", 20, -2.5, 1), ("gaussian", 40, -1.5, 1))
    assert choose(found, "MR").shown.defence == "gaussian"
    assert choose(found, "MR", 0.8).shown.defence == "binary"
    assert choose(found, "MR", 0.99).best is None and choose(found, "MR", 0.99).shown.label == ""


def test_the_best_is_chosen_by_what_it_leaks_at_most() -> None:
    found = made(("binary", 30, -1, 0.9), ("gaussian", 29, -0.5, 2.4))
    chosen = choose(found, "MR")
    assert chosen.best is not None and chosen.best.defence == "binary", "29 may be 31.4"
    assert [p.defence for p in chosen.alike] == ["gaussian"], "their intervals overlap"
    clear = choose(made(("binary", 30, -1, 0.9), ("gaussian", 35, -1, 0.9)), "MR")
    assert not clear.alike


def test_those_that_promise_stand_apart_from_those_that_do_not() -> None:
    chosen = choose(made(("binary", 30, -1, 1), ("text_to_text", 45, -1, 1)), "MR")
    assert chosen.measured is not None and chosen.measured.defence == "binary"
    assert chosen.promising is not None and chosen.promising.defence == "text_to_text"
    assert chosen.best is chosen.measured and chosen.helps


def test_a_gain_within_the_noise_is_no_help() -> None:
    chosen = choose(made(("binary", 58, -1, 1.5)), "MR")
    assert chosen.best is not None and not chosen.helps
    assert chosen.shown is chosen.base
    assert choose(made(("binary", 55, -1, 1.5)), "MR").helps


@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        (40, ""),
        (58, "not significantly less than without a defence"),
        (97, "more than without a defence"),
    ],
)
def test_what_is_leaked_stands_beside_what_no_defence_leaks(leaks: float, said: str) -> None:
    chosen = choose(made(("text_to_text", leaks, -1, 1)), "MR")
    assert chosen.best is not None and chosen.beside_none(chosen.best) == said


def test_without_a_difference_the_interval_of_the_usefulness_decides() -> None:
    found = made(("binary", 30, -1, 1))
    bare = [replace(p, change={}) for p in found.points]
    assert choose(replace(found, points=tuple(bare)), "MR").shown.defence == "binary"
    wide = replace(bare[1], utility={"MR": score(79, 4)})
    assert choose(replace(found, points=(bare[0], wide)), "MR").best is None
