"""Export inversion results of single texts (`Reading`) as JSON or CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from leakscope.core.attacks.inversion.reading import Mark, Reading, TokenScores
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.spreadsheets import rows_to_csv


def readings_json(readings: Sequence[Reading]) -> str:
    """Serialise readings as a JSON list; `words` has the form of `leakscope invert --json`."""
    rows = [_as_dict(reading) for reading in readings]
    return json.dumps(rows, ensure_ascii=False, indent=2)


def _as_dict(reading: Reading) -> dict[str, Any]:
    """Return everything about one reading as a JSON-able dict: text, answer, marks and scores."""
    entry = INVERSION_ATTACKS[reading.attack]
    true = reading.targets
    return {
        "text": reading.text,
        "encoder": reading.encoder,
        "attack": reading.attack,
        "reference": entry.reference,
        "access": entry.access.value,
        "words": [
            {"word": w.word, "score": float(w.score), "is_in_text": w.word in true}
            for w in reading.recovery.words
        ],
        **_sentence(reading),
        "wrong_but_same_stem": reading.kin,
        "missed": sorted(reading.missed),
        "not_scored": {
            "outside_vocabulary": sorted(reading.unknown),
            "beyond_what_the_encoder_reads": sorted(reading.unread),
            "stop_words": sorted({w.lower() for w in reading.marked(Mark.STOP_WORD)}),
        },
        "counts_stop_words": reading.counts_stop_words,
        **_scores(reading.scores),
        "token_set_f1_all_words": reading.all_words_f1,
        "read_of": {title: list(counts) for title, counts in reading.groups.items()},
        "baseline": _scores(reading.prior),
        "n_queries": reading.recovery.n_queries,
        "seconds": reading.seconds,
        "training": reading.training,
    }


def _sentence(reading: Reading) -> dict[str, Any]:
    """Return a reading's reconstructed sentence as JSON fields; empty if the attack writes none."""
    found = reading.recovery.sentence
    if found is None:
        return {}
    numbers = {"cosine": found.cosine, "confidence": found.confidence}
    known = {name: None if math.isnan(value) else value for name, value in numbers.items()}
    confidences = [{"word": w.word, "confidence": w.score} for w in found.words]
    fields = {"sentence": found.text, **known, "sentence_words": confidences}
    if confidences:
        from leakscope.core.attacks.inversion.reconstruct.confidence import (
            CALIBRATED_ON,
            why_not_calibrated,
        )

        fields["confidence_calibrated_on"] = CALIBRATED_ON
        fields["confidence_not_calibrated_because"] = why_not_calibrated(reading.text) or None
    return {**fields, "is_unfinished": reading.is_unfinished}


def _scores(scores: TokenScores) -> dict[str, float]:
    """Return a score's precision, recall and F1 as a dict of JSON fields."""
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "token_set_f1": scores.f1,
    }


def readings_csv(readings: Sequence[Reading]) -> str:
    """Serialise readings as CSV, one word per row: answered words by rank, then missed words."""
    rows: list[Sequence[Any]] = [("attack", "rank", "word", "score", "outcome", "encoder", "text")]
    for reading in readings:
        tail = (reading.encoder, reading.text)
        for rank, found in enumerate(reading.recovery.words, 1):
            outcome = "recovered" if found.word in reading.targets else "wrong"
            rows.append((reading.attack, rank, found.word, found.score, outcome, *tail))
        for outcome, words in (
            ("missed", reading.missed),
            ("outside vocabulary", reading.unknown),
            ("beyond what the encoder reads", reading.unread),
        ):
            rows += [(reading.attack, "", word, "", outcome, *tail) for word in sorted(words)]
    return rows_to_csv(rows)
