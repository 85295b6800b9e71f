"""Pretraining under noise: it learns, the user's part is frozen, runs resume and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_constrained import classifier

from leakscope.core.defences.trained.adaptive import AdaptivePretraining
from leakscope.core.defences.trained.under_noise import objectives, split
from leakscope.core.defences.trained.under_noise.masked_network import MaskedHead
from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.defences.trained.under_noise.split import TrainHeldOut
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.tasks.examples import Examples


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
    monkeypatch.setattr(split, "_CHUNK", 30)

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
