"""The reconstruction of sentences, on an encoder whose answers are known."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.inversion import load_attack, save_attack
from leakscope.core.attacks.inversion.job import invert_all
from leakscope.core.attacks.inversion.reconstruct.attack import ReconstructAttack
from leakscope.core.attacks.inversion.reconstruct.effects import Effects
from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.quantization import quantize
from leakscope.core.attacks.inversion.reconstruct.scores import (
    MEASURES,
    score_sentence,
    score_sentences,
    word_order_tau,
    word_tokens,
)
from leakscope.core.attacks.inversion.reconstruct.start import WordPosterior, start_sentences
from leakscope.core.attacks.inversion.reconstruct.tokens import END, Lexicon, detokenize, tokens_of
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.protocols import Vectors
from leakscope.core.results import Recovery
from leakscope.core.specs import AttackSpec, EncoderSpec

TEXTS = [
    f"{who} {does} {what} {where}."
    for who in ("the minister", "a doctor", "the teacher", "my cousin")
    for does in ("saw", "bought", "lost", "painted")
    for what in ("the bridge", "a violin", "the letter", "an orange")
    for where in ("in london", "near the river", "on monday", "with a friend")
]


class OrderEncoder:
    """A text's vector is the sum of its words' and of its pairs of words' own directions."""

    name, dimension, fingerprint = "ordered", 256, "0" * 64

    def __init__(self) -> None:
        self.n_asked = 0

    def encode(self, texts: Sequence[str], on_progress: Any = None) -> Vectors:
        self.n_asked += len(texts)
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vectors:
        words = tokens_of(text) or ["?"]
        parts = [self._axis(w) for w in words]
        parts += [0.5 * self._axis(" ".join(p)) for p in pairwise(words)]
        total = np.sum(parts, axis=0)
        unit: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
        return unit

    def _axis(self, name: str) -> np.ndarray:
        seed = int.from_bytes(name.encode()[:40], "little") % 2**32
        return np.random.default_rng([seed, len(name)]).standard_normal(self.dimension)


@pytest.fixture(scope="module")
def fitted() -> ReconstructAttack:
    attack = ReconstructAttack(n_queries=400, vocabulary_size=60, lexicon_size=60, base_epochs=8)
    known = [text for i, text in enumerate(TEXTS) if i % 8]
    return attack.fit(OrderEncoder(), known)


HELD = [text for i, text in enumerate(TEXTS) if i % 8 == 0][:6]


def answers(
    attack: ReconstructAttack, encoder: OrderEncoder | None = None, **settings: Any
) -> list[Recovery]:
    """Return what an attack with other settings recovers from the vectors of `HELD`."""
    changed = copy.copy(attack)
    vars(changed).update(settings)
    encoder = encoder or OrderEncoder()
    return changed.invert(encoder, OrderEncoder().encode(HELD))


def read(answer: Recovery) -> str:
    assert answer.sentence is not None
    return answer.sentence.text


@pytest.mark.slow
def test_unseen_sentences_come_back_word_for_word(fitted: ReconstructAttack):
    found = answers(fitted)
    right = [read(answer) == true for answer, true in zip(found, HELD, strict=True)]
    assert sum(right) >= 4, [read(answer) for answer in found]
    for answer, is_right in zip(found, right, strict=True):
        assert not is_right or answer.sentence.cosine == pytest.approx(1.0, abs=1e-5)


def test_without_queries_the_encoder_is_not_asked(fitted: ReconstructAttack):
    encoder = OrderEncoder()
    found = answers(fitted, encoder, n_queries=0)
    assert encoder.n_asked == 0
    assert all(a.n_queries == 0 and a.sentence and math.isnan(a.sentence.cosine) for a in found)
    assert all(read(answer) for answer in found)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1, 7, 100])
def test_a_budget_is_kept_and_all_of_it_is_told(fitted: ReconstructAttack, budget: int):
    encoder = OrderEncoder()
    found = answers(fitted, encoder, n_queries=budget)
    assert all(0 < a.n_queries <= budget for a in found)
    assert sum(a.n_queries for a in found) >= encoder.n_asked


@pytest.mark.slow
def test_cosines_only_grow_along_the_steps_but_for_the_prior(fitted: ReconstructAttack):
    for answer in answers(fitted, prior=0.0):
        assert answer.sentence is not None
        cosines = [step.cosine for step in answer.sentence.steps[1:]]
        assert cosines == sorted(cosines)
        assert answer.sentence.steps[-1].text == answer.sentence.text
        assert answer.sentence.after(0) == answer.sentence.steps[0]
        assert answer.sentence.after(10**6) == answer.sentence.steps[-1]


def test_more_queries_are_worth_more(fitted: ReconstructAttack):
    pairs = zip(answers(fitted, n_queries=3), answers(fitted, n_queries=400), strict=True)
    gains = [many.sentence.cosine - few.sentence.cosine for few, many in pairs]
    assert len(gains) == len(HELD) and min(gains) > -1e-6 and max(gains) > 0.05


def test_neighbours_in_a_batch_change_nothing(fitted: ReconstructAttack):
    encoder = OrderEncoder()
    vectors = encoder.encode(HELD)
    alone = [fitted.invert(encoder, vectors[i : i + 1])[0] for i in range(len(HELD))]
    assert [read(a) for a in alone] == [read(a) for a in fitted.invert(encoder, vectors)]


def test_a_vector_of_length_zero_is_refused_by_row(fitted: ReconstructAttack):
    vectors = OrderEncoder().encode(HELD)
    vectors[2] = 0
    with pytest.raises(InvalidInputError, match="length zero, first in row 2"):
        fitted.invert(OrderEncoder(), vectors)


def test_stopped_midway_the_best_so_far_is_in_the_exception(fitted: ReconstructAttack):
    encoder = OrderEncoder()
    vectors, n_rounds = encoder.encode(HELD), 0

    def stop(fraction: float, message: str) -> None:
        nonlocal n_rounds
        n_rounds += 1
        if n_rounds > 3:
            raise StoppedError("enough")

    with pytest.raises(StoppedError) as stopped:
        fitted.invert(encoder, vectors, stop)
    found = stopped.value.answers
    assert found is not None and len(found) == len(HELD)
    assert all(read(answer) for answer in found)
    assert any(answer.n_queries for answer in found)


@pytest.mark.slow
def test_calibrated_it_tells_how_sure_it_is_before_and_after_it_asks(
    fitted: ReconstructAttack, tmp_path: Any
):
    assert all(math.isnan(a.sentence.confidence) for a in answers(fitted) if a.sentence)
    save_attack(fitted, tmp_path)
    sure = load_attack(tmp_path)
    assert isinstance(sure, ReconstructAttack)
    sure.n_queries = 60
    sure.calibrate(OrderEncoder(), [text for i, text in enumerate(TEXTS) if i % 8 == 0][6:])
    save_attack(sure, tmp_path)
    restored = load_attack(tmp_path)
    assert isinstance(restored, ReconstructAttack) and restored.confidence_ == sure.confidence_
    for budget in (0, 60):
        for answer in answers(restored, n_queries=budget):
            assert answer.sentence is not None and answer.sentence.words
            assert [w.word for w in answer.sentence.words] == word_tokens(answer.sentence.text)
            told = [answer.sentence.confidence, *(w.score for w in answer.sentence.words)]
            assert all(0 < p < 1 for p in told)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel.fit(TEXTS, size=60, least=1)


def test_a_sentence_of_the_language_is_likelier_than_its_words_turned_round(model: LanguageModel):
    sentence = model.lexicon.ids(tokens_of(TEXTS[5]))
    forwards, backwards = model.log_probabilities([sentence, sentence[::-1].copy()])
    assert forwards > backwards + 5


def test_the_language_model_is_the_same_from_its_arrays(model: LanguageModel):
    again = LanguageModel.from_arrays(model.arrays(), model.lexicon.tokens)
    ids = [model.lexicon.ids(tokens_of(text)) for text in TEXTS[:20]]
    assert again.log_probabilities(ids).tolist() == model.log_probabilities(ids).tolist()
    spoilt = model.arrays() | {"triple": model.arrays()["triple"]}
    spoilt["triple_tokens"] = spoilt["triple_tokens"][:-1]
    with pytest.raises(InvalidInputError, match="inconsistent"):
        LanguageModel.from_arrays(spoilt, model.lexicon.tokens)


def test_effects_lead_towards_the_missing_word(model: LanguageModel):
    encoder = OrderEncoder()
    ids = [model.lexicon.ids(tokens_of(text)) for text in TEXTS]
    effects = Effects.fit(ids, encoder.encode(TEXTS), len(model.lexicon))
    whole, part = encoder.encode(["the doctor lost a violin.", "the doctor lost a letter."])
    pull = effects.pull((whole - part)[None])[0]
    found, others = model.lexicon.ids(["violin"])[0], model.lexicon.ids(["orange", "river"])
    assert pull[found] > pull[others].max()


def test_of_a_rare_token_its_encoding_alone_tells_the_effect():
    rng = np.random.default_rng(0)
    size, d = 230, 32
    true = rng.standard_normal((size, d)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]  # alone it is not what it is in a sentence
    alone = (true @ turn + 0.1 * rng.standard_normal((size, d)) + 3).astype(np.float32)
    ids = [rng.integers(3, 220, 12).astype(np.int32) for _ in range(3000)]
    ids += [np.array([*rng.integers(3, 220, 11), word], np.int32) for word in range(220, 230)]
    vectors = np.stack([true[own].sum(0) / np.sqrt(len(own)) for own in ids]).astype(np.float32)
    vectors += 0.3 * rng.standard_normal(vectors.shape).astype(np.float32)

    def near(effects: Effects) -> float:
        own, meant = effects.vectors[220:], true[220:]
        cosines = (own * meant).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(meant, axis=1)
        return float(cosines.mean())

    bare, helped = (Effects.fit(ids, vectors, size, alone=a) for a in (None, alone))
    assert near(helped) > 0.9 > near(bare) + 0.05


def test_effects_are_kept_in_half_a_byte_and_those_in_a_byte_still_open():
    values = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    effects = Effects(values, np.ones(5, np.float32))
    kept = effects.arrays()
    assert kept["halves"].shape == (6, 3) and kept["halves"].dtype == np.uint8
    again = Effects.from_arrays(kept, 6, 5).vectors
    steps = np.abs(values).max(1, keepdims=True) / 7
    assert (np.abs(again - values) <= steps / 2 + 1e-6).all()
    codes, scale = quantize(values)
    old = {"codes": codes, "scale": scale, "centre": effects.centre}
    np.testing.assert_allclose(Effects.from_arrays(old, 6, 5).vectors, values, atol=0.02)
    for arrays, size, d in ((kept, 7, 5), (kept, 6, 4), (old, 6, 6), (old, 5, 5)):
        with pytest.raises(InvalidInputError, match="train the attack again"):
            Effects.from_arrays(arrays, size, d)


def test_the_start_uses_the_words_that_were_heard(model: LanguageModel):
    posterior = WordPosterior(
        model.lexicon.ids(["doctor", "violin", "lost"]), np.array([0.9, 0.9, 0.8])
    )
    long, short, bare = start_sentences(posterior, model)
    assert set(bare.tolist()) == set(posterior.tokens.tolist())
    assert END not in long and len(long) >= len(short) >= 1
    assert set(posterior.tokens.tolist()) <= set(long.tolist())


def test_tokens_and_texts_go_both_ways():
    text = "ada's cats (two) don't mind: 1,204.5 of them, asleep."
    assert detokenize(tokens_of(text)) == text
    assert Lexicon.count([["b", "a", "b"]], 5).tokens[3:] == ("b", "a")


def test_scores_of_the_very_sentence_are_full_and_of_another_none():
    same = score_sentence("The Doctor lost a violin.", "the doctor lost a violin")
    assert all(same[m] == pytest.approx(100) for m in ("rouge_l", "exact", "token_f1"))
    assert same["kendall_tau"] == pytest.approx(100) and same["bleu_2"] > 80
    other = score_sentence("The doctor lost a violin.", "my cousin sings")
    assert all(other[m] == 0 for m in ("rouge_l", "exact", "token_f1"))
    assert math.isnan(other["kendall_tau"]) and other["bleu_2"] < 20


def test_scores_count_order_as_worked_by_hand():
    turned = score_sentence("one two three four", "three four one two")
    assert turned["rouge_l"] == pytest.approx(50) and turned["token_f1"] == pytest.approx(100)
    assert turned["kendall_tau"] == pytest.approx(100 * (2 - 4) / 6)
    # Of four pairs of neighbours two are right, all four words: the root of 1 · 2/3.
    assert turned["bleu_2"] == pytest.approx(100 * math.sqrt(2 / 3), abs=0.1)
    assert word_order_tau(["a"], ["a"]) != word_order_tau(["a"], ["a"])  # NaN: nothing to order


def test_means_have_intervals_and_leave_out_what_is_unknown():
    found = score_sentences(["one two", "three four"], ["one two", "five"])
    assert set(found) == set(MEASURES)
    assert found["rouge_l"].value == pytest.approx(50) and found["rouge_l"].n == 2
    assert found["kendall_tau"].n == 1


def test_no_match_of_a_few_is_no_proof_that_none_can_match():
    true, read = ["one two"] * 12, ["three"] * 12
    alone = score_sentences(true, read)["exact"]
    assert alone.value == alone.ci95.low == 0 and alone.ci95.high == pytest.approx(24.25, abs=0.01)
    four = score_sentences(true, read, groups=[i // 3 for i in range(12)])["exact"]
    assert four.n == 12 and four.ci95.high == pytest.approx(48.99, abs=0.01)  # 1.96² / (4 + 1.96²)
    mixed = score_sentences(true, ["one two"] * 3 + ["three"] * 9)["exact"]
    assert mixed.value == 25 and (mixed.ci95.low, mixed.ci95.high) == pytest.approx(
        (8.89, 53.23), abs=0.01
    )


@pytest.mark.slow
def test_the_attack_that_ships_reads_a_sentence_in_order(minilm: TransformerEncoder):
    spec = AttackSpec.of("reconstruct", {"n_queries": 300})
    vectors = minilm.encode(["The doctor lost his violin in London."])
    (answer,) = invert_all(spec, EncoderSpec(name="minilm", device="cpu"), vectors)
    assert answer.sentence is not None and answer.sentence.cosine > 0.85
    scores = score_sentence("The doctor lost his violin in London.", answer.sentence.text)
    assert scores["rouge_l"] > 50, answer.sentence.text
    assert 0 < answer.sentence.confidence < 1 and len(answer.sentence.words) > 3
