from __future__ import annotations

import numpy as np
import pytest

from core.defences.deniability.eta_choice import (
    choose_by_corpus,
    choose_by_tokens,
    corpus_counts,
    token_inversion,
)
from core.defences.deniability.vocabulary import VocabularyDeniability
from core.encoders.transformer import TransformerEncoder
from core.errors import InvalidInputError


@pytest.fixture
def found() -> VocabularyDeniability:
    """Three tokens, four η, a hundred draws, counted by hand."""
    return VocabularyDeniability(
        encoder="hand",
        fingerprint="",
        candidates="regular",
        n_draws=100,
        seeds=(0,),
        seconds=0.0,
        tokens=np.array([2, 5, 9]),
        etas=np.array([10.0, 20.0, 40.0, 80.0]),
        n_w=np.array([[0, 10, 50, 99], [5, 20, 60, 100], [10, 60, 90, 100]], np.uint16),
        s_w=np.array([[90, 70, 30, 2], [80, 50, 20, 1], [70, 30, 8, 1]], np.uint16),
        ranks=np.array([100]),
        eta_at_rank=np.array([[90.0], [70.0], [60.0]], np.float32),
        mean_n_w=np.zeros((1, 4)),
        mean_s_w=np.zeros((1, 4)),
    )


def test_the_worst_token_decides(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.5)
    assert (chosen.eta, chosen.kept_by) == (10.0, 1.0)
    assert (
        chosen.sentence
        == "Text to text at η = 10: every token is changed in at least 50% of cases."
    )


def test_a_share_of_the_tokens_allows_less_noise(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.5, share=0.6)
    assert chosen.eta == 20.0 and chosen.kept_by == pytest.approx(2 / 3)
    assert "60% of all tokens are changed" in chosen.sentence


def test_distinct_replacements_can_be_asked_for(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.4, distinct=40, share=0.6)
    assert chosen.eta == 20.0
    assert "into one of at least 40 tokens" in chosen.sentence


def test_says_so_where_no_eta_is_small_enough(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.95)
    assert chosen.eta is None and chosen.kept_by == pytest.approx(2 / 3)
    assert chosen.sentence.startswith(
        "Text to text: no η from 10 on is small enough that every token"
    )


def test_token_inversion_by_hand(found: VocabularyDeniability) -> None:
    # Token 2 three times, token 9 once; token 4 is no candidate.
    accuracy, coverage = token_inversion(found, {2: 3, 9: 1, 4: 1})
    assert accuracy == pytest.approx([0.025, 0.225, 0.6, 0.9925])
    assert coverage == pytest.approx(4 / 5)
    chosen = choose_by_corpus(found, {2: 3, 9: 1}, recovered=0.3)
    assert chosen.eta == 20.0 and chosen.kept_by == pytest.approx(0.775)
    assert "at most 30% of the corpus's tokens come back unchanged" in chosen.sentence


@pytest.mark.parametrize(
    "asked", [{"changed": 1.2}, {"changed": 0.5, "share": 0}, {"changed": 0.5, "distinct": 0}]
)
def test_refuses_shares_outside_their_range(
    found: VocabularyDeniability, asked: dict[str, float]
) -> None:
    with pytest.raises(InvalidInputError, match="must lie in"):
        choose_by_tokens(found, **asked)  # type: ignore[arg-type]


def test_refuses_a_corpus_without_tokens(found: VocabularyDeniability) -> None:
    with pytest.raises(InvalidInputError, match="holds no token"):
        token_inversion(found, {})
    with pytest.raises(InvalidInputError, match="among the candidates"):
        token_inversion(found, {4: 2})
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        choose_by_corpus(found, {2: 1}, recovered=1.0)


def test_counts_every_token_of_a_corpus(tiny_encoder: TransformerEncoder) -> None:
    counts = corpus_counts(tiny_encoder, ["money river money", "river"])
    money, river = (tiny_encoder.tokens.index(t) for t in ("money", "river"))
    assert counts == {money: 2, river: 2}
