"""Markdown tables of membership in embedding models, beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leakscope.core.attacks.membership.rates import COARSE, AtRate
from leakscope.core.attacks.membership.registry import (
    SENTENCE_ATTACKS,
    SENTENCES_OWN,
    WORD_ATTACKS,
    WORDS_OWN,
)
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.membership.classifier_rows import NULL, describe_blind_baseline
from leakscope.core.studies.membership.compared import GAIN

_HEAD = ("AUC", "advantage", "TPR at 10 % FPR", "at 1 %", "at 0.1 %")
_MEASURES = ("auc", "advantage", "tpr_at_0.1", "tpr_at_0.01", "tpr_at_0.001")
_ALL = 0


def words_markdown(rows: Sequence[Row]) -> str:
    """Format rows of the word-vector study as Markdown: by attack and decile, means over draws."""
    head: tuple[str, ...] = (
        "vectors of",
        "trained on",
        "attack",
        "words",
        "decile",
        "occurrences",
        *_HEAD,
    )
    table = ResultTable(rows)
    beside = _gain_measures(table, WORDS_OWN)
    lines = []
    for own in table.measured.group_by(
        "encoder", "trained_on", "similarity", "window", "decile", "labels"
    ).values():
        row = own[0]
        lines.append(
            (
                ENCODERS[row["encoder"]].label,
                "half" if row["trained_on"] == "half" else "both halves",
                WORD_ATTACKS[row["similarity"]].title,
                row["window"],
                _describe_decile(row),
                f"{min(own.column('rarest')):,}–{max(own.column('most_frequent')):,}",
                *_score_cells(own),
                *(_describe_gain(own, measure) for measure in beside),
            )
        )
    told = (
        "Were the vectors trained on a window of words? They were trained on half of the "
        "documents. *Trained on both halves* is a control without non-members: its AUC should be "
        ".5. *Decile*: of the middle words, 1 the most frequent. *Occurrences*: of these words in "
        "the corpus. "
    )
    head += tuple(f"AUC minus {WORD_ATTACKS[WORDS_OWN].title}" for _ in beside)
    return _format_page("Membership of windows of words", told, head, lines, table)


def sentences_markdown(rows: Sequence[Row]) -> str:
    """Format rows of the dual-encoder study as Markdown: by pair and book, means over draws."""
    head: tuple[str, ...] = ("encoder", "epochs", "of", "attack", "decile", *_HEAD)
    table = ResultTable(rows)
    beside = _gain_measures(table, SENTENCES_OWN)
    has_null = bool(table.having(NULL))
    lines = []
    for own in table.measured.group_by(
        "encoder", "epochs", "level", "similarity", "decile", "labels"
    ).values():
        row = own[0]
        title = SENTENCE_ATTACKS[row["similarity"]].title
        name = ENCODERS[row["encoder"]].label
        head_cells = (name, row["epochs"], f"{row['level']}s", title, _describe_decile(row))
        gains = [_describe_gain(own, gain) for gain in beside]
        lines.append(
            (*head_cells, *_score_cells(own), *gains, *([_describe_null(own)] if has_null else []))
        )
    told = (
        "Was the encoder trained on a pair of consecutive sentences, or on a book? It was trained "
        "on half of the books. *Decile*: of the pairs, by the mean log frequency of their words, 1 "
        "the most frequent. "
    )
    head += tuple(f"AUC minus {SENTENCE_ATTACKS[SENTENCES_OWN].title}" for _ in beside)
    if has_null:
        head += ("AUC, trained on neither",)
        told += (
            "*Trained on neither*: the same attack on books outside the training, half of them "
            "labelled members at random before anything is learned. Its AUC should be .5. "
        )
    return _format_page("Membership of sentences and books", told, head, lines, table)


def _describe_decile(row: Row) -> str:
    """Format the decile of a row: `all`, its number, or the control with permuted labels."""
    if row["labels"] == "shuffled":
        return "all, permuted labels"
    return "all" if row["decile"] == _ALL else str(row["decile"])


def _score_cells(rows: ResultTable) -> list[str]:
    """Format the mean of each measure over draws as table cells, or that it is not resolvable."""
    told = []
    n_outsiders = min(rows.column("n_documents")) // 2
    for measure in _MEASURES:
        bold = measure == "auc"
        if len(rows.having(measure)) == len(rows):  # all draws are of the same corpus
            score = rows.mean(measure, is_same_sample=True)
            rate = float(measure.removeprefix("tpr_at_")) if measure.startswith("tpr") else None
            mark = "" if rate is None else AtRate(rate, math.nan, score, n_outsiders).mark
            told.append(f"{score.format(3, is_bold=bold)}{mark}")
        else:
            told.append("" if rows[0]["labels"] == "shuffled" else "not resolvable")
    return told


def _gain_measures(rows: ResultTable, own: str) -> list[str]:
    """Return, as a list, the measure of the gain over the paper's own attack if a row has it."""
    measure = f"{GAIN}: {own}"
    return [measure] if rows.having(measure) else []


def _describe_gain(rows: ResultTable, measure: str) -> str:
    """Format the paired AUC gain over the paper's attack with its verdict."""
    if not rows.having(measure):
        return ""
    gain = rows.mean(measure, is_same_sample=True)
    return f"{gain.format(3)}: {gain.direction()}"


def _describe_null(rows: ResultTable) -> str:
    """Format the AUC among documents that were not trained on; "" if not measured."""
    return rows.mean(NULL, is_same_sample=True).format(3) if rows.having(NULL) else ""


def _format_page(
    title: str,
    told: str,
    head: Sequence[str],
    lines: Sequence[Sequence[object]],
    rows: ResultTable,
) -> str:
    """Format a study's Markdown page: title, explanation, table and failures."""
    measured = rows.measured
    if measured:
        told += (
            f"Documents scored: {measured[0]['n_documents']:,}. The attacker knows the membership "
            f"of {measured[0]['labelled_share']:.0%} of each half and chooses thresholds there; "
            "these documents are not scored. "
            f"Means over {len(rows.distinct('seed'))} draws of the halves, with 95 % CI over "
            "documents in brackets. Guessing has an AUC of .5 and an advantage of 0. "
            f"{COARSE}\n"
        )
    if blind := describe_blind_baseline(measured):
        told += f"\n{blind} This is for whole documents.\n"
    failed = [
        f"- {row['encoder']}, seed {row['seed']}: failed: {row.error}\n" for row in rows.failed
    ]
    return "\n".join([f"# {title}", "", told, *markdown_table(head, lines), *failed, ""])
