"""Classifiers to attack: solved or trained many at once, each as it would be alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import member_score
from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.attacks.membership.classifiers.targets import heads
from leakscope.core.attacks.membership.classifiers.targets.heads import Solving, fit_heads
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS, make_classifiers
from leakscope.core.attacks.membership.classifiers.targets.tokens import TOKENISATIONS, token_rows
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.attacks.membership.roc import Ranking, auc
from leakscope.core.encoders.dual.word_tokens import PAD, UNK
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.training.loop import LengthBatchedLoop

N, D, C, MODELS = 400, 24, 4, 6


def problem(seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64], Any, Any]:
    """Return features, noisy classes, and halves of three quarters; the rest validates."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, C, N)
    centres = rng.normal(size=(C, D))
    features = (centres[labels] + 1.5 * rng.normal(size=(N, D))).astype(np.float32)
    trained = np.zeros((MODELS, N), dtype=bool)
    trained[:, : 3 * N // 4] = rng.random((MODELS, 3 * N // 4)) < 0.5
    validated = np.zeros_like(trained)
    validated[:, 3 * N // 4 :] = True
    return features, labels, trained, validated


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.1, 1.0, 10.0])
def test_heads_solved_together_are_those_of_scikit_learn_one_by_one(
    c: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(heads, "fast_dtype", lambda device: torch.float32)
    features, labels, trained, validated = problem()
    solving = Solving(c=c, patience=0, tolerance=1e-7, most_steps=400)
    found = fit_heads(features, labels, C, trained, validated, solving).probabilities(features)
    for model in range(MODELS):
        rows = trained[model]
        alone = LogisticRegression(C=c, max_iter=2000, tol=1e-8)
        alone.fit(features[rows].astype(np.float64), labels[rows])
        assert np.abs(found[model] - alone.predict_proba(features)).max() < 0.01
        said = found[model].argmax(1) == alone.predict(features)
        assert said.mean() > 0.985


def test_a_head_depends_on_its_own_texts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others beside it, or the classes of what it is not trained on, change nothing."""
    monkeypatch.setattr(heads, "fast_dtype", lambda device: torch.float32)
    features, labels, trained, validated = problem()
    solving = Solving(c=1.0, patience=0, tolerance=1e-7, most_steps=400)
    alone = fit_heads(features, labels, C, trained[:1], validated[:1], solving)
    together = fit_heads(features, labels, C, trained, validated, solving)
    one, other = alone.probabilities(features)[0], together.probabilities(features)[0]
    assert np.abs(one - other).max() < 0.01
    wrong = np.where(trained[0] | validated[0], labels, (labels + 1) % C)
    same = fit_heads(features, wrong, C, trained[:1], validated[:1], solving)
    assert np.array_equal(same.weights, alone.weights)


def test_early_stopping_keeps_the_step_with_the_best_validation_accuracy() -> None:
    features, labels, trained, validated = problem()
    noisy = np.where(np.random.default_rng(1).random(N) < 0.4, (labels + 1) % C, labels)
    noisy[3 * N // 4 :] = labels[3 * N // 4 :]
    held = features[3 * N // 4 :], labels[3 * N // 4 :]

    def accuracy(patience: int) -> float:
        solving = Solving(c=1e4, patience=patience, tolerance=1e-9, most_steps=300)
        found = fit_heads(features, noisy, C, trained, validated, solving)
        return float((found.probabilities(held[0]).argmax(2) == held[1]).mean())

    assert accuracy(5) > accuracy(0) + 0.02
    with pytest.raises(InvalidInputError, match="no text that could stop it"):
        fit_heads(features, labels, C, trained, np.zeros_like(trained), Solving())


def lesson(labels: NDArray[np.int64] | None = None, n_models: int = 2) -> TrainingBatch:
    """Return 120 texts whose first word tells the class, unless classes are given."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(60)]
    own = rng.integers(0, 3, 120)
    texts = tuple(
        " ".join([("red", "green", "blue")[k], *rng.choice(words, rng.integers(2, 9))]) for k in own
    )
    trained = np.zeros((n_models, 120), dtype=bool)
    trained[:, :80] = rng.random((n_models, 80)) < 0.5
    validated = np.zeros_like(trained)
    validated[:, 80:] = True
    return TrainingBatch(texts, own if labels is None else labels, 3, trained, validated, 0)


SMALL: dict[str, dict[str, Any]] = {
    "linear": {},
    "lstm": {
        "dimension": 16,
        "hidden": 16,
        "epochs": 12,
        "batch_size": 8,
        "learning_rate": 1e-2,
        "patience": 0,
    },
    "transformer": {"epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "max_length": 12},
    "private": {"batch_size": 20, "steps": 20},
}


def settings_for(name: str, tiny_bert: Path) -> dict[str, Any]:
    stands = TARGETS[name].stands_on
    return SMALL[name] | ({stands: f"mlm:{tiny_bert}"} if stands else {})


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_each_kind_answers_with_probabilities_of_every_model(name: str, tiny_bert: Path) -> None:
    told = lesson()
    kind = make_classifiers(name, settings_for(name, tiny_bert)).fit(told)
    assert kind.answers_.shape == (2, 120, 3)
    assert np.allclose(kind.answers_.sum(2), 1, atol=1e-4)
    assert not np.allclose(kind.answers_[0], kind.answers_[1]), "models of different texts"


def test_an_lstm_learns_which_word_tells_the_class() -> None:
    told = lesson()
    said = make_classifiers("lstm", SMALL["lstm"]).fit(told).answers_.argmax(2)
    assert (said[:, 80:] == told.labels[80:]).mean() > 0.8


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Put back the number of threads, which code that is told another one sets."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Enough(Exception):
    """Raised by the test in the place of a kill."""


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_a_run_that_was_cut_off_goes_on_and_ends_alike(
    name: str, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # one after the other
    told, settings = lesson(), settings_for(name, tiny_bert)
    whole = make_classifiers(name, settings).fit(told).answers_
    calls: list[float] = []

    def cut(fraction: float, message: str) -> None:
        calls.append(fraction)
        if fraction > 0.6:
            raise Enough

    with pytest.raises((Enough, StoppedError)):
        make_classifiers(name, settings).fit(told, on_progress=cut, checkpoint_dir=str(tmp_path))
    assert (tmp_path / "model-0" / "model.json").exists(), "the first was finished and is kept"
    seen: list[str] = []
    again = make_classifiers(name, settings)
    again.fit(told, on_progress=lambda done, said: seen.append(said), checkpoint_dir=str(tmp_path))
    assert np.allclose(again.answers_, whole, atol=1e-5)
    assert not [each for each in seen if each.startswith("Model 1") and "Epoch" in each]


def test_models_side_by_side_are_those_trained_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, settings = lesson(n_models=3), SMALL["lstm"] | {"epochs": 3}
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    alone = make_classifiers("lstm", settings).fit(told).answers_
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert np.allclose(make_classifiers("lstm", settings).fit(told).answers_, alone, atol=1e-5)

    def stop(fraction: float, message: str) -> None:
        if fraction > 0.3:
            raise Enough

    with pytest.raises(Enough):
        make_classifiers("lstm", settings).fit(told, on_progress=stop, checkpoint_dir=str(tmp_path))
    again = make_classifiers("lstm", settings).fit(told, checkpoint_dir=str(tmp_path))
    assert np.allclose(again.answers_, alone, atol=1e-5)


def test_batches_hold_each_text_once_and_texts_of_one_length_together() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    loop = LengthBatchedLoop(n=500, epochs=1, batch_size=16, seed=0, identity={}, lengths=lengths)
    batches = loop.batches(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    assert len(batches) == loop.n_batches
    assert np.mean([np.ptp(lengths[rows]) for rows in batches]) < 15
    other = loop.batches(1)
    assert not np.array_equal(np.concatenate(batches), np.concatenate(other))


@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_tokens_are_the_same_each_time_and_no_more_than_asked_for(tokenisation: str) -> None:
    texts = lesson().texts
    ids, n_tokens = token_rows(texts, tokenisation, 300, 5)
    again, _ = token_rows(texts, tokenisation, 300, 5)
    assert np.array_equal(ids, again) and ids.max() < n_tokens <= 300
    assert ids.shape[1] == 5 and (ids[:, 0] != PAD).all()
    with pytest.raises(InvalidInputError, match="word, word-piece"):
        token_rows(texts, "letters", 300, 5)


def test_word_pieces_split_words_that_are_none_of_them() -> None:
    texts = ["the unembeddable word", "the word"]
    pieces, n_tokens = token_rows(texts, "word-piece", 100, 20)
    words, _ = token_rows(texts, "word", 100, 20)
    assert (words != PAD).sum(1).tolist() == [3, 2]
    assert (pieces != PAD).sum(1).tolist()[0] > 3 and (pieces[1] != PAD).sum() == 2
    few, _ = token_rows(texts, "word-piece", 4, 20)
    assert set(few.ravel()) == {PAD, UNK, 2, 3} and n_tokens == 100
    assert few[1, :2].tolist() == pieces[1, :2].tolist(), "the most frequent are kept"


def overfitted(name: str, settings: dict[str, Any]) -> float:
    """Return the AUC of the loss against a model that learns classes dealt by lot by heart."""
    dealt = np.random.default_rng(3).integers(0, 3, 120)
    told = lesson(dealt, n_models=1)
    answers = make_classifiers(name, settings).fit(told).answers_[0]
    asked = slice(0, 80)
    outputs = Outputs(answers[asked], dealt[asked], told.trained[0][asked])
    return auc(Ranking(member_score("loss", outputs), outputs.members)).value


def test_an_overfitted_target_gives_its_members_away() -> None:
    settings = SMALL["lstm"] | {"epochs": 60}
    assert overfitted("lstm", settings) > 0.9


def test_overfitted_heads_give_their_members_away() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 150)).astype(np.float32)
    labels, trained = rng.integers(0, 2, 200), np.zeros((1, 200), dtype=bool)
    trained[0, :100] = True
    solving = Solving(c=1e3, patience=0, tolerance=1e-6)
    found = fit_heads(features, labels, 2, trained, ~trained, solving)
    outputs = Outputs(found.probabilities(features)[0], labels, trained[0])
    assert auc(Ranking(member_score("loss", outputs), outputs.members)).value > 0.9


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: {"trained": t.trained & False}, "no text to be trained on"),
        (lambda t: {"validated": t.trained}, "that should only stop its training early"),
        (lambda t: {"labels": t.labels[:5]}, "Each text needs one class"),
        (lambda t: {"validated": t.validated[:1]}, "one row per model"),
    ],
)
def test_a_lesson_that_cannot_be_learned_is_refused(
    change: Callable[[TrainingBatch], dict[str, Any]], told: str
) -> None:
    whole = lesson()
    with pytest.raises(InvalidInputError, match=told):
        replace(whole, **change(whole))


def private_auc(epsilon: float | None) -> float:
    """Return the AUC of the loss against a small MLP, trained by DP-SGD where ε is given."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 40)).astype(np.float32)
    labels = rng.integers(0, 10, 400)
    x, y = torch.from_numpy(features[:200]), torch.from_numpy(labels[:200])
    torch.manual_seed(0)
    model: Any = torch.nn.Sequential(
        torch.nn.Linear(40, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10)
    )
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.5)
    data: Any = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=20, shuffle=True
    )
    if epsilon is not None:
        opacus = pytest.importorskip("opacus")
        model, optimizer, data = opacus.PrivacyEngine().make_private_with_epsilon(
            module=model,
            optimizer=optimizer,
            data_loader=data,
            target_epsilon=epsilon,
            target_delta=1e-5,
            epochs=60,
            max_grad_norm=1.0,
        )
    for _ in range(60):
        for some, classes in data:
            if len(some):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(some), classes).backward()
                optimizer.step()
    with torch.no_grad():
        said = torch.softmax(model(torch.from_numpy(features)), 1).numpy()
    outputs = Outputs(said, labels, np.arange(400) < 200)
    return auc(Ranking(member_score("loss", outputs), outputs.members)).value


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_differential_privacy_hides_who_was_trained_on() -> None:
    assert private_auc(None) > 0.9, "without it the members are plain"
    assert private_auc(1.0) <= 0.55
