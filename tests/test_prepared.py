from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.core.attacks.inversion.reading import read_vector
from leakscope.core.corpora import load_corpus
from leakscope.core.encoders.registry import FITTED_ON_TEXTS, preparable
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.specs import AttackSpec
from leakscope.core.studies.inversion import prepared
from leakscope.core.studies.inversion.prepared import Preparation, prepare

QUICK = AttackSpec.of("probe", {"vocabulary_size": 300})
TEXT = "The government said police had found the people after two days."


def plan(encoder: str, n: int = 300) -> Preparation:
    return Preparation(encoder=encoder, corpus="lee", n_texts=n, attack=QUICK)


def test_what_can_be_prepared_is_what_needs_texts_alone() -> None:
    assert (*FITTED_ON_TEXTS, "minilm") == preparable()


@pytest.mark.parametrize("name", ["tfidf", "lsa_hashing", "word2vec"])
def test_the_second_time_comes_from_disk_and_answers_alike(
    name: str, leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[float, str]] = []
    first = prepare(plan(name), lambda done, message: told.append((done, message)))
    assert first.n_texts == 300 and first.seconds > 0 and first.guess
    fractions = [done for done, _ in told]
    assert fractions == sorted(fractions) and fractions[-1] == 1

    def unwanted(*_: object) -> None:
        raise AssertionError("it was fitted again")

    monkeypatch.setattr(prepared, "make_encoder", unwanted)
    second = prepare(plan(name))
    answers = [
        read_vector("probe", p.attack, p.encoder, TEXT, p.encoder.encode([TEXT]), p.guess)
        for p in (first, second)
    ]
    assert answers[0].recovery == answers[1].recovery and answers[0].recovery.words
    assert second.seconds == first.seconds, "the time that fitting took, not reading"


def test_other_texts_are_another_fit(leakscope_home: Path) -> None:
    one, other = prepare(plan("tfidf", 200)), prepare(plan("tfidf", 300))
    assert one.encoder.fingerprint != other.encoder.fingerprint


def test_more_sentences_than_there_are_means_all(leakscope_home: Path) -> None:
    n = len(load_corpus("lee").sentences().texts)
    assert prepare(plan("hashing", 100_000)).n_texts == n


def test_what_is_damaged_is_made_anew(leakscope_home: Path) -> None:
    before = prepare(plan("tfidf")).encoder.fingerprint
    for path in (leakscope_home / "representations").rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-20])
    assert prepare(plan("tfidf")).encoder.fingerprint == before


def test_it_can_be_stopped(leakscope_home: Path) -> None:
    def stop(done: float, message: str) -> None:
        if done > 0:
            raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        prepare(plan("glove"), stop)


@pytest.mark.parametrize("name", ["nonsense", "st:somebody/some-model", "dual_lstm"])
def test_another_encoder_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="encoder must be one of"):
        prepare(plan(name))
