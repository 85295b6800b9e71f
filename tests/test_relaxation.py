from __future__ import annotations

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.relaxation import attack as relaxed_search
from leakscope.core.attacks.inversion.relaxation.attack import RelaxationAttack
from leakscope.core.attacks.inversion.relaxation.soft_tokens import (
    Schedule,
    mix_tokens,
    relax_tokens,
)
from leakscope.core.attacks.inversion.relaxation.staged import StagedAttack
from leakscope.core.attacks.inversion.released_tokens.token_words import (
    regular_token_ids,
    whole_words,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.text import STOP_WORDS, words

TEXTS = [
    "the minister and the river with the silver engine.",
    "from vienna near the castle garden and the violin",
]
FAST = {"length": 8, "learning_rate": 0.1, "final_temperature": 0.01, "n_steps": 40}


def one_hot(ids: list[int], n_tokens: int) -> torch.Tensor:
    z = torch.full((1, len(ids), n_tokens), -10.0)
    z[0, torch.arange(len(ids)), torch.tensor(ids)] = 10.0
    return z


def test_mixing_gives_the_hand_worked_vector() -> None:
    # softmax((ln 3, 0)·T/T) at T = 1 is (3/4, 1/4); at T = 1/2 it is (9/10, 1/10).
    z = torch.tensor([[[3.0, 1.0]]]).log()
    vectors = torch.tensor([[4.0, 0.0], [0.0, 20.0]])
    torch.testing.assert_close(mix_tokens(z, vectors, 1.0), torch.tensor([[[3.0, 5.0]]]))
    torch.testing.assert_close(mix_tokens(z, vectors, 0.5), torch.tensor([[[3.6, 2.0]]]))


@pytest.mark.parametrize("layer", [None, 0, 1, 2, 3])
def test_one_hot_choice_is_the_encoders_own_embedding(
    tiny_encoder: TransformerEncoder, layer: int | None
) -> None:
    for text in TEXTS:
        (ids,) = tiny_encoder.token_ids([text])
        vectors = mix_tokens(
            one_hot(ids, len(tiny_encoder.tokens)), tiny_encoder.token_vectors, 0.05
        )
        found = tiny_encoder.embed_token_vectors(vectors, layer).numpy()
        own = tiny_encoder.encode([text]) if layer is None else None
        expected = tiny_encoder.encode_layer([text], layer) if own is None else own  # type: ignore[arg-type]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_hot_choice_is_minilms_own_embedding(minilm: TransformerEncoder) -> None:
    text = "The patient was given 40 units of insulin, unexpectedly."
    (ids,) = minilm.token_ids([text])
    vectors = mix_tokens(one_hot(ids, len(minilm.tokens)), minilm.token_vectors, 0.05)
    np.testing.assert_allclose(
        minilm.embed_token_vectors(vectors).numpy(), minilm.encode([text]), atol=1e-5
    )


@pytest.mark.parametrize("layer", [None, 0, 1, 3])
def test_gradients_reach_every_position(
    tiny_encoder: TransformerEncoder, layer: int | None
) -> None:
    z = torch.randn(2, 5, len(tiny_encoder.tokens), generator=torch.Generator().manual_seed(0))
    z.requires_grad_()
    embedded = tiny_encoder.embed_token_vectors(mix_tokens(z, tiny_encoder.token_vectors, 1), layer)
    (embedded**2).sum().backward()
    assert z.grad is not None
    assert torch.isfinite(z.grad).all()
    assert (z.grad.abs().amax(-1) > 0).all()


def test_temperature_falls_geometrically_or_stays() -> None:
    common = {"learning_rate": 0.1, "temperature": 0.8, "n_steps": 3}
    falling = Schedule(final_temperature=0.2, **common)  # type: ignore[arg-type]
    assert [falling.temperature_at(i) for i in range(3)] == pytest.approx([0.8, 0.4, 0.2])
    constant = Schedule(final_temperature=0.0, **common)  # type: ignore[arg-type]
    assert [constant.temperature_at(i) for i in range(3)] == [0.8] * 3


def relax(targets: torch.Tensor, vectors: torch.Tensor, n_steps: int, steps: list[int]):
    schedule = Schedule(learning_rate=0.1, temperature=0.05, final_temperature=0.0, n_steps=n_steps)
    return relax_tokens(
        lambda v: v.mean(1),
        targets,
        vectors,
        length=2,
        schedule=schedule,
        seeds=[[i] for i in range(len(targets))],
        on_step=steps.append,
    )


@pytest.mark.slow
def test_finds_the_two_tokens_of_a_mean_and_stops_on_a_plateau() -> None:
    vectors = 3 * torch.eye(6)
    targets = torch.stack([(vectors[1] + vectors[4]) / 2, vectors[3]])
    steps: list[int] = []
    choice = relax(targets, vectors, 10_000, steps)
    assert [set(row) for row in choice.columns.tolist()] == [{1, 4}, {3}]
    np.testing.assert_allclose(choice.losses, 0, atol=1e-10)
    assert steps == list(range(1, len(steps) + 1)) and len(steps) < 10_000


@pytest.fixture(scope="module", params=[RelaxationAttack, StagedAttack])
def attack(
    request: pytest.FixtureRequest, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> RelaxationAttack:
    return request.param(**FAST).fit(tiny_encoder, small_texts[:300])


def test_finds_more_words_than_chance_and_no_stop_words(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    texts = small_texts[300:312]
    attack = RelaxationAttack(**FAST).fit(tiny_encoder, small_texts[:300])
    answers = attack.invert(tiny_encoder, tiny_encoder.encode(texts))
    truth = [set(words(text)) - STOP_WORDS for text in texts]
    right = sum(len(a.word_set & t) for a, t in zip(answers, truth, strict=True))
    wrong_pairs = zip(answers, [*truth[1:], truth[0]], strict=True)
    by_chance = sum(len(a.word_set & t) for a, t in wrong_pairs)
    assert right > 1.5 * by_chance
    assert not any(a.word_set & STOP_WORDS for a in answers)


def test_of_several_starts_the_nearest_is_answered(
    tiny_encoder: TransformerEncoder, small_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def remember(*args, **kwargs):
        made.append(relax_tokens(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(relaxed_search, "relax_tokens", remember)
    attack = RelaxationAttack(n_restarts=3, keep_stop_words=True, **FAST)
    attack.fit(tiny_encoder, small_texts[:50])
    answers = attack.invert(tiny_encoder, tiny_encoder.encode(small_texts[300:304]))
    assert len(made) == 3
    nearest = np.argmin([choice.losses for choice in made], axis=0)
    assert len(set(nearest)) > 1
    names = whole_words(tiny_encoder.tokens)
    ids = regular_token_ids(tiny_encoder)
    for row, start in enumerate(nearest):
        chosen = {names[ids[column]] for column in made[start].columns[row]} - {None}
        assert answers[row].word_set == chosen


def test_vectors_that_no_text_comes_near_are_refused_by_their_place(
    tiny_encoder: TransformerEncoder,
) -> None:
    vectors = tiny_encoder.encode(TEXTS)
    vectors[1] = 3e38  # its square is beyond float32
    with pytest.raises(
        InvalidInputError, match=r"The loss of vector 1 is not finite.* Check the vectors"
    ):
        RelaxationAttack(**FAST).fit(tiny_encoder, TEXTS).invert(tiny_encoder, vectors)


def test_a_shortlist_of_everything_changes_nothing(
    attack: RelaxationAttack, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    vectors = tiny_encoder.encode(small_texts[300:302])
    everything = type(attack)(**FAST, shortlist=10_000).load_state(*attack.state())
    assert everything.invert(tiny_encoder, vectors) == attack.invert(tiny_encoder, vectors)
    short = type(attack)(**FAST, shortlist=3).load_state(*attack.state())
    assert all(len(a.words) <= 3 for a in short.invert(tiny_encoder, vectors))


def test_relaxation_needs_no_training_and_staged_does(tiny_encoder: TransformerEncoder) -> None:
    opened = RelaxationAttack(**FAST).open(tiny_encoder)
    assert len(opened.invert(tiny_encoder, tiny_encoder.encode(TEXTS))) == 2
    assert StagedAttack.open is None
    with pytest.raises(NotFittedError):
        StagedAttack().invert(tiny_encoder, tiny_encoder.encode(TEXTS))


def test_stretching_restores_the_spread_that_least_squares_loses(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    vectors = tiny_encoder.encode(small_texts[:200])
    plain = StagedAttack(**FAST).fit(tiny_encoder, small_texts[:200], vectors)
    wide = StagedAttack(**FAST, stretch=True).load_state(*plain.state())
    mapped, _, centre = plain._targets(vectors)
    stretched, layer, _ = wide._targets(vectors)
    assert layer == 1
    ratio = np.linalg.norm(stretched - centre, axis=1) / np.linalg.norm(mapped - centre, axis=1)
    np.testing.assert_allclose(ratio, plain.map_.r_squared**-0.5, rtol=1e-3)


def test_fit_measures_the_mean_length(tiny_encoder: TransformerEncoder) -> None:
    # "the river." is 3 tokens, "the silver river and engine" is 5.
    texts = ["the river.", "the silver river and engine"]
    assert RelaxationAttack().fit(tiny_encoder, texts).mean_length_ == 4


def test_tokens_and_the_words_they_stand_for(minilm: TransformerEncoder) -> None:
    tokens = minilm.tokens
    names = whole_words(tokens)
    assert names[tokens.index("minister")] == "minister"
    for token in ("##ing", "[CLS]", "[unused5]", "a", "!"):
        assert names[tokens.index(token)] is None
    assert whole_words(["Ġthe", "ory", "ĠYork"]) == ["the", None, "york"]
    # 30,522 less 994 unused and 5 special tokens
    assert len(regular_token_ids(minilm)) == 29_523
    ids = regular_token_ids(minilm, words_only=True, without={"minister"})
    assert tokens.index("minister") not in ids and tokens.index("river") in ids
    assert all(names[i] for i in ids)
