"""Who is a member and what the attacker may know: parts that share nothing, halves that are halves.

And what of texts with users and classes takes part.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from leakscope.core.attacks.membership.classifiers.splits import (
    Parts,
    check_disjoint,
    draw_parts,
    random_halves,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.membership.trained_classifiers import training_batch_of, units_of
from leakscope.core.tasks.classifiers import AuthoredTexts, Selection, read_authored

USERS = tuple(f"u{i % 60:02}" for i in range(600))


def named(n: int = 600) -> AuthoredTexts:
    texts = tuple(f"text number {i}" for i in range(n))
    return AuthoredTexts("toy", texts, USERS[:n], tuple("abc"[i % 3] for i in range(n)))


@pytest.mark.parametrize("split", ["user", "sample"])
@pytest.mark.parametrize("seed", range(3))
def test_no_unit_is_in_two_parts_and_all_rows_but_few_take_part(split: str, seed: int) -> None:
    units = units_of(named(), split)
    parts = draw_parts(units, seed)
    seen: dict[object, str] = {}
    for part in fields(Parts):
        for row in getattr(parts, part.name):
            assert seen.setdefault(units[row], part.name) == part.name
    sizes = {p.name: len({units[i] for i in getattr(parts, p.name)}) for p in fields(Parts)}
    four = ("members", "outsiders", "shadow_members", "shadow_outsiders")
    assert len({sizes[name] for name in four}) == 1, "as many of each"
    assert sum(sizes.values()) == len(set(units))
    assert min(sizes.values()) >= 1


def test_another_seed_draws_others_and_the_same_seed_the_same() -> None:
    one, same, other = (draw_parts(USERS, seed) for seed in (0, 0, 1))
    assert np.array_equal(one.members, same.members)
    assert not np.array_equal(one.members, other.members)


def test_too_few_users_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 25 users or texts"):
        draw_parts(["a", "b"] * 50, 0)


@pytest.mark.parametrize("n_models", [2, 4, 16])
def test_every_user_is_in_exactly_half_of_the_shadows_with_all_texts(n_models: int) -> None:
    halves = random_halves(USERS, n_models, 0)
    assert (halves.sum(0) == n_models // 2).all()
    for user in set(USERS):
        rows = [i for i, each in enumerate(USERS) if each == user]
        assert (halves[:, rows] == halves[:, rows[:1]]).all()
    assert len({row.tobytes() for row in halves}) == n_models or n_models == 2
    with pytest.raises(InvalidInputError, match="even number"):
        random_halves(USERS, 3, 0)


def test_a_lesson_trains_each_model_on_what_it_may_know() -> None:
    units = units_of(named(), "user")
    lesson, parts = training_batch_of(named(), units, 4, 0)
    assert np.array_equal(np.flatnonzero(lesson.trained[0]), parts.members)
    assert np.array_equal(np.flatnonzero(lesson.trained[1]), parts.shadow_members)
    attacked = np.isin(np.arange(600), parts.attacked)
    assert not lesson.trained[2:, ~attacked].any()
    assert (lesson.trained[2:, attacked].sum(0) == 2).all()
    for model in range(6):
        assert not (lesson.trained[model] & lesson.validated[model]).any()
        assert not lesson.trained[model, parts.test].any()
        assert not lesson.validated[model, parts.test].any()
    assert not np.isin(parts.validation, np.flatnonzero(lesson.validated[1:].any(0))).any()


def test_a_shadow_that_knows_the_targets_members_is_refused() -> None:
    parts = draw_parts(USERS, 0)
    known = np.zeros(600, dtype=bool)
    known[parts.shadow_members] = True
    check_disjoint(parts, USERS, known)
    known[parts.members[:3]] = True
    with pytest.raises(InvalidInputError, match="trained on 3 samples that are not"):
        check_disjoint(parts, USERS, known)


def test_parts_that_overlap_are_refused() -> None:
    parts = draw_parts(USERS, 0)
    leaky = replace(parts, shadow_members=np.r_[parts.shadow_members, parts.members[:1]])
    with pytest.raises(InvalidInputError, match="must not overlap"):
        check_disjoint(leaky, USERS, np.zeros(600, dtype=bool))


def test_a_selection_leaves_users_classes_and_texts_as_asked() -> None:
    texts = AuthoredTexts(
        "toy",
        tuple(f"t{i}" for i in range(12)),
        ("a",) * 6 + ("b",) * 4 + ("c",) * 2,
        ("x", "y") * 4 + ("x", "z", "x", "y"),
    )
    found = texts.selected(Selection(least=3, most=3, n_classes=2), 0)
    assert Counter(found.users) == {"a": 3, "b": 3}
    assert set(found.labels) == {"x", "y"} and found.class_ids.max() == 1
    assert len(set(texts.selected(Selection(n_users=2), 1).users)) == 2
    assert texts.selected(Selection(most=1), 3).texts == texts.selected(Selection(most=1), 3).texts
    with pytest.raises(InvalidInputError, match="No user of toy has 7 texts"):
        texts.selected(Selection(least=7), 0)
    with pytest.raises(InvalidInputError, match="of one class"):
        texts.selected(Selection(n_classes=1), 0)


def test_texts_of_several_users_and_those_without_user_or_class_are_left_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "posts.csv"
    path.write_text(
        "who,topic,words\n"
        "ann,x,Only mine here\nann,x,only  MINE here\nann,y,We both wrote this\n"
        "bob,x,we both wrote this\nbob,,No class at all\n,x,No user at all\n"
        "бо,y,ünï code nämé\n",
        encoding="utf-8",
    )
    found = read_authored("p", f"{path}#words", label="topic", user="who")
    assert found.texts == ("Only mine here", "ünï code nämé")
    assert found.users == ("ann", "бо") and found.n_shared == 2
    assert found.n_unlabelled == 2, "one without class, one without user"
    assert found.selected(Selection(least=1), 0).n_unlabelled == 2


def test_dates_are_classes_by_year_and_sentences_may_be_samples(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "user,date,text\n"
        'a,2004-01-02,"This is a first sentence. And here comes a second one. Short."\n'
        "b,2005-03-04,Another user wrote this very line\n"
    )
    found = read_authored("log", str(path), label="date", user="user", piece="sentences")
    assert found.labels == ("2004", "2004", "2005")
    assert found.texts[1] == "And here comes a second one."
    with pytest.raises(InvalidInputError, match="texts, sentences"):
        read_authored("log", str(path), label="date", user="user", piece="words")
