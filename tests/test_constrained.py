"""Classifiers that only see noise: the user's part is frozen, noise is fresh, runs resume."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.defences.trained import adaptive
from leakscope.core.defences.trained.adaptive import AdaptivePretraining, MaskedHead, TrainHeldOut
from leakscope.core.defences.trained.constrained import (
    ConstrainedClassifier,
    _NoisyPieces,
    _NoisyVectors,
)
from leakscope.core.defences.trained.under_noise import objectives
from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.readers import Received
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, n_releases
from leakscope.core.defences.trained.under_noise.user_side import MECHANISMS, UserSide
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.tasks.examples import Examples, read_examples

ALL = np.arange(80)


@pytest.fixture(scope="module")
def examples(small_texts: list[str]) -> Examples:
    """Texts whose class is told by a word that half of them begin with."""
    labels = tuple("ab"[i % 2] for i in range(120))
    words = {"a": "the minister", "b": "a doctor"}
    texts = tuple(f"{words[labels[i]]} {small_texts[i]}" for i in range(120))
    return Examples("toy", texts, (), labels)


def classifier(tiny: Path, **settings: Any) -> ConstrainedClassifier:
    given = {
        "mechanism": "none",
        "eta": 5.0,
        "encoder": f"mlm:{tiny}",
        "epochs": 4,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "max_length": 24,
    }
    return ConstrainedClassifier(**(given | settings))


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["transformer", "bilstm"])
def test_it_learns_without_noise_and_nothing_under_all_of_it(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, reader: str
) -> None:
    def accuracy(**settings: Any) -> float:
        steep = {"learning_rate": 2e-2, "epochs": 15} if reader == "bilstm" else {"epochs": 8}
        found = classifier(tiny_bert, reader=reader, **steep, **settings)
        found.fit(tiny_encoder, examples, ALL)
        held = np.arange(80, 120)
        said = found.predict(tiny_encoder, examples, held)
        return float((said == examples.class_ids[held]).mean())

    assert accuracy() > 0.9
    assert 0.2 < accuracy(mechanism="text_to_text", eta=1e-3) < 0.8


@pytest.mark.parametrize("mechanism", ["token_representation", "text_to_text"])
def test_noise_is_fresh_at_every_step_and_the_table_stays_as_it_is(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    examples: Examples,
    mechanism: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[np.ndarray] = []
    whole = UserSide.vectors

    def noted(self: UserSide, ids: Any, rng: Any) -> Any:
        found = whole(self, ids, rng)
        sent.append(found[0][:5].copy())
        return found

    monkeypatch.setattr(UserSide, "vectors", noted)
    before = tiny_encoder.token_vectors.clone()
    found = classifier(tiny_bert, mechanism=mechanism, batch_size=80, epochs=3, eta=3.0)
    found.fit(tiny_encoder, examples, ALL)
    found.predict(tiny_encoder, examples, ALL)
    assert len(sent) == 4
    assert len({part.tobytes() for part in sent}) == 4, "a draw was used twice"
    assert torch.equal(tiny_encoder.token_vectors, before)
    names = dict(found.network_.named_parameters())
    assert not any("word_embeddings" in name for name in names), "the user's part can be trained"


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize(("releases", "n"), [("once", 1), ("every_epoch", 3)])
def test_a_text_is_released_as_often_as_stated(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    examples: Examples,
    mechanism: str,
    releases: str,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What reaches the network of each training text, over three epochs whose batches differ."""
    seen: dict[int, set[bytes]] = {}
    kind = _NoisyVectors if mechanism == "sequence_representation" else _NoisyPieces
    whole = kind.logits

    def noted(self: Any, network: torch.nn.Module, rows: Any, rng: Any) -> Any:
        def reading(*given: Any) -> torch.Tensor:
            for i, row in enumerate(rows.tolist()):
                if isinstance(given[0], Received):
                    is_user = self.pieces.batch(rows).is_user[i]
                    vectors = given[0].vectors[i][is_user]
                else:
                    vectors = np.stack([side[i].numpy() for side in given])
                seen.setdefault(row, set()).add(np.asarray(vectors).tobytes())
            return network(*given)

        return whole(self, reading, rows, rng)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "logits", noted)
    found = classifier(tiny_bert, mechanism=mechanism, epochs=3, eta=3.0, releases=releases)
    found.fit(tiny_encoder, examples, ALL)
    assert {len(copies) for copies in seen.values()} == {n} and len(seen) == len(ALL)
    assert len(set.union(*seen.values())) == n * len(ALL), "two texts have one noise"
    assert n == n_releases(mechanism, "transformer", epochs=3, releases=releases)


def test_a_network_says_how_often_a_text_is_released() -> None:
    told = {"releases": "every_epoch"}
    assert n_releases("sequence_representation", "transformer", **told) == 20
    assert n_releases("token_representation", "bilstm", **told) == 8
    assert n_releases("none", "bilstm", **told) == 0
    assert n_releases("text_to_text", "transformer", releases="once", epochs=9) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_seed_repeats_every_mechanism_and_pairs_are_read(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, mechanism: str
) -> None:
    paired = Examples("pairs", examples.first, examples.first[::-1], examples.labels)
    said = [
        classifier(tiny_bert, mechanism=mechanism, epochs=1)
        .fit(tiny_encoder, paired, ALL)
        .predict(tiny_encoder, paired, ALL)
        for _ in range(2)
    ]
    assert said[0].tolist() == said[1].tolist()


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_without_noise_eta_is_nothing(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, mechanism: str
) -> None:
    def weights(**settings: Any) -> list[np.ndarray]:
        found = classifier(tiny_bert, mechanism=mechanism, epochs=1, **settings)
        found.fit(tiny_encoder, examples, ALL)
        return [value.numpy() for value in found.network_.state_dict().values()]

    few, many = (weights(is_noisy=False, eta=eta) for eta in (1.0, 30.0))
    assert all((one == other).all() for one, other in zip(few, many, strict=True))
    noisy = weights(eta=1.0)
    assert any((one != other).any() for one, other in zip(few, noisy, strict=True))


@pytest.mark.parametrize("eta", [0.0, -3.0, float("nan"), 1e308])
def test_an_eta_that_is_none_is_refused_before_anything_is_trained(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, eta: float
) -> None:
    with pytest.raises(InvalidInputError, match="eta must lie in"):
        classifier(tiny_bert, eta=eta).fit(tiny_encoder, examples, ALL)


def test_what_cannot_be_is_refused(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples
) -> None:
    of_texts = classifier(tiny_bert, mechanism="sequence_representation", reader="bilstm")
    with pytest.raises(InvalidInputError, match="Choose the transformer"):
        of_texts.fit(tiny_encoder, examples, ALL)
    one = replace(examples, labels=("a",) * 120)
    with pytest.raises(InvalidInputError, match="has one class"):
        classifier(tiny_bert).fit(tiny_encoder, one, ALL)
    with pytest.raises(InvalidInputError, match="Choose `minilm`"):
        classifier(tiny_bert, encoder="tfidf").fit(tiny_encoder, examples, ALL)


def test_a_table_of_pairs_is_read_with_its_official_split(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [(f"one {i}", f"two {i}", i % 2, "test" if i < 10 else "train") for i in range(40)]
    rows += [("one 3", "two 3", 1, "train"), ("one 9", "another", 1, "train")]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label", "split"), *rows])
    found = read_examples("pairs", str(path))
    known, held = found.parts(seed=0)
    assert found.is_paired and found.classes == ("0", "1")
    assert sorted(held.tolist()) == list(range(10))
    assert 40 not in known and 41 in known, "a pair that is tested is not trained on"
    alone = read_examples("alone", f"{path}#sentence2")
    assert not alone.is_paired and alone.first[0] == "two 0"
    path.write_text("sentence1,sentence2,label\na,,1\n")
    with pytest.raises(InvalidInputError, match="lacks a text of its pair"):
        read_examples("pairs", str(path))


def pretraining(tiny: Path, **settings: Any) -> AdaptivePretraining:
    given = {
        "eta": 60.0,
        "tokens": 6000,
        "batch_tokens": 512,
        "learning_rate": 2e-3,
        "max_length": 24,
        "n_checks": 3,
        "encoder": f"mlm:{tiny}",
    }
    return AdaptivePretraining(**(given | settings))


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("mechanism", ["token_representation", "text_to_text"])
def test_each_loss_falls_under_each_mechanism(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    small_texts: list[str],
    objective: str,
    mechanism: str,
) -> None:
    before = tiny_encoder.token_vectors.clone()
    found = pretraining(tiny_bert, objective=objective, mechanism=mechanism, tokens=20_000)
    found.fit(tiny_encoder, small_texts)
    losses = [point["loss"] for point in found.curve_]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert [point["tokens"] for point in found.curve_][-1] == found.tokens_seen_
    assert 0.9 * 20_000 < found.tokens_seen_ < 1.1 * 20_000
    assert torch.equal(tiny_encoder.token_vectors, before)
    table = tiny_encoder.token_vectors.to(found.network_.head.table.dtype)
    assert torch.equal(found.network_.head.table, table), "the head is tied to the frozen table"
    assert not any("word_embeddings" in name or "table" in name for name in found.state()[0])


@pytest.mark.slow
def test_a_neighbour_goes_on_and_a_classifier_begins_with_what_was_adapted(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    one = pretraining(tiny_bert, tokens=30_000).fit(tiny_encoder, small_texts)
    two = pretraining(tiny_bert, eta=50.0).fit(tiny_encoder, small_texts, start=one.state()[0])
    assert two.curve_[0]["loss"] < one.curve_[0]["loss"] - 0.1, "it did not go on"
    examples = Examples("toy", tuple(small_texts[:40]), (), tuple("ab" * 20))
    rows = np.arange(40)
    still = classifier(tiny_bert, mechanism="text_to_text", learning_rate=1e-12, epochs=1)
    still.fit(tiny_encoder, examples, rows, start=two.weights())
    others = {name: weight[:1] for name, weight in two.weights().items()}
    with pytest.raises(InvalidInputError, match="do not fit this network"):
        still.fit(tiny_encoder, examples, rows, start=others)
    few = dict(list(one.state()[0].items())[1:])
    with pytest.raises(InvalidInputError, match="do not fit this network"):
        pretraining(tiny_bert, eta=50.0).fit(tiny_encoder, small_texts, start=few)
    service = {k.removeprefix("service."): v for k, v in still.network_.state_dict().items()}
    for name, weight in two.weights().items():
        assert service[name].numpy() == pytest.approx(weight, abs=1e-6), name


def test_a_neighbour_takes_the_texts_after_those_of_its_own_and_holds_out_the_same(
    tiny_encoder: TransformerEncoder, small_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "_CHUNK", 30)

    def of(passed: int, tokens: int = 300) -> TrainHeldOut:
        texts = small_texts[:100]
        return TrainHeldOut.of(
            tiny_encoder, texts, tokens=tokens, max_length=24, seed=0, passed=passed
        )

    def held_by(split: TrainHeldOut) -> set[tuple[int, ...]]:
        return {tuple(row) for row in split.held.rows}

    def known_to(split: TrainHeldOut) -> set[tuple[int, ...]]:
        return {tuple(row) for row in split.pieces.rows}

    first = of(0)
    second = of(first.passed)
    assert first.passed < 90 and first.is_new.all()
    assert not known_to(first) & known_to(second), "what one has taken the next does not"
    assert held_by(first) == held_by(second)
    assert not held_by(first) & (known_to(first) | known_to(second))
    whole = of(0, tokens=10**6)
    again = of(whole.passed)
    assert whole.passed == 90 and not again.is_new.any() and known_to(again) == known_to(first)
    both = of(80)
    assert both.is_new.tolist() == [True] * 10 + [False] * (len(both.pieces) - 10)
    every = [np.arange(len(both.pieces))] * 2
    assert both.new_tokens(every) == both.pieces.lengths[:10].sum(), "none is counted twice"


def test_a_neighbour_draws_gaps_and_noise_of_its_own(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    small_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []
    whole = Masking.task

    def noted(self: Masking, batch: Any, side: Any, marks: Any, rng: np.random.Generator) -> Any:
        if torch.is_grad_enabled():  # what is held out is looked at under the same draws each time
            drawn.append(str(rng.bit_generator.state["state"]))
        return whole(self, batch, side, marks, rng)

    monkeypatch.setattr(Masking, "task", noted)
    one = pretraining(tiny_bert, tokens=2000).fit(tiny_encoder, small_texts)
    n_first = len(drawn)
    two = pretraining(tiny_bert, tokens=2000)
    two.fit(tiny_encoder, small_texts, start=one.state()[0], passed=one.passed_)
    assert two.passed_ > one.passed_ > 0 and n_first > 2
    assert len({*drawn}) == len(drawn) == 2 * n_first, "no draw comes twice"


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        ("vanilla", "token_loss"),
        ("probability", "probability_loss"),
        ("denoising", "token_loss"),
    ],
)
def test_it_is_trained_by_the_loss_that_the_registry_names(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    small_texts: list[str],
    objective: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert OBJECTIVES[objective].path.endswith(f":{name}")
    n_targets: list[int] = []
    whole = getattr(objectives, name)

    def noted(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        n_targets.append(targets.shape[1])
        return whole(logits, targets)  # type: ignore[no-any-return]

    monkeypatch.setattr(objectives, name, noted)
    pretraining(tiny_bert, objective=objective, tokens=1000).fit(tiny_encoder, small_texts)
    assert n_targets and {*n_targets} == {10 if objective == "probability" else 1}


def test_the_head_knows_how_frequent_tokens_are_before_it_learns() -> None:
    counts = np.array([90, 9, 1])
    head = MaskedHead(np.zeros((3, 4), np.float32), counts)
    shares = torch.softmax(head(torch.randn(2, 4)).float(), 1)
    assert shares[0].tolist() == pytest.approx([0.9, 0.09, 0.01], abs=0.01)
