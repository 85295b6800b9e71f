"""Who reads one sentence's released tokens, and knows what the mechanism does."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.released_tokens.posterior import TokenPrior
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.mechanisms import make_privatizer
from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.defences.setting import read_setting
from leakscope.core.defences.tried import (
    TELLS,
    AttackerTexts,
    DefendedSentence,
    defend_sentence,
    fit_posterior_attack,
    has_known_distribution,
    likeliest_text,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.specs import DefenceSpec


@pytest.fixture(scope="module")
def sides(small_texts: list[str]) -> tuple[list[str], list[str]]:
    """What the attacker knows, and what is protected."""
    return small_texts[:350], small_texts[350:]


@pytest.fixture(scope="module")
def own(tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]) -> AttackerTexts:
    return AttackerTexts.of(tiny_encoder, sides[0], 0)


def test_texts_are_taken_out_of_what_is_known_by_hand() -> None:
    rows = [[0, 1, 1], [0, 2], [0, 1], [1]]
    found = TokenPrior.of(rows, 3).without([[0, 1, 1], [1]])
    fewer = TokenPrior.of(rows[1:3], 3)
    assert found.counts.tolist() == fewer.counts.tolist() == [2, 1, 1]
    assert (found.follows != fewer.follows).nnz == 0
    every = np.arange(3)
    assert found.log_after(every, every) == pytest.approx(fewer.log_after(every, every))
    assert fewer.without([]) is fewer


def test_the_attackers_texts_are_parted_and_none_is_in_both(
    own: AttackerTexts, sides: tuple[list[str], list[str]]
) -> None:
    assert len(own.held) == 35 and sorted([*own.held, *own.known]) == sorted(sides[0])
    assert own.prior.counts.sum() == sum(map(len, own.rows))


DOG = "A brown dog barked at the postman all morning."


@pytest.mark.parametrize(
    ("typed", "is_like"),
    [
        (DOG, True),
        ("  a BROWN dog, barked at the postman all morning", True),
        ("A brown dog barked at the postman all evening.", True),
        ("barked at the postman", True),
        ("They said: a brown dog barked at the postman all morning, and at noon.", True),
        ("A brown dog", False),
        ("The postman barked at a brown dog that morning.", False),
        ("", False),
        ("🙂", False),
    ],
)
def test_what_a_sentence_nearly_repeats_is_not_known_of_it(
    typed: str, is_like: bool, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    own = AttackerTexts.of(tiny_encoder, [*small_texts[:60], DOG, DOG.upper()], 1)
    found = {own.known[i] for i in own.near_duplicates_of(typed)}
    assert found == ({DOG, DOG.upper()} & {*own.known} if is_like else set())
    assert found or not is_like
    known = [text for text in own.known if near_duplicates([typed], [text])]
    assert sorted(known) == sorted(own.known[i] for i in own.near_duplicates_of(typed)), (
        "as everywhere"
    )
    n_own = sum(len(own.rows[i]) for i in own.near_duplicates_of(typed))
    assert own.prior_beside(typed).counts.sum() == own.prior.counts.sum() - n_own


def test_a_known_text_is_no_help_to_read_itself(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]
) -> None:
    spec, text = read_setting("custext:epsilon=0.5"), sides[1][0]
    cheating = AttackerTexts.of(tiny_encoder, [text, *sides[0]] * 10, 0)
    assert text in cheating.known
    prior, known = (
        cheating.prior_beside(text),
        [cheating.rows[i] for i in cheating.near_duplicates_of(text)],
    )
    left = [row for row in cheating.rows if row not in known]
    honest = TokenPrior.of(left, len(tiny_encoder.tokens))
    assert (
        np.array_equal(prior.counts, honest.counts) and (prior.follows != honest.follows).nnz == 0
    )
    law = fit_posterior_attack(cheating, spec, 0)
    found = [defend_sentence(tiny_encoder, spec, text, seed) for seed in range(40)]

    def n_read(what: TokenPrior) -> int:
        read = (str(likeliest_text(cheating, each, what, law)) for each in found)
        return sum(len({*each.split()} & {*text.lower().strip(".").split()}) for each in read)

    assert n_read(cheating.prior) > n_read(prior), "it would be known by heart"


def words_back(encoder: TransformerEncoder, text: str, told: str | None) -> int:
    (own,) = encoder.token_ids([text])
    return len({*encoder.text_of(own).split()} & {*str(told).split()})


def test_more_of_chosen_tokens_is_read_than_was_left(
    tiny_encoder: TransformerEncoder, own: AttackerTexts, sides: tuple[list[str], list[str]]
) -> None:
    spec = read_setting("custext:epsilon=0.5,k=20")
    law = fit_posterior_attack(own, spec, 0)
    assert law.reading_ in ("token", "sequence")
    n_left = n_read = 0
    for seed, text in enumerate(sides[1]):
        found = defend_sentence(tiny_encoder, spec, text, seed)
        assert found.released is not None and found.noisy is None
        assert tiny_encoder.text_of(found.released.tolist()) == found.told == found.text
        n_left += words_back(tiny_encoder, text, found.told)
        read = likeliest_text(own, found, own.prior_beside(text), law)
        n_read += words_back(tiny_encoder, text, read)
    assert n_read > 1.5 * n_left > 0, (n_read, n_left)


@pytest.mark.parametrize(
    "told",
    [
        "santext:epsilon=2",
        "santext_plus:epsilon=2",
        "tem:epsilon=2",
        "custext",
        "custext:mapping=aggressive",
    ],
)
def test_what_was_released_leaves_no_trace_in_what_sessions_share(
    told: str, tiny_encoder: TransformerEncoder, own: AttackerTexts
) -> None:
    law = fit_posterior_attack(own, read_setting(told), 0)
    unknown = np.flatnonzero(own.prior.counts[: len(tiny_encoder.tokens)] == 0)[-5:]
    kept = law.change.__dict__.copy()
    inner = kept.get("_inner", law.change)
    before = {
        name: getattr(inner, name).copy() for name in ("_sums", "_near") if hasattr(inner, name)
    }
    assert before
    found = DefendedSentence("", (), np.zeros((1, 4), np.float32), "", unknown)
    assert likeliest_text(own, found, own.prior, law) is not None
    assert np.array_equal(before.get("_sums", 0), getattr(inner, "_sums", 0), equal_nan=True)
    assert before.get("_near", {}).keys() == getattr(inner, "_near", {}).keys()


def test_noisy_vectors_are_read_as_they_were_drawn(
    tiny_encoder: TransformerEncoder, own: AttackerTexts, sides: tuple[list[str], list[str]]
) -> None:
    spec = read_setting("token_representation:eta=60")
    law = fit_posterior_attack(own, spec, 0)
    by_nearest = copy.copy(law)
    by_nearest.reading_ = "token"
    level = TokenPrior(np.ones(len(tiny_encoder.tokens)), own.prior.follows)
    n_nearest = n_likeliest = n_same = n_tokens = 0
    for seed, text in enumerate(sides[1]):
        found = defend_sentence(tiny_encoder, spec, text, seed)
        assert found.noisy is not None and found.released is not None and found.eta == 60
        table = tiny_encoder.token_vectors.detach().float().numpy()
        nearest = np.linalg.norm(found.noisy[:, None] - table, axis=2).argmin(1)
        n_same += int((nearest == found.released).sum())
        n_tokens += len(nearest)
        is_word = np.isin(nearest, candidate_ids(tiny_encoder))
        told = tiny_encoder.text_of(nearest[is_word].tolist())
        assert likeliest_text(own, found, level, by_nearest) == told
        n_nearest += words_back(tiny_encoder, text, found.told)
        n_likeliest += words_back(
            tiny_encoder, text, likeliest_text(own, found, own.prior_beside(text), law)
        )
    assert n_same > 0.9 * n_tokens, "of the same noise; the nearest of all may be no candidate"
    assert n_likeliest > 1.2 * n_nearest > 0, (n_likeliest, n_nearest)


def test_the_vector_that_is_stored_is_of_the_noise_that_is_read(
    tiny_encoder: TransformerEncoder,
) -> None:
    spec = read_setting("token_representation:eta=60")
    found = defend_sentence(tiny_encoder, spec, "The harbour master counted twelve ships.", 3)
    assert found.noisy is not None
    (stored,) = tiny_encoder.embed_token_vectors(torch.from_numpy(found.noisy[None])).numpy()
    assert found.vector[0] == pytest.approx(stored, abs=1e-5)


def test_those_that_tell_their_law_are_named(tiny_encoder: TransformerEncoder) -> None:
    rng = np.random.default_rng(0)
    for name, entry in DEFENCES.items():
        if entry.acts_on == "text":
            change = make_privatizer(make_defence(DefenceSpec.of(name, {})), tiny_encoder, rng)
            assert hasattr(change, "chances") == hasattr(change, "precompute") == (name in TELLS)
    assert has_known_distribution(read_setting("token_representation:eta=60"))
    for told in ("text_to_text:eta=40", "custext+int8", "gaussian:sigma=0.1", "custext:k=200"):
        assert not has_known_distribution(read_setting(told))


def test_special_tokens_are_no_words(tiny_encoder: TransformerEncoder, own: AttackerTexts) -> None:
    spec = read_setting("token_representation:eta=1000000")
    found = defend_sentence(tiny_encoder, spec, f"{DOG} 🙂", 0)
    read = likeliest_text(own, found, own.prior, fit_posterior_attack(own, spec, 0))
    assert read and "[UNK]" not in read
