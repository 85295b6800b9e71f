from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.inversion.evaluation import (
    attack_vocabulary,
    evaluate,
    restrict,
    sample_texts,
)
from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import Vocabulary


class RowEncoder:
    """Gives every text its own number, so that an attack can know which text it sees."""

    name = "rows"
    dimension = 1
    fingerprint = "a" * 64

    def __init__(self, texts: Sequence[str]) -> None:
        self.row = {text: i for i, text in enumerate(texts)}

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        on_progress(1.0, "encoded")
        return np.array([[self.row[text]] for text in texts], np.float32)


@dataclass
class ScriptedAttack:
    """Answers what the test wrote down."""

    answers: list[set[str]]
    vocabulary_: Vocabulary
    n_queries: int = 0
    strength: float = setting(0.5, "Nothing", low=0, high=1)
    training_: dict[str, Any] = field(default_factory=lambda: {"corpus": "hand"})

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        on_progress(1.0, "inverted")
        chosen = [self.answers[int(v)] for v in vectors[:, 0]]
        return [
            Recovery(tuple(RecoveredWord(w, 1.0) for w in sorted(words)), self.n_queries)
            for words in chosen
        ]


# Document frequencies: pear 3, apple 2, fig 1 of 4 auxiliary texts; "the" is a stop word.
KNOWN = Vocabulary(("pear", "apple", "fig"), (3, 2, 1), 4, frozenset({"the"}))
TEXTS = ["The pear, the apple!", "A fig for Zanzibar", "the pear", "The the"]
ANSWERS = [{"pear", "fig"}, {"fig", "mango", "the"}, {"pear"}, {"apple"}]


def scripted(**changes: Any) -> tuple[ScriptedAttack, RowEncoder]:
    return ScriptedAttack(ANSWERS, KNOWN, **changes), RowEncoder(TEXTS)


def test_scores_of_a_hand_worked_evaluation() -> None:
    result = evaluate(*scripted(n_queries=7), TEXTS, seed=5, name="fruit")  # type: ignore[arg-type]
    scores = result.scores
    # Targets: {pear, apple}, {fig}, {pear}; the fourth text has none and does not count.
    # Answers within V: {pear, fig} (P 1/2, R 1/2), {fig} (1, 1), {pear} (1, 1).
    assert scores.n == 3
    assert scores.precision == pytest.approx(100 * 2.5 / 3)
    assert scores.token_set_f1 == pytest.approx(100 * 2.5 / 3)
    assert scores.exact_set_rate == pytest.approx(100 * 2 / 3)
    # "Zanzibar" is a name outside V, so no name is left to find.
    assert scores.n_names == 0
    assert math.isnan(scores.name_recall)
    # Words but stop words: pear apple | fig for zanzibar | pear, 4 of 6 in V.
    assert result.vocabulary_coverage == pytest.approx(4 / 6)
    # Unrestricted: {pear, fig} on {pear, apple} 1/2; {fig, mango} on {fig, for, zanzibar}
    # P 1/2, R 1/3, F1 2/5; {pear} 1.
    assert result.unrestricted_f1 == pytest.approx(100 * (1 / 2 + 2 / 5 + 1) / 3)
    # The best constant answer {pear, apple}: 1, 0 of {fig, for, zanzibar}, 2/3; the stop words of
    # the fourth text are left out. The same samples, so that intervals are of the same means.
    assert result.unrestricted.chance == pytest.approx(100 * (1 + 0 + 2 / 3) / 3)
    assert result.unrestricted.n == 3
    assert result.unrestricted.ci95.low <= result.unrestricted_f1 <= result.unrestricted.ci95.high
    assert (result.attack, result.encoder, result.texts) == ("ScriptedAttack", "rows", "fruit")
    assert (result.seed, result.vocabulary_size, result.n_queries_mean) == (5, 3, 7)
    assert result.settings == {"strength": 0.5}
    assert result.training == {"corpus": "hand"}
    assert result.sentences_per_second > 0
    json.dumps(result.to_dict())


def test_baseline_is_the_best_constant_answer_to_the_same_targets() -> None:
    result = evaluate(*scripted(), TEXTS)  # type: ignore[arg-type]
    # Shares 3/4, 1/2, 1/4 sum to 3/2: expected F1 of 1, 2, 3 words is 2(.75)/2.5 = .6,
    # 2(1.25)/3.5 = .714, 2(1.5)/4.5 = .667, so the answer is {pear, apple}.
    # Against {pear, apple}, {fig}, {pear}: F1 1, 0, 2/3.
    assert result.baseline.token_set_f1 == pytest.approx(100 * (1 + 2 / 3) / 3)
    assert result.baseline.n == result.scores.n
    prior = PriorAttack().fit_vocabulary(RowEncoder(TEXTS), KNOWN)
    itself = evaluate(prior, RowEncoder(TEXTS), TEXTS)
    assert itself.attack == "prior"
    assert itself.scores.token_set_f1 == itself.baseline.token_set_f1


def test_intervals_are_of_documents_where_these_are_given() -> None:
    attack, encoder = scripted()
    plain = evaluate(attack, encoder, TEXTS)  # type: ignore[arg-type]
    whole = evaluate(attack, encoder, TEXTS, documents=["a", "b", "a", "c"])  # type: ignore[arg-type]
    assert (whole.scores.unit, whole.scores.n_documents) == ("document", 2)
    assert whole.baseline.n_documents == 2 and plain.scores.unit == "sentence"
    assert whole.scores.token_set_f1 == plain.scores.token_set_f1
    # F1 is 1/2 and 1 in document a, 1 in b: only a and a, a and b, or b and b are drawn. Two
    # documents tell little: 75 is as many times as far from the mean as t of one degree says.
    far = (250 / 3 - 75) * 12.7062047 / 1.9599640 * 2**0.5
    assert whole.scores.token_set_f1_ci95.low == pytest.approx(250 / 3 - far)
    assert whole.scores.token_set_f1_ci95.high == 100
    assert plain.scores.token_set_f1_ci95.low == pytest.approx(50)


def test_words_that_the_encoder_never_read_are_in_no_score() -> None:
    class Short(RowEncoder):
        """Reads the first three tokens of a text."""

        def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
            ids = [[len(word) for word in text.split()] for text in texts]
            return ids if is_whole else [row[:3] for row in ids]

    texts = ["The pear, the apple!", "A fig for Zanzibar", "the pear", "The the"]
    attack = ScriptedAttack(ANSWERS, KNOWN)
    result = evaluate(attack, Short(texts), texts)
    # Read: {pear}, {fig, for}, {pear}, nothing; unread: apple, zanzibar.
    assert (result.n_words, result.n_unread, result.n_texts_cut) == (6, 2, 2)
    assert result.vocabulary_coverage == pytest.approx(3 / 4)
    # {pear, fig} on {pear}: P 1/2, R 1; {fig} on {fig}; {pear} on {pear}.
    assert result.scores.recall == 100 and result.scores.precision == pytest.approx(100 * 2.5 / 3)
    # All words: {pear, fig} on {pear} 2/3; {fig, mango} on {fig, for} 1/2; {pear} 1.
    assert result.unrestricted_f1 == pytest.approx(100 * (2 / 3 + 1 / 2 + 1) / 3)
    whole = evaluate(ScriptedAttack(ANSWERS, KNOWN), RowEncoder(texts), texts)
    assert (whole.n_unread, whole.n_texts_cut, whole.scores.recall) == (
        0,
        0,
        pytest.approx(250 / 3),
    )


def test_copies_of_texts_narrow_no_interval_of_an_evaluation() -> None:
    texts, n = [text for text in TEXTS for _ in range(9)], 9
    answers = [answer for answer in ANSWERS for _ in range(9)]
    encoder = RowEncoder(texts)
    vectors = np.arange(4 * n, dtype=np.float32)[:, None]
    many = evaluate(ScriptedAttack(answers, KNOWN), encoder, texts, vectors=vectors)
    once = evaluate(*scripted(), TEXTS)  # type: ignore[arg-type]
    assert (many.scores.n, many.scores.n_distinct, once.scores.n_distinct) == (27, 3, 3)
    for name in ("precision", "recall", "token_set_f1", "weighted_f1"):
        assert many.scores.score(name).format(6) == once.scores.score(name).format(6)
    assert many.unrestricted.format(6) == once.unrestricted.format(6)


def test_second_vocabulary_restricts_targets_answers_and_baseline() -> None:
    other = Vocabulary(("fig", "pear", "kiwi"), (9, 1, 1), 10)
    result = evaluate(*scripted(), TEXTS, vocabulary=other)  # type: ignore[arg-type]
    # V_in ∩ V_cross = {pear, fig}: targets {pear}, {fig}, {pear}; answers {pear, fig}, {fig},
    # {pear}: F1 2/3, 1, 1.
    assert result.vocabulary_size == 2
    assert result.scores.token_set_f1 == pytest.approx(100 * (2 / 3 + 2) / 3)
    # The counts are the attack's own: shares 3/4 and 1/4, and {pear} alone is the best guess.
    assert result.baseline.mean_words_answered == 1
    assert result.baseline.token_set_f1 == pytest.approx(100 * 2 / 3)


def test_names_and_numbers_within_the_vocabulary_are_counted_apart() -> None:
    texts = ["we met Ada and Bob in 1999"]
    known = Vocabulary(("ada", "bob", "1999", "met"), (1, 1, 1, 1), 2, frozenset({"and", "in"}))
    attack = ScriptedAttack([{"ada", "met"}], known)
    scores = evaluate(attack, RowEncoder(texts), texts).scores  # type: ignore[arg-type]
    assert (scores.n_names, scores.name_recall) == (3, pytest.approx(100 / 3))
    assert (scores.n_numbers, scores.number_recall) == (1, 0)
    # The rarer half of the list: 1999 and met, of which one is read.
    assert (scores.n_rare, scores.rare_recall) == (2, 50)


def test_sampling_is_without_replacement_and_by_the_seed() -> None:
    texts = [f"text {i}" for i in range(100)]
    drawn = sample_texts(texts, 30, seed=1)
    assert len(set(drawn)) == 30
    assert drawn == sample_texts(texts, 30, seed=1) == sorted(drawn, key=texts.index)
    assert drawn != sample_texts(texts, 30, seed=2)
    assert sample_texts(texts, 100, seed=1) == sample_texts(texts, None, seed=1) == texts
    assert sample_texts(texts, 1000, seed=1) == texts


@pytest.mark.parametrize(
    ("texts", "limit", "says"),
    [
        ([], None, "at least one text"),
        (["fine", ""], None, "text 2 is empty"),
        (TEXTS, 0, "limit must be at least 1, got 0"),
        (TEXTS, -3, "limit must be at least 1, got -3"),
        (["The the"], None, "No sample holds a word to find"),
        ("one string", None, "list of strings"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(texts: Any, limit: int | None, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        evaluate(ScriptedAttack(ANSWERS, KNOWN), RowEncoder(texts), texts, limit=limit)  # type: ignore[arg-type]


def test_vocabularies_without_a_common_word_are_refused() -> None:
    other = Vocabulary(("kiwi",), (1,), 10)
    with pytest.raises(InvalidInputError, match="share no word"):
        evaluate(*scripted(), TEXTS, vocabulary=other)  # type: ignore[arg-type]


def test_restrict_keeps_order_counts_and_stop_words() -> None:
    kept = restrict(KNOWN, {"fig", "pear", "kiwi"})
    assert kept == Vocabulary(("pear", "fig"), (3, 1), 4, frozenset({"the"}))


def test_progress_runs_from_encoding_to_inversion_and_can_stop() -> None:
    seen: list[tuple[float, str]] = []
    evaluate(*scripted(), TEXTS, on_progress=lambda *s: seen.append(s))  # type: ignore[arg-type]
    assert seen == [(0.5, "encoded"), (1.0, "inverted")]

    def stop(fraction: float, message: str) -> None:
        raise StoppedError("enough")

    with pytest.raises(StoppedError):
        evaluate(*scripted(), TEXTS, on_progress=stop)  # type: ignore[arg-type]


def test_attacks_without_words_of_their_own_face_the_shipped_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shipped = Vocabulary(("kiwi",), (1,), 2)
    monkeypatch.setattr(
        "leakscope.core.attacks.inversion.evaluation.shipped_vocabulary", lambda encoder: shipped
    )
    attack, encoder = scripted()
    assert attack_vocabulary(attack, encoder) is KNOWN  # type: ignore[arg-type]
    attack.vocabulary_ = None  # type: ignore[assignment]
    assert attack_vocabulary(attack, encoder) is shipped  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [None, 3])
def test_stored_vectors_score_as_encoding_does(limit: int | None) -> None:
    attack, encoder = scripted()
    stored = encoder.encode(TEXTS)
    encoded = evaluate(attack, encoder, TEXTS, limit=limit, seed=1)  # type: ignore[arg-type]
    encoder.row.clear()  # from here on it can encode nothing
    scored = evaluate(attack, encoder, TEXTS, limit=limit, seed=1, vectors=stored)  # type: ignore[arg-type]
    one, other = (replace(r, sentences_per_second=0.0).to_dict() for r in (scored, encoded))
    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda v: v[:3], "3 vectors for 4 texts"),
        (lambda v: np.hstack([v, v]), r"shape \(n, 1\), got \(4, 2\)"),
        (lambda v: np.where(v == 2, np.nan, v), "NaN or infinity, first in row 2"),
    ],
)
def test_stored_vectors_that_are_not_the_texts_are_refused(spoil: Any, says: str) -> None:
    attack, encoder = scripted()
    spoilt = spoil(encoder.encode(TEXTS))
    with pytest.raises(InvalidInputError, match=says):
        evaluate(attack, encoder, TEXTS, limit=2, vectors=spoilt)  # type: ignore[arg-type]


def test_the_guess_beside_is_made_of_the_words_in_scope() -> None:
    """One that guessed from all words would name the pear, which does not count here."""
    known = Vocabulary(("pear", "apple"), (4, 1), 4, frozenset({"the"}))
    texts = ["the pear and the apple", "the apple"]
    scope = Vocabulary(("apple",), (1,), 4, frozenset({"the"}))
    attack = ScriptedAttack([{"pear"}, {"pear"}], known)
    found = evaluate(attack, RowEncoder(texts), texts, vocabulary=scope)
    assert found.scores.token_set_f1 == 0 and found.baseline.token_set_f1 == 100
