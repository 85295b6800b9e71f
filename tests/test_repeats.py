"""Texts held out of a task that nearly repeat training texts are counted, and not tested on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.tasks.labelled import LabelledTask
from tools.repeats import OUT, markdown, measured


class ByClass:
    """Tells of each text its class, but of two texts the other one."""

    name, fingerprint, dimension = "by class", "c", 1

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        told = [("good" in text) != ("odd" in text) for text in texts]
        return np.array(told, np.float32)[:, None] * 2 - 1


def a_task() -> LabelledTask:
    """Return 40 texts to train on, and 12 held out of which the first 3 nearly repeat one."""
    known = [
        f"a {kind} film about number n{i} seen m{i}" for i in range(20) for kind in ("good", "bad")
    ]
    near = [f"{text}, too" for text in known[:3]]
    new = [f"{kind} words x{i} y{i} z{i} q{i}" for i in range(4) for kind in ("good", "odd good")]
    texts = (*known, *near, *new)
    labels = tuple("1" if "good" in text else "0" for text in texts)
    splits = ("train",) * len(known) + ("test",) * (len(near) + len(new) + 1)
    return LabelledTask("t", (*texts, "bad words v w q"), (*labels, "0"), splits)


def test_repeats_are_counted_and_left_out_of_the_second_accuracy() -> None:
    found = measured(a_task(), ByClass())
    assert (found["n_held"], found["n_near"]) == (12, 3)
    assert found["accuracy_with"] == pytest.approx(100 * 8 / 12)
    assert found["accuracy"] == pytest.approx(100 * 5 / 9)


def test_no_text_is_tested_on_that_nearly_repeats_one_trained_on() -> None:
    task = a_task()
    known, held = task.parts(seed=0)
    assert (len(known), len(held)) == (40, 9) and task.n_near_duplicates(seed=0) == 3
    assert not any(text.endswith(", too") for text in (task.texts[i] for i in held))
    assert task.outcome(ByClass(), seed=0).score().n == 9


def test_who_needs_more_texts_than_are_left_is_told_of_the_repeats() -> None:
    with pytest.raises(InvalidInputError, match="of which 3 nearly repeat others"):
        a_task().parts(n_test=12, seed=0)


def test_a_part_to_develop_on_is_tested_on_and_the_test_part_left_alone() -> None:
    texts = tuple(f"{kind} words a{i} b{i} c{i}" for i in range(30) for kind in ("good", "bad"))
    parts = ("train",) * 40 + ("test",) * 10 + ("dev",) * 10
    task = LabelledTask("t", texts, ("1", "0") * 30, parts)
    known, held = task.parts(seed=0)
    assert sorted(known) == [*range(40)] and sorted(held) == [*range(50, 60)]


def test_the_page_in_docs_is_that_of_its_file() -> None:
    assert markdown() == OUT.with_suffix(".md").read_text(encoding="utf-8")
