"""What vectors say of personal data: ranks, the confidence in them, and one answer each."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from leakscope.core.audit.personal import report
from leakscope.core.audit.personal.confidence import (
    CandidateSpace,
    Confidence,
    distances,
    log_gap_tail,
    log_presence,
    log_share,
)
from leakscope.core.audit.personal.confirmation import Question, confirm
from leakscope.core.audit.personal.kinds import KINDS, Identifier, draw_candidates
from leakscope.core.audit.personal.report import Answer, measure_personal_data
from leakscope.core.audit.personal.synthetic import CONDITIONS, calibration_lists, synthetic_texts
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery

pytest.importorskip("presidio_analyzer")
pytest.importorskip("phonenumbers")
pytest.importorskip("stdnum")


class TrigramEncoder:
    """Sums of a random direction for each three signs of a text, of which it reads `reach`."""

    name, dimension, fingerprint = "trigrams", 64, "trigrams"

    def __init__(self, reach: int = 10_000) -> None:
        self.reach, self.encoded = reach, 0

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        self.encoded += len(texts)
        rows = [
            sum(self._of(text[i : i + 3]) for i in range(min(len(text), self.reach) - 2))
            for text in texts
        ]
        return np.array(rows, dtype=np.float32)

    def _of(self, signs: str) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(signs.encode())).standard_normal(self.dimension)

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        return [list(range(len(t) if is_whole else min(len(t), self.reach))) for t in texts]


TEXTS = [
    "Please pay the rent to DE89 3704 0044 0532 0130 00 by Friday.",
    "My number is +49 30 901820, and it rained.",
    "Charge 4111 1111 1111 1111, please.",
    "The rain fell on the sea.",
]


def answer_of(*words: str) -> Recovery:
    return Recovery(tuple(RecoveredWord(word, 1.0) for word in words))


def test_distances_of_nearly_equal_vectors_keep_their_digits() -> None:
    one = np.array([1.0, 0.0], np.float32)
    other = np.array([[1.0, 1e-3], [1.0, 0.0]], np.float32)
    assert distances(one, other) == pytest.approx([1e-6, 2e-13], rel=1e-3)


def test_the_gap_is_the_tail_of_fs_distribution() -> None:
    ordered = np.sort(np.random.default_rng(1).random(30))
    spacings = np.arange(1, 30) * np.diff(np.log(ordered))
    statistic = spacings[0] / spacings[1:].mean()
    known = -stats.f.logsf(statistic, 2, 2 * len(spacings[1:]))
    assert log_gap_tail(ordered[::-1]) == pytest.approx(known, rel=1e-9)


def test_the_gap_is_uniform_where_the_best_is_one_of_many() -> None:
    rng = np.random.default_rng(2)
    tails = [np.exp(-log_gap_tail(rng.random(200) ** (1 / 4))) for _ in range(600)]
    assert stats.kstest(tails, "uniform").pvalue > 0.01


def test_the_odds_hold_under_noise_of_unknown_strength() -> None:
    rng = np.random.default_rng(3)
    stated, right = [], []
    for _ in range(3_000):
        rows = rng.standard_normal((20, 40)) * 0.3 + rng.standard_normal(40)
        seen = rows[0] * rng.uniform(0.5, 2) + rng.normal(0, rng.choice([0.5, 1.0, 2.0]), 40)
        away = distances(seen.astype(np.float32), rows.astype(np.float32))
        stated.append(np.exp(log_share(away, 40)))
        right.append(away.argmin() == 0)
    assert np.mean(stated) == pytest.approx(np.mean(right), abs=0.03)
    near = np.abs(np.array(stated) - 0.8) < 0.15
    assert np.mean(np.array(right)[near]) == pytest.approx(0.8, abs=0.08)


def test_the_rest_of_the_vector_tells_the_true_candidate_from_its_neighbour() -> None:
    rng = np.random.default_rng(4)
    present, absent = [], []
    for _ in range(60):  # candidates differ in 12 of 200 directions
        rows = np.zeros((101, 200))
        rows[:, :12] = rng.standard_normal((101, 12)) * 0.2
        rows += rng.standard_normal(200)
        seen = (rows[0] + rng.normal(0, 0.01, 200)).astype(np.float32)
        listed = CandidateSpace.of(rows[:100].astype(np.float32))
        present.append(log_presence(seen, listed))
        absent.append(log_presence(seen, CandidateSpace.of(rows[1:].astype(np.float32))))
        noisy = (rows[0] + rng.normal(0, 5.0, 200)).astype(np.float32)
        assert abs(log_presence(noisy, listed)) < 3
    assert min(present) > 0 > max(absent)


def test_every_place_of_a_value_gets_the_candidate() -> None:
    first, again = Identifier("name", 0, 3, "Ada"), Identifier("name", 8, 11, "Ada")
    asked = Question("Ada saw Ada.", np.ones(2, np.float32), first, ("Bo",), (again,))
    assert asked.written() == ["Ada saw Ada.", "Bo saw Bo."]


def test_confirming_in_batches_is_confirming_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TrigramEncoder()
    rng = np.random.default_rng(0)
    questions = []
    for text, found in ((m.text, m.identifier) for m in synthetic_texts("iban", TEXTS, 5, seed=0)):
        others = draw_candidates(found, 30, rng)
        seen = encoder.encode([text])[0] + rng.normal(0, 20, 64).astype(np.float32)
        questions.append(Question(text, seen, found, others))
    whole = confirm(encoder, questions)
    monkeypatch.setattr("leakscope.core.audit.personal.confirmation._TEXTS_AT_ONCE", 40)
    assert whole == confirm(encoder, questions)
    assert whole == [confirm(encoder, [each])[0] for each in questions]
    assert len({each.rank for each in whole}) > 1


def test_an_identifier_is_recovered_only_where_each_of_its_words_is() -> None:
    encoder = TrigramEncoder()
    vectors = encoder.encode(TEXTS)
    iban = ["de89", "3704", "0044", "0532", "0130", "00"]
    some = [answer_of(*iban[:-1]), answer_of("49"), answer_of("1111", "4111"), answer_of("4111")]
    found = measure_personal_data(TEXTS, vectors, encoder, some, n_candidates=40)
    assert [each.answer for each in found.findings] == [
        Answer.CONFIRMABLE,
        Answer.CONFIRMABLE,
        Answer.RECOVERED,
    ]
    some[0] = answer_of(*iban)
    found = measure_personal_data(TEXTS, vectors, encoder, some, n_candidates=40)
    assert found.findings[0].answer is Answer.RECOVERED
    assert found.findings[0].rank_by_words == 1
    assert found.summaries["iban"].recovered.value == 100
    assert found.summaries["iban"].recovered.chance == 0
    assert found.summaries["iban"].confirmable.chance == pytest.approx(2.5)
    without = measure_personal_data(TEXTS, vectors, encoder, n_candidates=40)
    assert all(each.answer is not Answer.RECOVERED for each in without.findings)
    assert np.isnan(without.summaries["iban"].recovered.value)


def test_a_rank_below_the_first_is_not_confirmed_and_not_called_safe() -> None:
    encoder = TrigramEncoder()
    vectors = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    found = measure_personal_data(TEXTS, vectors, encoder, n_candidates=200)
    lower = [each for each in found.findings if each.answer is Answer.NOT_CONFIRMED]
    assert lower and all(each.rank and each.rank > 1 for each in lower)
    assert "may still confirm it" in lower[0].sentence
    assert any("no evidence of safety" in line for line in found.caveats)


def test_what_the_encoder_does_not_read_is_not_testable() -> None:
    text = "The rain fell on the sea, and on all the ships. " + TEXTS[0]
    for reach, answer in ((60, Answer.NOT_TESTABLE), (500, Answer.CONFIRMABLE)):
        encoder = TrigramEncoder(reach)
        words = [answer_of("de89", "3704", "0044", "0532", "0130", "00")] if reach == 60 else None
        found = measure_personal_data(
            [text], encoder.encode([text]), encoder, words, n_candidates=40
        )
        assert [each.answer for each in found.findings] == [answer]
    assert found.summaries["iban"].not_testable.value == 0


def test_a_vector_of_zeros_is_not_testable() -> None:
    encoder = TrigramEncoder()
    found = measure_personal_data(TEXTS, np.zeros((4, 64), np.float32), encoder, n_candidates=40)
    assert {each.answer for each in found.findings} == {Answer.NOT_TESTABLE}
    assert {each.reason for each in found.findings} == {report.NO_VECTOR}
    assert all("may still leak" in each.sentence for each in found.findings)


def test_nothing_found_is_no_evidence_of_safety() -> None:
    text = ["The rain fell on the sea."]
    encoder = TrigramEncoder()
    found = measure_personal_data(text, encoder.encode(text), encoder)
    assert not found.findings and not found.summaries
    assert "no evidence" in found.sentence and "The rules found no personal data" in found.sentence
    for entry in KINDS.values():
        assert entry.plural.lower() in found.sentence.lower()


def test_no_answer_is_worded_as_safe() -> None:
    encoder = TrigramEncoder()
    texts = [*TEXTS, "Ask Dana Quellbrook, born on 3 March 1984."]
    for vectors in (encoder.encode(texts), np.zeros((5, 64), np.float32)):
        found = measure_personal_data(texts, vectors, encoder, n_candidates=40)
        for line in (found.sentence, *found.caveats, *(each.sentence for each in found.findings)):
            assert "safe" not in line.replace("no evidence of safety", "")


def test_neither_texts_nor_identifiers_nor_candidates_are_in_a_report() -> None:
    encoder = TrigramEncoder()
    found = measure_personal_data(TEXTS, encoder.encode(TEXTS), encoder, n_candidates=40)
    written = json.dumps(found.to_dict()) + repr(found)
    for value in ("3704", "901820", "4111", "Friday", "rent"):
        assert value not in written
    assert "nan" not in json.dumps(found.to_dict()).lower()


def test_the_seed_repeats_a_report_and_the_cap_is_stated() -> None:
    encoder = TrigramEncoder()
    made = [
        m.text for kind in ("iban", "card") for m in synthetic_texts(kind, TEXTS[3:], 8, seed=1)
    ]
    rng = np.random.default_rng(0)
    vectors = encoder.encode(made) + rng.normal(0, 40, (16, 64)).astype(np.float32)
    few = [
        measure_personal_data(made, vectors, encoder, n_candidates=60, most=6, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert few[0] == few[1] and few[0] != few[2]
    assert few[0].n_found == 16 and len(few[0].findings) == 6
    assert "6 tested, chosen at random" in few[0].sentence
    assert any("10 identifiers were found and not tested" in line for line in few[0].caveats)
    assert {kind: part.n_tested for kind, part in few[0].summaries.items()} == {
        "iban": 3,
        "card": 3,
    }


def test_another_encoder_gets_ranks_and_no_confidence() -> None:
    encoder = TrigramEncoder()
    found = measure_personal_data(TEXTS, encoder.encode(TEXTS), encoder, n_candidates=40)
    assert {each.rank for each in found.findings} == {1}
    assert {each.confidence for each in found.findings} == {None}
    assert any("not calibrated" in line for line in found.caveats)


@pytest.mark.slow
def test_minilm_confirms_what_it_encoded_and_claims_nothing_else(
    minilm: TransformerEncoder, bundled: list[str]
) -> None:
    carriers = [text for text in bundled[33::40] if len(text) < 60]
    made = [synthetic_texts(kind, carriers, 1, seed=21)[0] for kind in KINDS]
    texts = [each.text for each in made]
    found = measure_personal_data(texts, minilm.encode(texts), minilm, n_candidates=61)
    assert found.is_calibrated
    own = [f for f in found.findings if f.kind == made[f.row].identifier.kind]
    assert len(own) >= len(KINDS)
    for each in own:
        assert each.answer is Answer.CONFIRMABLE and each.rank == 1
        assert each.confidence is not None and each.confidence > 0.95
        assert "can be" in each.sentence
    assert sum((each.without_truth or 0) >= 0.95 for each in found.findings) <= 1


@pytest.mark.slow
def test_a_stated_95_percent_holds(minilm: TransformerEncoder, bundled: list[str]) -> None:
    carriers = [text for text in bundled[13::40] if len(text) < 60]
    made = [m for kind in KINDS for m in synthetic_texts(kind, carriers, 1, seed=31)]
    lists = calibration_lists(minilm, made, 60, n_truths=8, seed=31)
    assert {each.condition for each in lists} == set(CONDITIONS)
    calibrated = Confidence.load()
    stated = np.array([calibrated.of(each.evidence) for each in lists])
    right = np.array([each.is_right for each in lists])
    near = (stated > 0.9) & (stated < 0.99)
    assert near.sum() >= 30
    assert 0.88 <= right[near].mean() <= 1
    assert right[stated >= 0.99].mean() > 0.98
    absent = np.array([not each.has_truth for each in lists])
    assert np.mean(stated[absent] >= 0.95) < 0.03
