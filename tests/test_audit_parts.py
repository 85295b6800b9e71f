"""Audits that were stopped and resumed, and audits spread over workers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakscope.core.audit.parts import PART, AttackerSpec, answer_in_parts
from leakscope.core.audit.parts import Attacker as Opened
from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError
from leakscope.core.protocols import no_progress
from leakscope.core.results import RecoveredWord, Recovery, Sentence, SentenceStep
from leakscope.core.specs import AttackSpec, EncoderSpec

ENCODER: Any = SimpleNamespace(fingerprint="f", name="e", dimension=4)
SPEC = AttackerSpec(AttackSpec(name="search"), EncoderSpec())
VECTORS = np.random.default_rng(0).standard_normal((3 * PART + 5, 4)).astype(np.float32)


def answer_to(vector: np.ndarray) -> Recovery:
    word = RecoveredWord(f"word{vector[0]:.3f}", float(vector[1]))
    step = SentenceStep(3, "a b", float("nan"))
    sentence = Sentence("a b", 0.5, float("nan"), (word,), (step,))
    return Recovery((word,), 7, (RecoveredWord("rest", 0.1),), sentence)


class Counting:
    """An attack that answers by hand and counts what it was asked."""

    def __init__(self, most: int = 10**9) -> None:
        self.asked, self.most = 0, most

    def invert(self, encoder: Any, vectors: np.ndarray, on_progress: Any = no_progress) -> Any:
        on_progress(0.0, "Attacking")
        if self.asked + len(vectors) > self.most:
            raise StoppedError("Stopped.")
        self.asked += len(vectors)
        return [answer_to(vector) for vector in vectors]


def by(attack: Any, encoder: Any = ENCODER, spec: AttackerSpec = SPEC) -> Opened:
    return Opened(spec, attack, encoder)


def same(found: list[Recovery], wanted: list[Recovery]) -> bool:
    return [repr(each) for each in found] == [repr(each) for each in wanted]


WANTED = [answer_to(vector) for vector in VECTORS]


def test_parts_answer_as_the_whole_does_and_keep_nothing_unasked(tmp_path: Path) -> None:
    attack: Any = Counting()
    shown: list[float] = []
    found = answer_in_parts(by(attack), VECTORS, on_progress=lambda f, _: shown.append(f))
    assert same(found, WANTED) and attack.asked == len(VECTORS)
    assert shown == sorted(shown) and shown[0] >= 0 and shown[-1] <= 1
    assert not list(tmp_path.iterdir())


def test_a_stopped_audit_goes_on_where_it_was(tmp_path: Path) -> None:
    stopped: Any = Counting(most=2 * PART)
    with pytest.raises(StoppedError):
        answer_in_parts(by(stopped), VECTORS, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    again: Any = Counting()
    assert same(answer_in_parts(by(again), VECTORS, folder=tmp_path), WANTED)
    assert again.asked == len(VECTORS) - 2 * PART
    rest: Any = Counting(most=0)
    assert same(answer_in_parts(by(rest), VECTORS, folder=tmp_path), WANTED)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


@pytest.mark.parametrize("changed", ["attack", "encoder", "vectors"])
def test_answers_to_something_else_are_not_reused(changed: str, tmp_path: Path) -> None:
    first, again = Counting(), Counting()
    answer_in_parts(by(first), VECTORS, folder=tmp_path)
    other = AttackerSpec(AttackSpec(name="probe"), EncoderSpec())
    encoder: Any = SimpleNamespace(fingerprint="g", name="e")
    attacker = by(
        again,
        encoder if changed == "encoder" else ENCODER,
        other if changed == "attack" else SPEC,
    )
    found = VECTORS + 1 if changed == "vectors" else VECTORS
    answer_in_parts(attacker, found, folder=tmp_path)
    assert again.asked == len(VECTORS)


def test_a_damaged_part_is_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    attack: Any = Counting()
    answer_in_parts(by(attack), VECTORS, folder=tmp_path)
    path = sorted(tmp_path.iterdir())[0]
    path.write_text(path.read_text().replace("word", "lord", 1))
    with pytest.raises(ArtifactError, match="Move this file away"):
        answer_in_parts(by(attack), VECTORS, folder=tmp_path)
    whole = json.loads(path.read_text().replace("lord", "word", 1))
    unsealed = {"answers": [{**answer, "words": []} for answer in whole["answers"]]}
    path.write_text(json.dumps(unsealed))
    with pytest.raises(ArtifactError, match="Move this file away"):
        answer_in_parts(by(attack), VECTORS, folder=tmp_path)
    path.unlink()
    assert same(answer_in_parts(by(attack), VECTORS, folder=tmp_path), WANTED)


def test_workers_answer_the_parts_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        answer_in_parts(by(Counting(most=PART)), VECTORS, folder=tmp_path)
    sizes: list[int] = []

    def spread(spec: AttackerSpec, parts: Any) -> Any:
        assert spec == SPEC
        for number, part in reversed(parts):
            sizes.append(len(part))
            yield number, [answer_to(vector) for vector in part]

    none: Any = Counting(most=0)
    found = answer_in_parts(by(none), VECTORS, folder=tmp_path, spread=spread)
    assert same(found, WANTED) and sizes == [5, PART, PART]


def test_a_worker_that_died_is_told_of() -> None:
    with pytest.raises(InvalidInputError, match="worker died"):
        answer_in_parts(by(Counting()), VECTORS, spread=lambda spec, parts: [])
