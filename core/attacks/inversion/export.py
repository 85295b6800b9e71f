"""Readings and tables as files: JSON for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.attacks.inversion.reading import Mark, Reading, TokenScores
from core.attacks.inversion.registry import INVERSION_ATTACKS

__all__ = ["neutral_cell", "readings_csv", "readings_json", "table_csv"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def neutral_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: a text gets a leading apostrophe.

    Examples
    --------
    >>> neutral_cell("=1+1"), neutral_cell(-0.5)
    ("'=1+1", -0.5)
    """
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def table_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows for a spreadsheet under the names of their columns, no cell a formula."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(out, lineterminator="\r\n")
    _write(writer, names)
    for row in rows:
        _write(writer, [row.get(name, "") for name in names])
    return out.getvalue()


def readings_json(readings: Sequence[Reading]) -> str:
    """Return readings as a JSON list; `words` has the form of `python -m core invert --json`."""
    rows = [_as_dict(reading) for reading in readings]
    return json.dumps(rows, ensure_ascii=False, indent=2)


def _as_dict(reading: Reading) -> dict[str, Any]:
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
        "missed": sorted(true - {w.word for w in reading.hits}),
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
    """Return the sentence that was read, where the attack reads one; what is not known is None."""
    found = reading.recovery.sentence
    if found is None:
        return {}
    numbers = {"cosine": found.cosine, "confidence": found.confidence}
    known = {name: None if math.isnan(value) else value for name, value in numbers.items()}
    sure = [{"word": w.word, "confidence": w.score} for w in found.words]
    told = {"sentence": found.text, **known, "sentence_words": sure}
    return {**told, "is_unfinished": reading.is_unfinished}


def _scores(scores: TokenScores) -> dict[str, float]:
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "token_set_f1": scores.f1,
    }


def readings_csv(readings: Sequence[Reading]) -> str:
    """Return one row a word: what was answered, in its order, then what was missed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["attack", "rank", "word", "score", "outcome", "encoder", "text"])
    for reading in readings:
        tail = (reading.encoder, reading.text)
        for rank, found in enumerate(reading.recovery.words, 1):
            outcome = "recovered" if found.word in reading.targets else "wrong"
            _write(writer, (reading.attack, rank, found.word, found.score, outcome, *tail))
        for outcome, words in (
            ("missed", reading.targets - {w.word for w in reading.hits}),
            ("outside vocabulary", reading.unknown),
        ):
            for word in sorted(words):
                _write(writer, (reading.attack, "", word, "", outcome, *tail))
    return out.getvalue()


def _write(writer: Any, row: Sequence[Any]) -> None:
    writer.writerow([neutral_cell(cell) for cell in row])
