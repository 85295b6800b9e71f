from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leakscope.core.attacks.inversion.lifted import Lift, LiftedEncoder
from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.reading import (
    Mark,
    Reading,
    TokenScores,
    prior_words,
    read_vector,
)
from leakscope.core.attacks.inversion.released_tokens.released import ReleasedTokens
from leakscope.core.attacks.inversion.sentence import check_sentence
from leakscope.core.defences.adaptive_attack import KnownVectors
from leakscope.core.defences.registry import make_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.encoders.white_box import parts_read, read_and_unread
from leakscope.core.errors import InvalidInputError
from leakscope.core.projection.displacement import _PrecomputedEncoder
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.tradeoff.trained_defences import MemoizedEncoder
from leakscope.core.text import STOP_WORDS, Vocabulary

VOCABULARY = Vocabulary(
    ("minister", "river", "garden", "money", "doctor"), (5, 4, 3, 2, 1), 10, STOP_WORDS
)


class Answers(PriorAttack):
    """Answers what it is told to, so that scores can be worked out by hand."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.vocabulary_ = VOCABULARY
        self.told = words

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        words = tuple(RecoveredWord(w, 1 / (i + 1)) for i, w in enumerate(self.told))
        return [Recovery(words, n_queries=3)]


@pytest.fixture(scope="module")
def read(tiny_encoder: TransformerEncoder):
    def run(text: str, *said: str, prior: frozenset[str] = frozenset(), **more: bool) -> Reading:
        vector = np.zeros((1, tiny_encoder.dimension), dtype=np.float32)
        return read_vector("probe_mlc", Answers(*said), tiny_encoder, text, vector, prior, **more)

    return run


TEXT = "The minister saw the river, and Zweig the Garden."


def test_every_word_is_marked(read) -> None:
    reading = read(TEXT, "minister", "garden", "money")
    marks = {piece: mark for piece, mark in reading.pieces if mark is not Mark.BETWEEN}
    assert marks == {
        "The": Mark.STOP_WORD,
        "minister": Mark.RECOVERED,
        "saw": Mark.UNKNOWN,
        "the": Mark.STOP_WORD,
        "river": Mark.MISSED,
        "and": Mark.STOP_WORD,
        "Zweig": Mark.UNKNOWN,
        "Garden": Mark.RECOVERED,
    }
    assert "".join(piece for piece, _ in reading.pieces) == TEXT
    assert reading.marked(Mark.RECOVERED) == ["minister", "Garden"]
    beyond = read("the minister saw Zweig", "zweig")
    assert beyond.targets == {"minister", "zweig"}, "a word outside the vocabulary counts"
    assert dict(beyond.pieces)["Zweig"] is Mark.RECOVERED


def test_scores_are_those_worked_out_by_hand(read) -> None:
    reading = read(TEXT, "minister", "garden", "money", prior=frozenset({"minister", "doctor"}))
    # Scored on minister, river, garden: two of three answers right, two of three words found.
    assert reading.scores.precision == pytest.approx(200 / 3)
    assert reading.scores.recall == pytest.approx(200 / 3)
    # All five words (saw and Zweig too): 2 P R / (P + R) with P = 2/3, R = 2/5.
    assert reading.all_words_f1 == pytest.approx(50)
    assert reading.prior == TokenScores(
        precision=50, recall=pytest.approx(100 / 3), f1=pytest.approx(40)
    )
    assert [w.word for w in reading.hits] == ["minister", "garden"]
    assert [w.word for w in reading.wrong] == ["money"]
    assert reading.unknown == {"saw", "zweig"}
    assert reading.revealing == {"garden"}
    assert reading.n_recovered == 2 and reading.recovery.n_queries == 3
    assert read(TEXT).scores == TokenScores(precision=0, recall=0, f1=0), "an empty answer"


def test_stop_words_count_when_they_are_asked_to(read) -> None:
    reading = read("the minister and the river", "minister", "the", counts_stop_words=True)
    assert reading.targets == {"the", "and", "minister", "river"}
    assert (reading.scores.precision, reading.scores.recall) == (100, 50)
    without = read("the minister and the river", "minister", "the")
    assert without.targets == {"minister", "river"}
    assert (without.scores.precision, without.scores.recall) == (100, 50)
    assert without.wrong == ()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(min_size=1), said=st.sets(st.sampled_from([*VOCABULARY.words, "the"])))
def test_marks_and_scores_agree_for_any_text(read, text: str, said: set[str]) -> None:
    try:
        check_sentence(text)
    except InvalidInputError:
        return
    reading = read(text, *sorted(said))
    assert {w.word for w in reading.hits} <= reading.targets
    assert reading.targets.isdisjoint(reading.unknown)
    has_hit = any(mark is Mark.RECOVERED for _, mark in reading.pieces)
    assert has_hit == bool(reading.hits) == (reading.scores.f1 > 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\t\u200b", "is empty"),
        ("x" * 100_000, "100,000"),
        ("\N{GRINNING FACE}\N{SNOWMAN}", "no word"),
        ("a b c !?", "no word"),
        ("null\0byte", "null byte"),
        ("the and of", "only stop words"),
    ],
)
def test_bad_sentences_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_sentence(text)
    assert check_sentence("שלום עולם") == "שלום עולם"
    assert check_sentence("the and of", counts_stop_words=True) == "the and of"


def test_guessing_is_the_same_for_every_text_and_names_stop_words_where_they_count(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    prior = PriorAttack().fit(tiny_encoder, small_texts)
    guess = prior_words(tiny_encoder, prior, False)
    (answer,) = prior.invert(tiny_encoder, tiny_encoder.encode(small_texts[:1]))
    assert guess == answer.word_set and guess.isdisjoint(STOP_WORDS)
    assert {"the", "of"} <= prior_words(tiny_encoder, PriorAttack(), True)


def test_wrong_answers_that_share_a_stem_are_told(read) -> None:
    reading = read("The minister resigns", "resigned", "ministers", "money")
    assert reading.kin == {"ministers": "minister", "resigned": "resigns"}
    assert read("The minister resigns", "minister", "money").kin == {}


def test_what_the_encoder_cuts_off_is_neither_missed_nor_scored(
    read, tiny_encoder: TransformerEncoder
) -> None:
    text = "The river. " + "minister " * 80 + "garden doctor"
    reading = read(text, "river", "garden")
    assert reading.unread == {"garden", "doctor"}
    assert reading.targets == {"river", "minister"} and reading.unknown == frozenset()
    assert [w.word for w in reading.wrong] == ["garden"], "a guess that the vector cannot tell"
    assert reading.marked(Mark.UNREAD) == ["garden", "doctor"]
    assert reading.marked(Mark.MISSED) == ["minister"]
    (kept,) = parts_read(tiny_encoder, [text])
    assert text.startswith(kept) and len(tiny_encoder.token_ids([kept], is_whole=True)[0]) <= 62
    np.testing.assert_array_equal(*map(tiny_encoder.encode, ([text], [kept])))
    assert read("The river and the garden.").unread == frozenset()


def test_what_wraps_an_encoder_reads_as_far_as_it_does(tiny_encoder: TransformerEncoder) -> None:
    text = "The river. " + "minister " * 80 + "garden doctor"
    read, unread = read_and_unread(tiny_encoder, text)
    vectors, lift = np.eye(2, tiny_encoder.dimension, dtype=np.float32), Lift(*np.zeros((3, 1)))
    wrapped = [
        make_defence(DefenceSpec.of("rounding")).protect(tiny_encoder),
        make_defence(DefenceSpec.of("gaussian+int8")).protect(tiny_encoder),
        CachedEncoder(make_defence(DefenceSpec.of("rounding")).protect(tiny_encoder)),
        LiftedEncoder(tiny_encoder, tiny_encoder, lift),
        ReleasedTokens(tiny_encoder, lambda ids: ids, identity="same"),
        MemoizedEncoder(tiny_encoder),
        KnownVectors(tiny_encoder, ["a"], vectors),
        _PrecomputedEncoder(tiny_encoder, ["a"], vectors),
    ]
    assert unread == {"garden", "doctor"}
    for encoder in wrapped:
        assert read_and_unread(encoder, text) == (read, unread), type(encoder).__name__


@pytest.mark.slow
def test_no_encoder_that_wraps_another_hides_how_far_that_reads() -> None:
    for path in Path("core").rglob("*.py"):
        for kind in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(kind, ast.ClassDef) or not _encodes(kind):
                continue
            source = ast.unparse(kind)
            wraps = "encoder.fingerprint" in source or "own.fingerprint" in source
            tells = "self.base" in source or "base: Encoder" in source or "__getattr__" in source
            assert tells or not wraps, f"{path}: {kind.name} must name what it wraps `base`"


def _encodes(kind: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == "encode" for each in kind.body)


def test_an_encoder_that_does_not_tell_its_tokens_is_taken_to_read_all() -> None:
    text = "word " * 5000
    assert parts_read(object(), [text]) == [text]  # type: ignore[arg-type]
