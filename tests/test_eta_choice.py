from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.core.defences.deniability.eta_choice import (
    choose_by_corpus,
    choose_by_tokens,
    corpus_counts,
    token_inversion,
)
from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.deniability import describe_scales, outlook
from leakscope.core.results import Interval, Score
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff, measured_etas, shipped_tradeoff


@pytest.fixture
def found() -> VocabularyDeniability:
    """Three tokens, four η, a hundred draws, counted by hand."""
    n_w = np.array([[0, 10, 50, 99], [5, 20, 60, 100], [10, 60, 90, 100]], np.uint16)
    return replace(
        _counted(n_w),
        n_draws=100,
        tokens=np.array([2, 5, 9]),
        etas=np.array([10.0, 20.0, 40.0, 80.0]),
        s_w=np.array([[90, 70, 30, 2], [80, 50, 20, 1], [70, 30, 8, 1]], np.uint16),
    )


def test_the_worst_token_decides(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.5)
    assert (chosen.eta, chosen.kept_by) == (10.0, 1.0)
    assert chosen.sentence == (
        "With Text to text at η = 10, every token is changed in at least 50% of cases (from 100 "
        "draws)."
    )


def test_a_share_of_the_tokens_allows_less_noise(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.5, share=0.6)
    assert chosen.eta == 20.0 and chosen.kept_by == pytest.approx(2 / 3)
    assert "60% of all tokens are changed" in chosen.sentence


def test_distinct_replacements_can_be_asked_for(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.4, distinct=40, share=0.6)
    assert chosen.eta == 20.0
    assert "to one of at least 40 tokens" in chosen.sentence


def test_says_so_where_no_eta_is_small_enough(found: VocabularyDeniability) -> None:
    chosen = choose_by_tokens(found, changed=0.95)
    assert chosen.eta is None and chosen.kept_by == pytest.approx(2 / 3)
    assert chosen.sentence.startswith(
        "With Text to text, no η of 10 or more is so small that every token"
    )


def test_token_inversion_by_hand(found: VocabularyDeniability) -> None:
    # Token 2 three times, token 9 once; token 4 is no candidate.
    accuracy, coverage = token_inversion(found, {2: 3, 9: 1, 4: 1})
    assert accuracy == pytest.approx([0.025, 0.225, 0.6, 0.9925])
    assert coverage == pytest.approx(4 / 5)
    chosen = choose_by_corpus(found, {2: 3, 9: 1}, recovered=0.3)
    assert chosen.eta == 20.0 and chosen.kept_by == pytest.approx(0.775)
    assert "at most 30% of the corpus's tokens stay unchanged" in chosen.sentence


@pytest.mark.parametrize(
    "asked", [{"changed": 1.2}, {"changed": 0.5, "share": 0}, {"changed": 0.5, "distinct": 0}]
)
def test_refuses_shares_outside_their_range(
    found: VocabularyDeniability, asked: dict[str, float]
) -> None:
    with pytest.raises(InvalidInputError, match="must lie in"):
        choose_by_tokens(found, **asked)  # type: ignore[arg-type]


def test_refuses_a_corpus_without_tokens(found: VocabularyDeniability) -> None:
    with pytest.raises(InvalidInputError, match="contains no token"):
        token_inversion(found, {})
    with pytest.raises(InvalidInputError, match="among the candidates"):
        token_inversion(found, {4: 2})
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        choose_by_corpus(found, {2: 1}, recovered=1.0)


def test_no_eta_is_recommended_beyond_a_smaller_one_that_breaks_the_bound(
    found: VocabularyDeniability,
) -> None:
    gap = replace(found, n_w=np.array([[0, 90, 10, 99]] * 3, np.uint16))
    assert choose_by_tokens(gap, changed=0.5).eta == 10.0
    assert choose_by_tokens(gap, changed=0.5, confidence=0.9).eta == 10.0
    assert choose_by_corpus(gap, {2: 1}, recovered=0.5).eta == 10.0
    assert choose_by_corpus(gap, {2: 1}, recovered=0.5, confidence=0.9).eta == 10.0
    few = replace(found, s_w=np.array([[1, 70, 30, 2]] * 3, np.uint16))
    assert choose_by_tokens(few, changed=0.1, distinct=5).eta is None, "at η 10 it is broken"
    falling = replace(found, n_w=np.array([[90, 60, 10, 5]] * 3, np.uint16))
    for confidence in (None, 0.9):
        assert choose_by_tokens(falling, changed=0.5, confidence=confidence).eta is None
        chosen = choose_by_corpus(falling, {2: 1}, recovered=0.5, confidence=confidence)
        assert chosen.eta is None


def test_a_certified_eta_allows_for_the_draws(found: VocabularyDeniability) -> None:
    # By Clopper & Pearson at 0.05/3: 10 of 100 draws say at most 0.186, 20 at most 0.304.
    chosen = choose_by_tokens(found, changed=0.8, confidence=0.95)
    assert (chosen.eta, choose_by_tokens(found, changed=0.82, confidence=0.95).eta) == (10.0, None)
    assert "certified with 95% confidence for all 3 tokens, from 100 draws" in chosen.sentence
    certain = replace(found, n_w=np.array([[0, 0, 0, 100]] * 3, np.uint16))
    assert choose_by_tokens(certain, changed=0.96, confidence=0.95).eta is None, "0 of 100 draws"
    assert choose_by_tokens(certain, changed=0.0, confidence=0.95).eta == 80.0
    by_corpus = choose_by_corpus(found, {2: 3, 9: 1}, recovered=0.3, confidence=0.95)
    assert by_corpus.eta == 10.0 and "certified with 95% confidence" in by_corpus.sentence


def test_a_certificate_is_wrong_no_more_often_than_it_says() -> None:
    """Tokens that come back in just more than half of the cases are hardly ever certified."""
    rng, n_wrong, n_plain = np.random.default_rng(0), 0, 0
    for _ in range(400):
        n_w = rng.binomial(1000, 0.501, size=(20, 1)).astype(np.uint16)
        made = _counted(n_w)
        n_wrong += choose_by_tokens(made, changed=0.5, confidence=0.9).eta is not None
        n_plain += choose_by_tokens(made, changed=0.5, share=0.05).eta is not None
        corpus = {int(token): 1 for token in made.tokens}
        n_wrong += choose_by_corpus(made, corpus, recovered=0.5, confidence=0.9).eta is not None
    assert n_wrong <= 0.1 * 400 and n_plain > 0.9 * 400


def _counted(n_w: np.ndarray) -> VocabularyDeniability:
    n_tokens, n_etas = n_w.shape
    return VocabularyDeniability(
        encoder="hand",
        fingerprint="",
        candidates="regular",
        n_draws=1000,
        seeds=(0,),
        seconds=0.0,
        tokens=np.arange(n_tokens),
        etas=np.linspace(10.0, 80.0, n_etas),
        n_w=n_w,
        s_w=np.full(n_w.shape, 9, np.uint16),
        ranks=np.array([100]),
        eta_at_rank=np.array([[90.0]], np.float32),
        mean_n_w=np.zeros((1, n_etas)),
        mean_s_w=np.zeros((1, n_etas)),
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0])
def test_a_confidence_is_a_share(found: VocabularyDeniability, confidence: float) -> None:
    with pytest.raises(InvalidInputError, match="confidence must lie between 0 and 1"):
        choose_by_tokens(found, changed=0.5, confidence=confidence)
    with pytest.raises(InvalidInputError, match="confidence must lie between 0 and 1"):
        choose_by_corpus(found, {2: 1}, recovered=0.5, confidence=confidence)


def test_counts_every_token_of_a_corpus(tiny_encoder: TransformerEncoder) -> None:
    counts = corpus_counts(tiny_encoder, ["money river money", "river"])
    money, river = (tiny_encoder.tokens.index(t) for t in ("money", "river"))
    assert counts == {money: 2, river: 2}


def point(defence: str, eta: float | None, useful: float, leak: float) -> Point:
    return Point(
        defence,
        (("eta", eta),) if eta else (),
        {
            "one": Score(useful, Interval(useful - 5, useful + 5), 100, 50.0),
            "two": Score(60.0, Interval(55.0, 65.0), 100, 20.0),
        },
        {"probe_mlc": Score(leak, Interval(leak - 1, leak + 1), 100, 3.0)},
        Score(12.0, Interval(11.0, 13.0), 100) if eta else None,
    )


@pytest.fixture
def tradeoff() -> Tradeoff:
    return Tradeoff(
        (
            point("none", None, 90.0, 40.0),
            point("text_to_text", 60.0, 54.0, 8.0),
            point("text_to_text", 120.0, 80.0, 30.0),
            point("token_representation", 480.0, 60.0, 20.0),
        ),
        {},
    )


def test_the_nearest_measured_eta_is_told_by_hand(tradeoff: Tradeoff) -> None:
    near = outlook(tradeoff, "text_to_text", 55.0)
    # One: (54 − 50) / (90 − 50) = 10 %, its interval reaches 49 < 50; two: all of it.
    assert near.measured == 60.0 and near.is_near
    assert near.kept == {"one": pytest.approx(0.1), "two": 1.0}
    where, useful, read = near.sentences
    assert "not measured at this η. The nearest η measured is 60, with less noise:" in where
    assert "55 % is left on average over 2 tasks" in useful
    assert "(worst task 10 %, best 100 %)" in useful
    assert "On 1 of 2 tasks, utility is not significantly better than guessing" in useful
    assert "recovers words with an F1 of 8 (95 % CI 7–9)" in read
    assert "Without a defence, the F1 is 40 (95 % CI 39–41)" in read
    assert "guessing reaches 3." in read
    assert "Of the tokens of the sentences attacked for this, 12 % (95 % CI 11–13) stay" in read


def test_an_eta_that_was_measured_is_said_to_be(tradeoff: Tradeoff) -> None:
    assert (
        outlook(tradeoff, "text_to_text", 120.0).sentences[0].endswith("were measured at this η:")
    )


@pytest.mark.parametrize(("eta", "measured"), [(30.0, 60.0), (84.0, 60.0), (86.0, 120.0)])
def test_where_nothing_was_measured_near_it_says_so(
    tradeoff: Tradeoff, eta: float, measured: float
) -> None:
    far = outlook(tradeoff, "text_to_text", eta)
    assert not far.is_near and far.measured == measured
    (only,) = far.sentences
    assert f"Nothing was measured near η = {eta:g}" in only and "are unknown" in only
    assert f"Text to text is {measured:g}" in only


def test_a_mechanism_that_was_not_measured(tradeoff: Tradeoff) -> None:
    (only,) = outlook(tradeoff, "sequence_representation", 200.0).sentences
    assert "was not measured" in only


def test_other_mechanisms_lie_on_other_scales(tradeoff: Tradeoff) -> None:
    told = describe_scales(tradeoff, "text_to_text")
    assert "only for **Text to text**" in told
    assert "“Token representation” at η 480" in told


def test_what_ships_can_be_told() -> None:
    shipped = shipped_tradeoff()
    measured = list(measured_etas(shipped, "text_to_text"))
    assert measured == sorted(measured) and len(measured) > 1
    for eta in measured:
        told = outlook(shipped, "text_to_text", 0.95 * eta)
        assert told.measured == eta and len(told.sentences) == 3
    assert "“Sequence representation” at η 200 to 800" in describe_scales(shipped, "text_to_text")
