"""The tables of membership against embedding models, beside the figures of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from core.attacks.membership.rates import COARSE, AtRate
from core.attacks.membership.sentences.registry import PAPERS_OWN as SENTENCES_OWN
from core.attacks.membership.sentences.registry import SENTENCE_ATTACKS
from core.attacks.membership.words.registry import PAPERS_OWN as WORDS_OWN
from core.attacks.membership.words.registry import WORD_ATTACKS
from core.encoders.registry import ENCODERS
from core.studies.membership_classifier_rows import BLIND, NULL, blind_said
from core.studies.membership_compared import GAIN
from core.studies.rows import Row, mean_row_score
from core.studies.tables import markdown_table

__all__ = ["sentences_markdown", "words_markdown"]

_HEAD = ("AUC", "advantage", "TPR at 10 % FPR", "at 1 %", "at 0.1 %")
_MEASURES = ("auc", "advantage", "tpr_at_0.1", "tpr_at_0.01", "tpr_at_0.001")
_ALL = 0


def words_markdown(rows: Sequence[Row]) -> str:
    """Return what is found of word vectors, by decile, means over the draws."""
    head: tuple[str, ...] = (
        "vectors of",
        "trained on",
        "attack",
        "words",
        "decile",
        "stands",
        *_HEAD,
    )
    beside = _beside(rows, WORDS_OWN)
    lines = []
    for own in _apart(rows, ("encoder", "trained_on", "similarity", "window", "decile", "labels")):
        row = own[0]
        lines.append(
            (
                ENCODERS[row["encoder"]].label,
                "half" if row["trained_on"] == "half" else "both halves",
                WORD_ATTACKS[row["similarity"]].title,
                row["window"],
                _decile_said(row),
                _stands(own),
                *_said(own),
                *(_gain_said(own, measure) for measure in beside),
            )
        )
    told = (
        "Is a window of words one that the vectors were trained on? Half of the documents are; "
        "*trained on both halves* nobody is a member, and nothing is to be found. *Decile*: of the "
        "words in the middle, 1 the most frequent; *stands*: how often these stand in the corpus. "
    )
    head += tuple(f"AUC more than {WORD_ATTACKS[WORDS_OWN].title}" for _ in beside)
    return _table("Membership of windows of words", told, head, lines, rows)


def sentences_markdown(rows: Sequence[Row]) -> str:
    """Return what is found of dual encoders, by pair and by book, means over the draws."""
    head: tuple[str, ...] = ("encoder", "epochs", "of", "attack", "decile", *_HEAD)
    beside = _beside(rows, SENTENCES_OWN)
    has_null = any(NULL in row.scores for row in rows)
    lines = []
    for own in _apart(rows, ("encoder", "epochs", "level", "similarity", "decile", "labels")):
        row = own[0]
        title = SENTENCE_ATTACKS[row["similarity"]].title
        name = ENCODERS[row["encoder"]].label
        head_cells = (name, row["epochs"], f"{row['level']}s", title, _decile_said(row))
        gains = [_gain_said(own, gain) for gain in beside]
        lines.append((*head_cells, *_said(own), *gains, *([_null_said(own)] if has_null else [])))
    told = (
        "Is a pair of consecutive sentences, or a book, one that the encoder was trained on? Half "
        "of the books are. *Decile*: of pairs, by the mean logarithm of their words' frequency, 1 "
        "the most frequent. "
    )
    head += tuple(f"AUC more than {SENTENCE_ATTACKS[SENTENCES_OWN].title}" for _ in beside)
    if has_null:
        head += ("AUC, trained on neither",)
        told += (
            "*Trained on neither*: the same attack on the books that were not trained on, half of "
            "them called members by lot before anything is learned, where nothing is to be found. "
        )
    return _table("Membership of sentences and books", told, head, lines, rows)


def _apart(rows: Sequence[Row], names: Sequence[str]) -> Iterable[list[Row]]:
    """Return the rows that differ in their draw alone, group by group."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if not row.error:
            found.setdefault(key(row), []).append(row)
    return found.values()


def _decile_said(row: Row) -> str:
    if row["labels"] == "shuffled":
        return "all, members by lot"
    return "all" if row["decile"] == _ALL else str(row["decile"])


def _stands(rows: Sequence[Row]) -> str:
    low, high = min(row["rarest"] for row in rows), max(row["most_frequent"] for row in rows)
    return f"{low:,}–{high:,}"


def _said(rows: Sequence[Row]) -> list[str]:
    """Return the mean of each measure over draws, or that it cannot be told."""
    told = []
    n_outsiders = min(int(row["n_documents"]) // 2 for row in rows)
    for measure in _MEASURES:
        known = [row for row in rows if measure in row.scores]
        bold = measure == "auc"
        if len(known) == len(rows):  # all draws are of the same corpus
            score = mean_row_score(known, measure, is_same_sample=True)
            rate = float(measure.removeprefix("tpr_at_")) if measure.startswith("tpr") else None
            mark = "" if rate is None else AtRate(rate, math.nan, score, n_outsiders).mark
            told.append(f"{score.said(3, is_bold=bold)}{mark}")
        else:
            told.append("" if rows[0]["labels"] == "shuffled" else "not resolvable")
    return told


def _beside(rows: Sequence[Row], own: str) -> list[str]:
    """Return the measure of what is gained over the paper's own attack; none in earlier rows."""
    measure = f"{GAIN}: {own}"
    return [measure] if any(measure in row.scores for row in rows) else []


def _gain_said(rows: Sequence[Row], measure: str) -> str:
    """Return what is gained, documents drawn for both, and what that allows to be said."""
    known = [row for row in rows if measure in row.scores]
    if not known:
        return ""
    gain = mean_row_score(known, measure, is_same_sample=True)
    return f"{gain.said(3)}: {gain.stands()}"


def _null_said(rows: Sequence[Row]) -> str:
    """Return what is found among those that were not trained on."""
    known = [row for row in rows if NULL in row.scores]
    return mean_row_score(known, NULL, is_same_sample=True).said(3) if known else ""


def _table(
    title: str, told: str, head: Sequence[str], lines: Sequence[Sequence[object]],
    rows: Sequence[Row],
) -> str:  # fmt: skip
    measured = [row for row in rows if not row.error]
    draws = sorted({row["seed"] for row in rows})
    if measured:
        told += (
            f"Documents scored: {measured[0]['n_documents']:,}; the attacker knows "
            f"{measured[0]['labelled_share']:.0%} of either half by name, which is not scored, and "
            f"chooses thresholds there. Means over {len(draws)} draws of the halves; intervals of "
            f"95 %, of documents. Guessing has an AUC of .5 and no advantage. {COARSE}\n"
        )
    if blind := blind_said(list({r["seed"]: r for r in measured if BLIND in r.scores}.values())):
        told += f"\n{blind} Of whole documents.\n"
    failed = [f"- {row['encoder']}, seed {row['seed']}: failed: {row.error}\n"
              for row in rows if row.error]  # fmt: skip
    return "\n".join([f"# {title}", "", told, *markdown_table(head, lines), *failed, ""])
