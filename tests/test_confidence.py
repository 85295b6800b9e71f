"""How sure a reconstruction is, and whether it may be."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from leakscope.core.attacks.inversion.export import _sentence
from leakscope.core.attacks.inversion.reconstruct.confidence import (
    CALIBRATED_ON,
    Answer,
    Confidence,
    calibration_error,
    calibration_interval,
    calibration_scores,
    right_words,
    why_not_calibrated,
)
from leakscope.core.cli.invert import _sentence_record as told_by_command
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import RecoveredWord, Recovery, Sentence, SentenceStep
from leakscope.core.results.rows import Cell
from leakscope.dashboard.ui.markup import _calibration
from scripts import reconstruction_confidence
from scripts.reconstruction_confidence import drawn


def test_the_calibration_error_is_as_worked_by_hand() -> None:
    # Bins of a tenth: {0.62, 0.68} mean 0.65, half right; {0.95} right; {0.05} wrong.
    told, right = [0.62, 0.68, 0.95, 0.05], [True, False, True, False]
    by_hand = 100 * (2 * 0.15 + 0.05 + 0.05) / 4
    assert calibration_error(told, right) == pytest.approx(by_hand)
    assert calibration_error([1.0, 1.0], [True, False]) == pytest.approx(50)
    assert calibration_error([0.3], [False], n_bins=1) == pytest.approx(30)
    assert math.isnan(calibration_error([], []))


def test_words_are_right_as_often_as_they_stand_in_the_text() -> None:
    found = right_words("A cat, a dog.", "a a a dog and").tolist()
    assert found == [True, True, False, True, False]
    assert right_words("a", "").tolist() == []


MODELS = {
    "words": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
    "words_unasked": (1.0, 2.0, 0.0, 0.0, 0.0),
    "sentence": (2.0, -3.0),
    "sentence_unasked": (0.0, 0.0),
}
"""With weights that can be worked out by hand."""


def test_confidences_are_those_of_the_models_by_hand() -> None:
    sure = Confidence(MODELS, 9)
    asked = Answer(SentenceStep(5, "the cat.", 0.9), {"cat": 0.8})
    close = -math.log(1 - 0.9 + 0.001)
    unheard = 1 / (1 + math.exp(-(math.log(0.001 / 0.999) + close)))
    heard = 1 / (1 + math.exp(-(math.log(0.8 / 0.2) + close)))
    assert sure.word_confidences(asked) == pytest.approx([unheard, heard])
    assert sure.sentence_confidence(asked) == pytest.approx(1 / (1 + math.exp(-(2 * close - 3))))
    told = sure.annotate(Sentence("the cat.", 0.9), asked)
    assert told.words == (RecoveredWord("the", unheard), RecoveredWord("cat", heard))
    assert told.confidence == sure.sentence_confidence(asked)
    unasked = Answer(SentenceStep(0, "the cat.", math.nan), {"cat": 0.8})
    by_hand = 1 / (1 + math.exp(-(math.log(0.001 / 0.999) + 2)))  # a stop word counts two
    assert sure.word_confidences(unasked) == pytest.approx([by_hand, 0.8])
    assert sure.sentence_confidence(unasked) == 0.5


def test_what_is_learned_is_how_often_such_are_right() -> None:
    rng = np.random.default_rng(0)
    answers, true = [], []
    for _ in range(600):
        cosine, is_sure = rng.uniform(0.5, 1.0), rng.random() < 0.5
        is_right = rng.random() < (0.9 if is_sure else 0.3)
        true.append("river" if is_right else "bridge")
        believed = {"river": 0.9 if is_sure else 0.2}
        step = SentenceStep(10, "river", cosine)
        answers += [Answer(step, believed), Answer(SentenceStep(0, "river", math.nan), believed)]
    sure = Confidence.fit(answers, [text for text in true for _ in range(2)])
    for p, share in ((0.9, 0.9), (0.2, 0.3)):
        for cosine in (0.7, math.nan):
            (told,) = sure.word_confidences(Answer(SentenceStep(1, "river", cosine), {"river": p}))
            assert told == pytest.approx(share, abs=0.08)


def test_of_sentences_that_were_all_wrong_the_next_is_hardly_believed() -> None:
    step = SentenceStep(0, "a river", math.nan)
    asked = SentenceStep(3, "a river", 0.7)
    answers = [Answer(s, {}) for s in (step, asked) for _ in range(4)]
    sure = Confidence.fit(answers, ["nothing of it"] * 8)
    assert sure.sentence_confidence(answers[0]) == pytest.approx(1 / 6)
    assert sure.n == 1


def test_kept_and_restored_it_is_the_same_and_damage_is_named() -> None:
    sure = Confidence(MODELS, 9)
    assert Confidence.from_dict(sure.to_dict()) == sure
    for damage in ({"words": [1.0]}, {"sentence": [1.0, math.nan]}):
        with pytest.raises(InvalidInputError, match=next(iter(damage))):
            Confidence.from_dict(sure.to_dict() | damage)


def test_sureness_counts_words_and_sentences() -> None:
    words = (RecoveredWord("the", 0.9), RecoveredWord("cat", 0.7))
    said = Sentence("the cat.", 0.9, 0.2, words=words)
    found = calibration_scores(["the cat", "the dog", "unread"], [said, said, None])
    assert found["told_words"].value == pytest.approx(80) and found["told_words"].n == 4
    assert found["right_words"].value == pytest.approx(75)
    assert found["calibration_words"].value == pytest.approx(100 * (2 * 0.1 + 2 * 0.2) / 4)
    assert found["right_sentences"].value == pytest.approx(50)
    assert found["calibration_sentences"].value == pytest.approx(30)
    for name in ("told_words", "right_words", "calibration_words", "right_sentences"):
        score = found[name]
        assert 0 <= score.ci95.low <= score.value <= score.ci95.high <= 100, name
    assert found["right_sentences"].ci95.high > 90  # one of two: nearly anything
    assert calibration_scores(["a"], [None]) == calibration_scores(["a"], []) == {}


def test_the_interval_of_the_calibration_error_holds_what_is_true_of_all() -> None:
    rng = np.random.default_rng(0)
    n_held, widths = 0, []
    for seed in range(60):  # each of 80 sentences of ten words, all right or all wrong: 0.6 are
        right = np.repeat(rng.random(80) < 0.6, 10)
        own = calibration_interval([0.85] * 800, right, np.repeat(np.arange(80), 10), seed=seed)
        n_held += own.low <= 25 <= own.high
        widths.append(own.high - own.low)
    assert n_held >= 53
    assert np.mean(widths) == pytest.approx(2 * 196 * math.sqrt(0.6 * 0.4 / 80), rel=0.1)
    assert math.isnan(calibration_interval([0.5, 0.5], [True, False], ["a", "a"]).low)


def test_words_that_were_told_as_they_are_leave_an_interval_that_begins_near_nothing() -> None:
    rng = np.random.default_rng(1)
    told = rng.random(2000)
    own = calibration_interval(told.tolist(), rng.random(2000) < told, range(2000))
    assert own.low < 2 and own.high < 6


def test_sentences_to_learn_from_are_of_each_length_alike_and_the_hardest_first() -> None:
    def of(source: str, n_words: int, n: int) -> list[tuple[str, str]]:
        return [(" ".join([f"{source[0]}{i}", *["w"] * (n_words - 1)]), source) for i in range(n)]

    rows = [
        *of("wikipedia", 12, 9),
        *of("wikipedia", 20, 9),
        *of("tatoeba_tanaka", 12, 9),
        *of("novels_other_books", 6, 2),
        *of("tatoeba_tanaka", 6, 5),
    ]
    found = drawn(rows, 12)
    lengths = [len(text.split()) for text in found]
    assert [lengths.count(n) for n in (6, 12, 20)] == [4, 4, 4]
    by_source = Counter((text[0], n) for text, n in zip(found, lengths, strict=True))
    assert by_source == {("w", 12): 4, ("w", 20): 4, ("n", 6): 2, ("t", 6): 2}
    longer = [text for text in found if len(text.split()) > 6]
    assert drawn([r for r in rows if len(r[0].split()) > 6], 8) == longer
    assert drawn(rows[::-1], 12) == found != drawn(rows, 12, seed=8)


def test_nothing_is_learned_from_what_the_tables_of_wikipedia_attack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def held(cell: Cell, encoder: Any) -> Any:
        source = cell["where"].partition("=")[2]
        texts = [f"{source} {cell['length']} {i}" for i in range(min(cell["n_targets"], 300))]
        return SimpleNamespace(sentences=SimpleNamespace(texts=tuple(texts)))

    monkeypatch.setattr(reconstruction_confidence, "sentences_of", held)
    left = [text for text, _ in reconstruction_confidence._held_out_rows("lee", cast(Any, None))]
    most = reconstruction_confidence._MOST
    for length in ("4-8", "9-16", "17-32"):
        own = [text for text in left if text.startswith(f"wikipedia {length} ")]
        assert own == [f"wikipedia {length} {i}" for i in range(most, 300)]
    for path in (Path(__file__).parents[1] / "results").glob("reconstruct-*.spec.json"):
        spec = json.loads(path.read_text(encoding="utf-8"))
        if spec.get("auxiliary") == "held-out":
            assert spec["n"] <= most, f"{path.name} attacks what was learned from"
            known = {"study", "target", "auxiliary", "where", "n", "budgets"}
            assert spec.keys() <= known, "drawn otherwise than what was kept apart"
            assert (spec["target"], spec["where"]) == ("sentences.parquet", "source=wikipedia")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The minister will meet the members of the council on Friday.", ""),
        ("I am still waiting for my new card, when will it arrive?", ""),
        ("Please call Dana Quendorf on 555 0142 about the money.", ""),
        ("Neurosyphilis without treatment leads to dementia and meningitis.", "words are rare"),
        ("Vorrei sapere quando arrivano i soldi sul mio conto", "not look English"),
        ("Good morning, everyone", "fewer than 4 words"),
        ("We met the mayor of the town. " * 5, "more than 32 words"),
    ],
)
def test_where_the_confidence_does_not_hold_it_is_not_told(text: str, why: str) -> None:
    found = why_not_calibrated(text)
    assert why in found and bool(why) is bool(found)
    said = Sentence("the town.", 0.9, 0.2, words=(RecoveredWord("town", 0.73),))
    shown = _calibration(said, text)
    assert CALIBRATED_ON in shown, "what it was learned from is said either way"
    assert ("73 %" in shown) is not bool(why) and ("not calibrated" in shown) is bool(why)
    assert _calibration(Sentence("the town.", 0.9), text) == "", "an attack that tells none"


def test_files_say_what_the_confidence_is_of() -> None:
    said = Sentence("the town.", 0.9, 0.2, words=(RecoveredWord("town", 0.73),))
    for text, is_told in (
        ("Vorrei sapere quando arrivano i soldi sul mio conto", True),
        ("The mayor of the town met the council.", False),
    ):
        reading = SimpleNamespace(
            recovery=Recovery((), sentence=said), text=text, is_unfinished=False
        )
        for found in (_sentence(cast(Any, reading)), told_by_command(reading.recovery, text)):
            assert found["confidence_calibrated_on"] == CALIBRATED_ON
            assert bool(found["confidence_not_calibrated_because"]) is is_told
