"""One contract over every entry of the registry of attacks.

The checks are plain functions, so that an attack of a test can be put to them as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.inversion import (
    INVERSION_ATTACKS,
    load_attack,
    make_attack,
    save_attack,
)
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import (
    ArtifactError,
    EncoderMismatchError,
    InvalidInputError,
    NotFittedError,
    StoppedError,
)
from leakscope.core.protocols import Access, OnProgress, TrainedAttack, Vectors, no_progress
from leakscope.core.results import Recovery
from leakscope.core.specs import AttackSpec, settings_of
from leakscope.core.text import words

# Applied where an attack declares a setting of that name, within its declared range.
TINY: dict[str, Any] = {
    "vocabulary_size": 40,
    "epochs": 2,
    "batch_size": 64,
    "hidden": 32,
    "n_steps": 15,
    "steps": 15,
    "n_iterations": 30,
    "iterations": 30,
    "n_candidates": 8,
    "corrector_hidden": 16,
    "corrector_epochs": 2,
    "n_queries": 40,
    "n_neighbours": 20,
    "length": 6,
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "sparse": {"penalty": 1e-3},  # the vectors of the tiny encoder are small
}
N_TEST = 6


def tiny_spec(name: str) -> AttackSpec:
    settings: dict[str, Any] = {}
    for key, spec in settings_of(INVERSION_ATTACKS[name].kind).items():
        if key in TINY:
            value, low, high = TINY[key], spec.metadata["low"], spec.metadata["high"]
            value = value if low is None else max(low, value)
            settings[key] = value if high is None else min(high, value)
    return AttackSpec.of(name, settings | OVERRIDES.get(name, {}))


@dataclass
class Fitted:
    name: str
    attack: TrainedAttack
    encoder: TransformerEncoder
    texts: list[str]
    vectors: Vectors
    unseen: list[str]
    tests: Vectors
    answers: list[Recovery]


def fit_tiny(name: str, encoder: TransformerEncoder, texts: list[str]) -> Fitted:
    """Fit an attack of the registry in a moment, and let it answer."""
    attack = make_attack(tiny_spec(name))
    known, unseen = texts[:-N_TEST], texts[-N_TEST:]
    vectors = encoder.encode(known)
    assert attack.fit(encoder, known, vectors) is attack
    tests = encoder.encode(unseen)
    answers = attack.invert(encoder, tests)
    assert isinstance(attack, TrainedAttack)
    return Fitted(name, attack, encoder, known, vectors, unseen, tests, answers)


@pytest.fixture(scope="module", params=list(INVERSION_ATTACKS))
def fitted(
    request: pytest.FixtureRequest, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> Fitted:
    return fit_tiny(request.param, tiny_encoder, small_texts)


class CountingEncoder:
    """Counts the texts that an attack has encoded."""

    name: str
    fingerprint: str

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.encoder = encoder
        self.n_asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        self.n_asked += len(texts)
        return self.encoder.encode(texts, on_progress)


def assert_same(answers: list[Recovery], others: list[Recovery], *, atol: float = 0.0) -> None:
    assert [[w.word for w in a.words] for a in answers] == [
        [w.word for w in a.words] for a in others
    ]
    for answer, other in zip(answers, others, strict=True):
        np.testing.assert_allclose(
            [w.score for w in answer.words], [w.score for w in other.words], atol=atol
        )
        assert answer.n_queries == other.n_queries


def entry_tells_what_a_user_should_know(name: str, encoder: TransformerEncoder) -> None:
    entry = INVERSION_ATTACKS[name]
    assert all([entry.title, entry.summary, entry.reference, entry.score, entry.cost])
    assert entry.kind.__doc__
    for key, spec in settings_of(entry.kind).items():
        assert spec.metadata["help"], key
    fitted_attributes = [key for key in vars(make_attack(name)) if key.endswith("_")]
    assert fitted_attributes == []


def settings_outside_their_range_are_refused_by_name(
    name: str, encoder: TransformerEncoder
) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} has no setting 'nonsense'"):
        make_attack(AttackSpec.of(name, {"nonsense": 1}))
    for key, spec in settings_of(INVERSION_ATTACKS[name].kind).items():
        bad = []
        if spec.metadata["low"] is not None:
            bad.append(spec.metadata["low"] - 1)
        if spec.metadata["high"] is not None:
            bad.append(spec.metadata["high"] + 1)
        if spec.metadata["choices"] is not None:
            bad.append("nonsense")
        for value in bad:
            with pytest.raises(InvalidInputError, match=key):
                make_attack(AttackSpec.of(name, {key: value}))


def unfitted_attack_says_so(name: str, encoder: TransformerEncoder) -> None:
    with pytest.raises(NotFittedError):
        make_attack(name).invert(encoder, np.zeros((1, encoder.dimension), np.float32))


class BlackBox:
    name, dimension, fingerprint = "st:closed", 32, "0" * 64


def black_box_encoder_is_refused_by_name(name: str, encoder: TransformerEncoder) -> None:
    if INVERSION_ATTACKS[name].access is not Access.WHITE_BOX:
        pytest.skip("needs no white box")
    kind = INVERSION_ATTACKS[name].kind.__name__
    with pytest.raises(InvalidInputError, match=rf"{kind}.*st:closed"):
        make_attack(name).fit(BlackBox(), ["one text", "two texts"])  # type: ignore[arg-type]


ENTRY_CHECKS = (
    entry_tells_what_a_user_should_know,
    settings_outside_their_range_are_refused_by_name,
    unfitted_attack_says_so,
    black_box_encoder_is_refused_by_name,
)


@pytest.mark.parametrize("name", INVERSION_ATTACKS)
@pytest.mark.parametrize("check", ENTRY_CHECKS, ids=lambda check: check.__name__)
def test_every_entry(
    check: Callable[..., None], name: str, tiny_encoder: TransformerEncoder
) -> None:
    check(name, tiny_encoder)


def answers_are_well_formed(fitted: Fitted, tmp_path: Path) -> None:
    assert len(fitted.answers) == N_TEST
    vocabulary = getattr(fitted.attack, "vocabulary_", None)
    for answer in fitted.answers:
        said = [w.word for w in answer.words]
        assert len(said) == len(set(said))
        assert all(words(word) == [word] for word in said)
        assert all(math.isfinite(w.score) for w in answer.words + answer.runners_up)
        assert not answer.word_set & {w.word for w in answer.runners_up}
        if vocabulary is not None:
            assert answer.word_set <= vocabulary.index.keys()
    assert any(answer.words for answer in fitted.answers)


def queries_are_reported_in_full(fitted: Fitted, tmp_path: Path) -> None:
    if INVERSION_ATTACKS[fitted.name].access is Access.WHITE_BOX:
        pytest.skip("has the weights and need not ask")
    counting = CountingEncoder(fitted.encoder)
    answers = fitted.attack.invert(counting, fitted.tests)
    assert sum(answer.n_queries for answer in answers) >= counting.n_asked
    if INVERSION_ATTACKS[fitted.name].access is not Access.QUERIES:
        assert counting.n_asked == 0


def inversion_is_repeatable_and_takes_vectors_as_they_come(fitted: Fitted, tmp_path: Path) -> None:
    again = fitted.attack.invert(fitted.encoder, fitted.tests)
    assert_same(again, fitted.answers)
    strided = np.repeat(fitted.tests, 2, axis=1).astype(np.float64)[:, ::2]
    assert_same(fitted.attack.invert(fitted.encoder, strided), fitted.answers)  # type: ignore[arg-type]
    assert fitted.attack.invert(fitted.encoder, fitted.tests[:0]) == []


def training_is_deterministic_under_a_seed(fitted: Fitted, tmp_path: Path) -> None:
    # Without vectors the attack encodes for itself and ends in the same place.
    other = make_attack(tiny_spec(fitted.name)).fit(fitted.encoder, fitted.texts)
    assert isinstance(other, TrainedAttack)
    arrays, _ = fitted.attack.state()
    others, _ = other.state()
    assert arrays.keys() == others.keys()
    for key in arrays:
        np.testing.assert_allclose(others[key], arrays[key], atol=1e-5, err_msg=key)


def saved_and_loaded_it_answers_the_same(fitted: Fitted, tmp_path: Path) -> None:
    save_attack(fitted.attack, tmp_path, training={"corpus": "small"})
    loaded = load_attack(tmp_path)
    assert type(loaded) is type(fitted.attack)
    for key in settings_of(type(loaded)):
        assert getattr(loaded, key) == getattr(fitted.attack, key)
    answers = loaded.invert(fitted.encoder, fitted.tests)
    # Weights are kept in half precision, so a word on the edge of being answered may turn.
    both = [(a.word_set, b.word_set) for a, b in zip(answers, fitted.answers, strict=True)]
    n_common = sum(len(a & b) for a, b in both)
    assert 2 * n_common >= 0.9 * sum(len(a) + len(b) for a, b in both)
    # From then on nothing changes any more.
    save_attack(loaded, tmp_path / "again")
    again = load_attack(tmp_path / "again").invert(fitted.encoder, fitted.tests)
    assert_same(again, answers)
    assert json.loads((tmp_path / "model.json").read_text())["attack"] == fitted.name


def damaged_state_is_refused_by_folder(fitted: Fitted, tmp_path: Path) -> None:
    save_attack(fitted.attack, tmp_path)
    meta = json.loads((tmp_path / "model.json").read_text())
    del meta["state"]
    (tmp_path / "model.json").write_text(json.dumps(meta))
    with pytest.raises(ArtifactError, match="does not contain a trained attack"):
        load_attack(tmp_path)


def another_encoder_is_refused_by_name(fitted: Fitted, tmp_path: Path) -> None:
    other = CountingEncoder(fitted.encoder)
    other.name, other.fingerprint = "mlm:another", "f" * 64
    with pytest.raises(EncoderMismatchError, match=r"mlm:tiny.*mlm:another"):
        fitted.attack.invert(other, fitted.tests)


def unusable_vectors_are_refused(fitted: Fitted, tmp_path: Path) -> None:
    tests = fitted.tests
    spoilt: list[tuple[Any, str]] = [
        (np.where(np.arange(tests.shape[1]) == 3, np.nan, tests), "NaN or infinity.*row 0"),
        (tests * np.float32(np.inf), "NaN or infinity"),
        (tests[:, :-1], r"shape \(n, 32\), got \(6, 31\)"),
        (tests[0], r"shape \(n, 32\), got \(32,\)"),
        (np.array([["a"] * 32]), "array of numbers"),
    ]
    for vectors, says in spoilt:
        with pytest.raises(InvalidInputError, match=says):
            fitted.attack.invert(fitted.encoder, vectors)


def training_vectors_must_match_the_texts(fitted: Fitted, tmp_path: Path) -> None:
    if fitted.name == "prior":
        pytest.skip("learns nothing from vectors")
    attack = make_attack(tiny_spec(fitted.name))
    with pytest.raises(InvalidInputError):
        attack.fit(fitted.encoder, fitted.texts, fitted.vectors[:5])


def texts_without_a_word_cannot_train(fitted: Fitted, tmp_path: Path) -> None:
    if getattr(fitted.attack, "vocabulary_", None) is None:
        pytest.skip("answers tokens, so it counts no words")
    with pytest.raises(InvalidInputError):
        make_attack(tiny_spec(fitted.name)).fit(fitted.encoder, ["the and", "with the"] * 10)


def progress_stays_within_bounds_and_can_stop_training(fitted: Fitted, tmp_path: Path) -> None:
    seen: list[float] = []
    make_attack(tiny_spec(fitted.name)).fit(
        fitted.encoder, fitted.texts, on_progress=lambda fraction, _: seen.append(fraction)
    )
    assert all(0 <= fraction <= 1 for fraction in seen)
    if not seen:
        return

    def stop(fraction: float, message: str) -> None:
        raise StoppedError("enough")

    with pytest.raises(StoppedError):
        make_attack(tiny_spec(fitted.name)).fit(fitted.encoder, fitted.texts, on_progress=stop)


def progress_of_answers_grows_and_can_stop_them(fitted: Fitted, tmp_path: Path) -> None:
    seen: list[float] = []
    fitted.attack.invert(fitted.encoder, fitted.tests, lambda fraction, _: seen.append(fraction))
    assert seen == sorted(seen) and all(0 <= fraction <= 1 for fraction in seen)

    def stop(fraction: float, message: str) -> None:
        raise StoppedError("enough")

    if seen:
        with pytest.raises(StoppedError):
            fitted.attack.invert(fitted.encoder, fitted.tests, stop)


def stopped_training_resumes_to_the_same_end(fitted: Fitted, tmp_path: Path) -> None:
    spec, data = tiny_spec(fitted.name), (fitted.encoder, fitted.texts, fitted.vectors)
    n_steps = 0

    def count(fraction: float, message: str) -> None:
        nonlocal n_steps
        n_steps += 1

    make_attack(spec).fit(*data, on_progress=count)
    steps_left = n_steps // 2

    def stop_midway(fraction: float, message: str) -> None:
        nonlocal steps_left
        steps_left -= 1
        if steps_left <= 0:
            raise StoppedError("enough")

    if n_steps > 1:
        with pytest.raises(StoppedError):
            make_attack(spec).fit(*data, on_progress=stop_midway, checkpoint_dir=str(tmp_path))
    resumed = make_attack(spec).fit(*data, checkpoint_dir=str(tmp_path))
    assert isinstance(resumed, TrainedAttack)
    whole, _ = fitted.attack.state()
    arrays, _ = resumed.state()
    for key in whole:
        np.testing.assert_array_equal(arrays[key], whole[key], err_msg=key)


def it_can_be_evaluated(fitted: Fitted, tmp_path: Path) -> None:
    result = evaluate(fitted.attack, fitted.encoder, fitted.unseen, limit=4, seed=1)
    assert result.attack == fitted.name
    assert result.scores.n == 4
    assert 0 <= result.scores.token_set_f1 <= 100
    assert result.sentences_per_second > 0
    json.dumps(result.to_dict())


CHECKS = (
    answers_are_well_formed,
    queries_are_reported_in_full,
    inversion_is_repeatable_and_takes_vectors_as_they_come,
    training_is_deterministic_under_a_seed,
    saved_and_loaded_it_answers_the_same,
    damaged_state_is_refused_by_folder,
    another_encoder_is_refused_by_name,
    unusable_vectors_are_refused,
    training_vectors_must_match_the_texts,
    texts_without_a_word_cannot_train,
    progress_stays_within_bounds_and_can_stop_training,
    progress_of_answers_grows_and_can_stop_them,
    stopped_training_resumes_to_the_same_end,
    it_can_be_evaluated,
)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_attack(check: Callable[..., None], fitted: Fitted, tmp_path: Path) -> None:
    check(fitted, tmp_path)
