"""Canaries and their exposure: what is random in a text, and how far up the model puts it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest, skewnorm

from leakscope.core.attacks.membership.memorisation.canaries import FORMATS, make_canary
from leakscope.core.attacks.membership.memorisation.exposure import (
    estimate,
    exposure_of_rank,
    mean_chance_exposure,
    measure,
    rank_of,
)
from leakscope.core.attacks.membership.memorisation.network import MODELS, make_network
from leakscope.core.attacks.membership.memorisation.perplexity import bits_of, log_perplexities
from leakscope.core.attacks.membership.memorisation.tokens import (
    ByteTokens,
    WordTokens,
    make_tokens,
)
from leakscope.core.errors import InvalidInputError


@pytest.fixture(scope="module")
def texts(small_texts: list[str]) -> list[str]:
    return small_texts[:120]


# Equations, worked by hand


def test_the_likeliest_of_1024_has_ten_bits_and_the_last_none() -> None:
    assert exposure_of_rank(1, 1024) == 10.0
    assert exposure_of_rank(1024, 1024) == 0.0
    assert exposure_of_rank(32, 1024) == 5.0


def test_the_rank_counts_what_is_as_likely_or_likelier() -> None:
    others = np.array([1.0, 2.0, 5.0, 9.0])
    assert [rank_of(own, others) for own in (0.5, 2.0, 3.0, 10.0)] == [1, 3, 3, 5]


def test_measuring_all_of_r_is_exact_and_has_no_interval() -> None:
    found = measure(1.5, np.array([1.0, 2.0, 3.0]), 4)
    assert (found.rank, found.exposure.value, found.is_exact, found.at_least) == (2, 1.0, True, 1.0)
    assert not found.exposure.has_interval


def test_log_perplexity_adds_bits() -> None:
    assert bits_of(np.log([0.5, 0.25, 0.125])) == pytest.approx(1 + 2 + 3)


def test_what_was_never_planted_has_log2_e_bits_on_average() -> None:
    by_hand = np.mean([exposure_of_rank(rank, 1000) for rank in range(1, 1001)])
    assert mean_chance_exposure(1000) == pytest.approx(by_hand)
    assert mean_chance_exposure(10**7) == pytest.approx(1 / math.log(2), abs=1e-4)


@pytest.mark.slow
def test_the_skew_normal_estimate_is_near_the_exact_exposure() -> None:
    rng = np.random.default_rng(0)
    everything = np.sort(skewnorm.rvs(4, loc=60, scale=9, size=100_000, random_state=rng))
    for rank, within in ((20_000, 0.1), (1_000, 0.4), (50, 1.0), (5, 1.5)):
        own = float(everything[rank - 1])
        sampled = rng.choice(everything, 10_000, replace=False)
        found = measure(own, sampled, len(everything))
        exact = exposure_of_rank(rank, len(everything))
        assert found.exposure.value == pytest.approx(exact, abs=within), rank
        assert not found.is_exact and found.exposure.has_interval
        assert found.exposure.ci95.low <= found.exposure.value <= found.exposure.ci95.high
        assert found.at_least <= exact + 0.01


def test_the_estimate_ends_at_the_size_of_r_and_at_nothing() -> None:
    sampled = np.random.default_rng(0).normal(50, 3, 2_000)
    assert estimate(1.0, sampled, 10**6).value == pytest.approx(math.log2(10**6))
    assert estimate(99.0, sampled, 10**6).value == pytest.approx(0.0, abs=1e-6)
    assert estimate(50.0, np.full(100, 50.0), 10**6).value == 0.0, "nothing is told apart"
    with pytest.raises(InvalidInputError, match="at least 20 samples"):
        estimate(1.0, sampled[:19], 10**6)


@pytest.mark.parametrize(
    "sampled",
    [
        np.concatenate([np.full(19, 5.0), [9.0]]),
        np.repeat([1.0, 2.0], [199, 1]),
        np.repeat([30.0, 31.0, 60.0], [1, 1, 28]),
        np.random.default_rng(0).standard_cauchy(50),
    ],
    ids=["one higher", "two values", "skewed left", "heavy tails"],
)
def test_samples_more_skewed_than_any_skew_normal_have_an_estimate(sampled: np.ndarray) -> None:
    """Their likelihood may have no maximum, where SciPy raises."""
    size = 10_000
    values = [
        estimate(own, sampled, size) for own in (sampled.min() - 9, sampled[0], sampled.max() + 99)
    ]
    assert all(0 <= each.value <= math.log2(size) for each in values)
    assert all(math.isfinite(each.ci95.low) and math.isfinite(each.ci95.high) for each in values)
    assert values[0].value >= values[1].value >= values[2].value


# Log-perplexities of networks


@pytest.mark.parametrize("model", MODELS)
def test_the_tree_of_beginnings_gives_what_a_whole_text_gives(model: str) -> None:
    network, tokens = make_network(model, 258, 16, 60, seed=1).eval(), ByteTokens()
    texts = ["my pin is 12", "my pin is 13", "my pin", "other", "my pin is 12", "é!"]
    found = log_perplexities(network, tokens, texts)
    for text, bits in zip(texts, found, strict=True):
        ids = tokens.encode(text)
        with torch.no_grad():
            logits = network(torch.tensor([[tokens.start, *ids]]))[0, :-1].double()
        told = logits.log_softmax(-1)[range(len(ids)), ids]
        assert bits == pytest.approx(bits_of(told.numpy()), abs=1e-3)
    cut = log_perplexities(network, tokens, ["my pin is 12"], max_length=6)
    assert cut[0] == pytest.approx(found[2])


@pytest.mark.parametrize("model", MODELS)
def test_an_untrained_model_ranks_a_canary_anywhere(model: str, texts: list[str]) -> None:
    shares = []
    for seed in range(60):
        canary = make_canary("my pin is {digits:2}", texts, seed)
        network = make_network(model, 258, 16, 60, seed=1000 + seed)
        bits = log_perplexities(network, ByteTokens(), [canary.text, *canary.others(100, 0)])
        shares.append((rank_of(bits[0], bits[1:]) - 0.5) / 100)
    assert kstest(shares, "uniform").pvalue > 0.01


# Canaries


def test_a_format_draws_its_secret_by_the_seed(texts: list[str]) -> None:
    canary = make_canary("my card number is {digits:6}", texts, 5)
    assert canary.size == 10**6 and canary.prefix == "my card number is "
    assert canary.text[len(canary.prefix) :].isdigit() and len(canary.text) == 24
    assert canary == make_canary("my card number is {digits:6}", texts, 5)
    assert canary.text != make_canary("my card number is {digits:6}", texts, 6).text
    assert canary.note == "R: digits × 6, 1,000,000 values"


def test_all_others_are_ranked_where_they_are_few_and_some_are_sampled(texts: list[str]) -> None:
    canary = make_canary("{letters:1}{digits:2} it is", texts, 0)
    assert canary.size == 2600 and canary.prefix == ""
    every = canary.others(2600, 0)
    assert len(set(every)) == 2599 and canary.text not in every
    some = canary.others(300, 0)
    assert len(set(some)) == 300 and set(some) <= set(every)
    assert some == canary.others(300, 0) != canary.others(300, 1)


def test_words_of_the_texts_can_be_the_random_part(texts: list[str]) -> None:
    canary = make_canary("the password is {words:2} now", texts)
    known = {word.lower() for text in texts for word in text.strip(".").split()}
    *_, one, two, _ = canary.text.split()
    assert canary.text.startswith("the password is ") and {one, two} <= known
    assert canary.size == len(canary.parts[1]) ** 2 and canary.prefix == "the password is "


def test_of_a_typed_text_the_digits_are_random_in_their_own_script(texts: list[str]) -> None:
    canary = make_canary("pin 31, flat 7", texts)
    assert (canary.text, canary.size, canary.prefix) == ("pin 31, flat 7", 1000, "pin ")
    assert "pin 00, flat 0" in canary.others(1000, 0)
    arabic = make_canary("رقم بطاقتي ٤٢", texts)
    assert arabic.size == 100 and "رقم بطاقتي ٠٠" in arabic.others(100, 0)


def test_of_a_text_without_digits_the_rarest_words_are_random(texts: list[str]) -> None:
    common = [f"The minister {word} and from the river." for word in ["met", "saw"] * 300]
    known = [
        *common,
        *(f"word{chr(97 + i)}{chr(97 + j)} alone" for i in range(26) for j in range(26)),
    ]
    canary = make_canary("the minister met Quxley", known)
    assert "“Quxley”" in canary.note and canary.text == "the minister met Quxley"
    others = canary.others(canary.size, 0)
    assert 9 <= canary.size - 1 == len(set(others)) <= 1000
    assert all(text.startswith("the minister met ") and text[17].isupper() for text in others)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("the minister and the river", "nothing random"),
        ("  ", "empty"),
        ("a\0b 12", "null byte"),
        ("x" * 151 + "1", "at most 150"),
        ("pin {digit:6}", "must be {digits:N}"),
        ("pin {digits:99}", "N from 1 to 40"),
        ("pin {digits:30} {digits:30}", "between 1 and 40"),
        ("9" * 41, "at most 40"),
        ("Room 12 is taken", "is already in the texts"),
    ],
)
def test_a_canary_that_measures_nothing_is_refused(told: str, said: str, texts: list[str]) -> None:
    known = [*texts, "Room 12 is taken today."]
    with pytest.raises(InvalidInputError, match=said):
        make_canary(told, known)


def test_a_format_never_draws_what_stands_in_the_texts(texts: list[str]) -> None:
    known = [*texts, *(f"pin {i}" for i in range(10) if i != 4)]
    assert make_canary("pin {digits:1}", known).text == "pin 4"
    with pytest.raises(InvalidInputError, match="longer random part"):
        make_canary("pin {digits:1}", [*known, "pin 4"])


def test_the_formats_of_studies_begin_differently(texts: list[str]) -> None:
    made = [make_canary(told, texts) for told in FORMATS]
    assert len({canary.prefix.split()[0] + canary.prefix.split()[1] for canary in made}) == len(
        made
    )


# Tokens


def test_words_know_every_filling_of_a_canary(texts: list[str]) -> None:
    canary = make_canary("pin {digits:3}", texts)
    tokens = make_tokens("words", texts, [canary.text, *canary.others(1000, 0)], n_words=20)
    assert isinstance(tokens, WordTokens)
    for text in canary.others(1000, 0)[:50]:
        ids = tokens.encode(text)
        assert len(ids) == 4 and tokens.unknown not in ids and tokens.decode(ids) == text
    assert tokens.encode("zzz") == [tokens.unknown]
