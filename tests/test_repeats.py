"""Test texts of a task that nearly repeat training texts are counted, and scored without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.protocols import OnProgress, Vectors, no_progress
from core.tasks.labelled import LabelledTask
from tools.repeats import OUT, markdown, measured


class ByClass:
    """Tells of each text its class, but of two texts the other one."""

    name, fingerprint, dimension = "by class", "c", 1

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        told = [("good" in text) != ("odd" in text) for text in texts]
        return np.array(told, np.float32)[:, None] * 2 - 1


def test_repeats_are_counted_and_left_out_of_the_second_accuracy() -> None:
    known = [
        f"a {kind} film about number n{i} seen m{i}" for i in range(20) for kind in ("good", "bad")
    ]
    near = [f"{text}, too" for text in known[:3]]
    new = [f"{kind} words x{i} y{i} z{i} q{i}" for i in range(4) for kind in ("good", "odd good")]
    texts = (*known, *near, *new)
    labels = tuple("1" if "good" in text else "0" for text in texts)
    splits = ("train",) * len(known) + ("test",) * (len(near) + len(new) + 1)
    task = LabelledTask("t", (*texts, "bad words v w q"), (*labels, "0"), splits)
    found = measured(task, ByClass())
    assert (found["n_test"], found["n_near"]) == (12, 3)
    assert found["accuracy"] == pytest.approx(100 * 8 / 12)
    assert found["accuracy_without"] == pytest.approx(100 * 5 / 9)


def test_the_page_in_docs_is_that_of_its_file() -> None:
    assert markdown() == OUT.with_suffix(".md").read_text(encoding="utf-8")
