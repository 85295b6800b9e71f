"""Markdown tables of the deniability study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import ODDS, format_odds_cell, odds_note


def rows_of_table(rows: Sequence[Row], table: str) -> list[Row]:
    """Return the rows that belong to a table."""
    return [row for row in rows if row.get("table") == table]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study as a Markdown page; missing parts are left out, failed ones listed."""
    sections = (
        ("inversion", _inversion_section),
        ("matching", _matching_section),
        ("counts", _count_section),
        ("distances", _distance_section),
        ("sentence", _sentence_section),
        ("replacements", _replacement_section),
    )
    parts = ["# Deniability under d_χ-privacy\n", _introduction(rows), *_guarantee_section(rows)]
    for table, section in sections:
        if own := rows_of_table(rows, table):
            parts += section(own)
    failed = [
        f"- {row.cell['part']} {row.cell.get('corpus', '')}: {row.error}"
        for row in ResultTable(rows).failed
    ]
    if failed:
        parts += ["## What failed\n", "\n".join(failed) + "\n"]
    return "\n".join(parts)


def _introduction(rows: Sequence[Row]) -> str:
    """Return the paragraph above the tables: encoder, numbers of tokens and draws, seeds."""
    told = [f"Encoder: {rows[0]['encoder']}"]
    if counts := rows_of_table(rows, "counts"):
        told.append(f"{counts[0]['n_vocabulary']:,} regular tokens")
        told.append(f"{counts[0]['n_draws']:,} draws per token")
    told += [
        f"random seed {seed}"
        for seed in dict.fromkeys(row["seed"] for row in rows if "seed" in row)
    ]
    return (
        f"{', '.join(told)}. The headings name the corresponding tables and figures of Qu et al. "
        "(2021). They used BERT-base (n = 768), whose η has another scale; a table below lists "
        "which η match.\n"
    )


def _guarantee_section(rows: Sequence[Row]) -> list[str]:
    """Return the section on the odds that each measured η guarantees; empty if unknown."""
    etas = sorted({row["eta"] for table in _AT_ETA for row in rows_of_table(rows, table)})
    encoder = rows[0]["encoder"]
    specs = [DefenceSpec.of("text_to_text", {"eta": float(eta)}) for eta in etas]
    note = odds_note(specs, encoder)
    if not note:
        return []
    lines = [(f"{eta:g}", format_odds_cell(s, encoder)) for eta, s in zip(etas, specs, strict=True)]
    return [
        "## What each η guarantees\n",
        f"{note[:1].upper()}{note[1:]} An author's denial is worth no more "
        "than these odds allow.\n",
        _table(["η", ODDS.lower()], lines),
    ]


_AT_ETA = ("inversion", "counts", "sentence", "replacements")
"""Tables of what was measured at an η."""


def _inversion_section(rows: Sequence[Row]) -> list[str]:
    """Return the section on token inversion by corpus and η."""
    corpora = list(ResultTable(rows).group_by("name").values())
    columns = ["corpus", "tokens (sample)", *(f"η {row['eta']:g}" for row in corpora[0])]
    lines = [
        [
            own[0]["name"],
            f"{own[0]['n_corpus']:,} ({own[0].scores['token_inversion'].n:,})",
            *(f"{row.format('token_inversion')} ({row.format('expected')})" for row in own),
        ]
        for own in corpora
    ]
    return [
        "## Token inversion on corpora (their Table 3)\n",
        "Share of unchanged tokens in per cent, under new noise on a sample of the corpus's tokens "
        "[95 % Wilson interval]; in parentheses, the expectation for all its tokens, from N_w.\n",
        _table(columns, lines),
    ]


def _matching_section(rows: Sequence[Row]) -> list[str]:
    """Return the section on the η that match those of the paper."""
    table = ResultTable(rows)
    names = table.distinct("name")
    lines = []
    for own in table.group_by("paper", "paper_eta").values():
        matched = {row["name"]: f"{row['eta']:g}" for row in own}
        there = [own[0]["paper"], f"{own[0]['paper_eta']:g}", f"{own[0]['paper_accuracy']:.2%}"]
        lines.append([*there, *(matched.get(name, "") for name in names)])
    return [
        "## Which η match those of the paper\n",
        "η at which this encoder's expected token inversion equals that of the paper.\n",
        _table(["paper", "η in the paper", "accuracy in the paper", *names], lines),
    ]


def _count_section(rows: Sequence[Row]) -> list[str]:
    """Return the section on N_w and S_w by η."""
    lines = [
        [
            f"{row['eta']:g}",
            _format_spread(row, "n_w"),
            f"{row['max_n_w']:,}",
            _format_spread(row, "s_w"),
            f"{row['min_s_w']:,}",
        ]
        for row in rows
    ]
    return [
        "## N_w and S_w over the vocabulary (their Fig. 4)\n",
        "Mean over tokens, ± standard deviation over sets of draws, and the worst token.\n",
        _table(["η", "mean N_w", "greatest N_w", "mean S_w", "least S_w"], lines),
        "![Histograms of N_w and S_w by η](deniability-histograms.svg)\n",
    ]


def _distance_section(rows: Sequence[Row]) -> list[str]:
    """Return the section with the figure of distances and noise."""
    del rows  # the figure has them
    return [
        "## Distances and noise (their Fig. 3)\n",
        "![Distances to neighbours and the noise](deniability-geometry.svg)\n",
    ]


def _sentence_section(rows: Sequence[Row]) -> list[str]:
    """Return the section with the privatised sentence at each η."""
    lines = [
        [f"{row['eta']:g}", _escape_markup(_join_word_pieces(row["privatised"]))] for row in rows
    ]
    return [
        "## A sentence at each η (their Table 1)\n",
        f"One draw, scaled to each η. Original: *{rows[0]['sentence']}*\n",
        _table(["η", "privatised"], lines),
    ]


def _replacement_section(rows: Sequence[Row]) -> list[str]:
    """Return the section with the most frequent replacements of each token."""
    lines = [
        [
            row["token"],
            f"{row['eta']:g}",
            _escape_markup(", ".join(f"{token} {n}" for token, n in row["replacements"])),
        ]
        for row in sorted(rows, key=lambda row: (row["token"], row["eta"]))
    ]
    return [
        "## What replaces tokens (their Table 2)\n",
        f"The ten most frequent outcomes of {rows[0]['n_draws']:,} draws.\n",
        _table(["token", "η", "outcomes (draws)"], lines),
    ]


def _table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table as one string."""
    return "\n".join(markdown_table(columns, lines)) + "\n"


def _format_spread(row: Row, name: str) -> str:
    """Format a mean with its standard deviation over sets of draws."""
    values: NDArray[np.float64] = np.array(row[f"mean_{name}"])
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{row.format(name, 0)}{spread}"


def _join_word_pieces(tokens: Sequence[str]) -> str:
    """Join tokens to a text; `##` pieces continue a word."""
    return " ".join(tokens).replace(" ##", "")


def _escape_markup(text: str) -> str:
    """Escape Markdown and HTML characters in a text."""
    for mark in "\\`*_<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
