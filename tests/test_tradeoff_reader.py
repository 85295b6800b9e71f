"""Who reads one sentence's released tokens, and knows what the mechanism does."""

from __future__ import annotations

import numpy as np
import pytest

from core.attacks.inversion.token_prior import TokenPrior
from core.defences.metric_dp.mechanisms import privatizer_of
from core.defences.protected import generator_of
from core.defences.registry import make_defence
from core.encoders.transformer import TransformerEncoder
from core.studies.tradeoff_reader import reader_of
from core.studies.tradeoff_setting import read_setting
from core.studies.tradeoff_tried import defended


@pytest.fixture(scope="module")
def sides(small_texts: list[str]) -> tuple[list[str], list[str]]:
    """What the attacker knows, and what is protected."""
    return small_texts[:350], small_texts[350:]


def test_a_text_is_taken_out_of_what_is_known_by_hand() -> None:
    rows = [[0, 1, 1], [0, 2], [0, 1]]
    found, fewer = TokenPrior.of(rows, 3).without([0, 1, 1]), TokenPrior.of(rows[1:], 3)
    assert found.counts.tolist() == fewer.counts.tolist() == [2, 1, 1]
    assert (found.follows != fewer.follows).nnz == 0
    every = np.arange(3)
    assert found.log_after(every, every) == pytest.approx(fewer.log_after(every, every))


def test_more_of_chosen_tokens_is_read_than_was_left(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]
) -> None:
    known, texts = sides
    spec = read_setting("custext:epsilon=0.5,k=20")
    reader = reader_of(tiny_encoder, spec, known, 0)
    assert reader is not None and reader.law is not None
    assert reader.known.isdisjoint(texts) and len(reader.known) <= len(known) * 0.9
    n_left = n_read = 0
    for seed, text in enumerate(texts):
        found = defended(tiny_encoder, spec, text, seed)
        (own,) = tiny_encoder.token_ids([text])
        assert found.released is not None and len(found.released) == len(own)
        assert tiny_encoder.text_of(found.released.tolist()) == found.told == found.text
        read = reader.read(text, found.released, seed)
        truth = set(tiny_encoder.text_of(own).split())
        n_left += len(truth & set(found.told.split()))
        n_read += len(truth & set(read.split()))
    assert n_read > 1.5 * n_left, (n_read, n_left)


def test_a_known_text_is_no_help_to_read_itself(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]
) -> None:
    known, texts = sides
    spec = read_setting("custext:epsilon=0.5")
    alone = reader_of(tiny_encoder, spec, known, 0)
    cheating = reader_of(tiny_encoder, spec, [*known, *texts], 0)
    assert alone is not None and cheating is not None and cheating.law is not None
    text = texts[0]
    (own,) = tiny_encoder.token_ids([text])
    asked: list[TokenPrior] = []
    cheating.law.__class__ = type("Seen", (type(cheating.law),), {
        "read": lambda law, rows: (asked.append(law.prior_), rows)[1]})  # fmt: skip
    cheating.read(text, np.array(own), 0)
    (prior,) = asked
    assert prior.counts.sum() == cheating.prior.counts.sum() - len(own)
    cheating.read("none of the texts", np.array(own), 0)
    assert asked[1] is cheating.prior


def test_noisy_vectors_are_read_under_the_noise_that_was_drawn(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]
) -> None:
    known, texts = sides
    spec = read_setting("token_representation:eta=40")
    reader = reader_of(tiny_encoder, spec, known, 0)
    assert reader is not None and reader.law is None
    uniform = TokenPrior(np.ones(len(tiny_encoder.tokens)), reader.prior.follows)
    level = type(reader)(tiny_encoder, spec, frozenset(), uniform, None)
    n_nearest = n_likeliest = 0
    for seed, text in enumerate(texts):
        (own,) = tiny_encoder.token_ids([text])
        nearest = privatizer_of(make_defence(spec), tiny_encoder, generator_of(seed))
        found = defended(tiny_encoder, spec, text, seed)
        released = nearest.tokens(np.array(own))
        assert found.released is not None and found.released.tolist() == released.tolist()
        # Where all tokens are used alike the likeliest is the nearest, but that none is left out.
        of_level = level.read(text, released, seed)
        is_candidate = np.isin(own, nearest.ids).all()
        assert of_level == found.told or not is_candidate or "[" in of_level
        truth = set(tiny_encoder.text_of(own).split())
        n_nearest += len(truth & set(str(found.told).split()))
        n_likeliest += len(truth & set(reader.read(text, released, seed).split()))
    assert n_likeliest > 1.2 * n_nearest, (n_likeliest, n_nearest)


@pytest.mark.parametrize(
    "told",
    [
        "text_to_text:eta=40",
        "text_to_text_ranked:eta=40",
        "custext+int8",
        "gaussian:sigma=0.1",
        "text_to_text+santext",
    ],
)
def test_what_cannot_tell_what_it_does_has_no_such_reader(
    told: str, tiny_encoder: TransformerEncoder, sides: tuple[list[str], list[str]]
) -> None:
    assert reader_of(tiny_encoder, read_setting(told), sides[0], 0) is None
