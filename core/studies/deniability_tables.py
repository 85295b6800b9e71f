"""The deniability study as a page of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.specs import DefenceSpec
from core.studies.odds import ODDS, kept_odds, odds_note
from core.studies.rows import Row, failures
from core.studies.tables import markdown_table

__all__ = ["markdown", "rows_of"]


def rows_of(rows: Sequence[Row], table: str) -> list[Row]:
    """Return the rows that belong to a table."""
    return [row for row in rows if row.get("table") == table]


def markdown(rows: Sequence[Row]) -> str:
    """Return the tables as a page; parts that were not measured are left out, and named."""
    sections = (
        ("inversion", _inversion),
        ("matching", _matching),
        ("counts", _counts),
        ("distances", _distances),
        ("sentence", _sentence),
        ("replacements", _replacements),
    )
    parts = ["# Deniability under d_χ-privacy\n", _head(rows), *_promises(rows)]
    for table, section in sections:
        if own := rows_of(rows, table):
            parts += section(own)
    failed = [
        f"- {row.cell['part']} {row.cell.get('corpus', '')}: {row.error}" for row in failures(rows)
    ]
    if failed:
        parts += ["## What failed\n", "\n".join(failed) + "\n"]
    return "\n".join(parts)


def _head(rows: Sequence[Row]) -> str:
    told = [f"Encoder: {rows[0]['encoder']}"]
    if counts := rows_of(rows, "counts"):
        told.append(f"{counts[0]['n_vocabulary']:,} regular tokens")
        told.append(f"{counts[0]['n_draws']:,} draws a token")
    told += [f"seed {seed}" for seed in dict.fromkeys(row["seed"] for row in rows if "seed" in row)]
    return (
        f"{', '.join(told)}. The counterparts are tables "
        "and figures of Qu et al. (2021), measured there on BERT-base (n = 768), whose η has "
        "another scale: the last table says which η match.\n"
    )


def _promises(rows: Sequence[Row]) -> list[str]:
    """Return what each η measured promises; nothing where the distances are not known."""
    etas = sorted({row["eta"] for table in _AT_ETA for row in rows_of(rows, table)})
    encoder = rows[0]["encoder"]
    specs = [DefenceSpec.of("text_to_text", {"eta": float(eta)}) for eta in etas]
    note = odds_note(specs, encoder)
    if not note:
        return []
    lines = [(f"{eta:g}", kept_odds(s, encoder)) for eta, s in zip(etas, specs, strict=True)]
    return [
        "## What each η promises\n",
        f"{note[:1].upper()}{note[1:]} That a token changed can be denied against these odds, no "
        "better.\n",
        _table(["η", ODDS.lower()], lines),
    ]


_AT_ETA = ("inversion", "counts", "sentence", "replacements")
"""Tables of what was measured at an η."""


def _inversion(rows: Sequence[Row]) -> list[str]:
    corpora = _grouped(rows, "name")
    columns = ["corpus", "tokens (sample)", *(f"η {row['eta']:g}" for row in corpora[0])]
    lines = [
        [
            own[0]["name"],
            f"{own[0]['n_corpus']:,} ({own[0].scores['token_inversion'].n:,})",
            *(f"{row.said('token_inversion')} ({row.said('expected')})" for row in own),
        ]
        for own in corpora
    ]
    return [
        "## Token inversion on corpora (their Table 3)\n",
        "Share of tokens that come back, in per cent, under fresh noise on a sample of the "
        "corpus's tokens, [95 % Wilson interval]; in brackets after it the expectation over all "
        "its tokens from N_w.\n",
        _table(columns, lines),
    ]


def _matching(rows: Sequence[Row]) -> list[str]:
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = []
    for own in _grouped(rows, "paper", "paper_eta"):
        matched = {row["name"]: f"{row['eta']:g}" for row in own}
        there = [own[0]["paper"], f"{own[0]['paper_eta']:g}", f"{own[0]['paper_accuracy']:.2%}"]
        lines.append([*there, *(matched.get(name, "") for name in names)])
    return [
        "## Which η match those of the paper\n",
        "η at which this encoder's expected token inversion equals what the paper prints.\n",
        _table(["paper", "η there", "accuracy there", *names], lines),
    ]


def _counts(rows: Sequence[Row]) -> list[str]:
    lines = [
        [f"{row['eta']:g}", _spread(row, "n_w"), f"{row['max_n_w']:,}", _spread(row, "s_w"),
         f"{row['min_s_w']:,}"]
        for row in rows
    ]  # fmt: skip
    return [
        "## N_w and S_w over the vocabulary (their Fig. 4)\n",
        "Mean over tokens, ± standard deviation over sets of draws; the worst token.\n",
        _table(["η", "mean N_w", "greatest N_w", "mean S_w", "least S_w"], lines),
        "![Histograms of N_w and S_w by η](deniability-histograms.svg)\n",
    ]


def _distances(rows: Sequence[Row]) -> list[str]:
    del rows  # the figure has them
    return [
        "## Distances and noise (their Fig. 3)\n",
        "![Distances to neighbours and the noise](deniability-geometry.svg)\n",
    ]


def _sentence(rows: Sequence[Row]) -> list[str]:
    lines = [[f"{row['eta']:g}", _escaped(_joined(row["privatised"]))] for row in rows]
    return [
        "## A sentence at each η (their Table 1)\n",
        f"One draw, scaled. Original: *{rows[0]['sentence']}*\n",
        _table(["η", "privatised"], lines),
    ]


def _replacements(rows: Sequence[Row]) -> list[str]:
    lines = [
        [
            row["token"],
            f"{row['eta']:g}",
            _escaped(", ".join(f"{token} {n}" for token, n in row["replacements"])),
        ]
        for row in sorted(rows, key=lambda row: (row["token"], row["eta"]))
    ]
    return [
        "## What tokens turn into (their Table 2)\n",
        f"Ten most frequent of {rows[0]['n_draws']:,} draws.\n",
        _table(["token", "η", "outcomes (draws)"], lines),
    ]


def _table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    return "\n".join(markdown_table(columns, lines)) + "\n"


def _grouped(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.values())


def _spread(row: Row, name: str) -> str:
    """Return a mean with its standard deviation over sets of draws."""
    values: NDArray[np.float64] = np.array(row[f"mean_{name}"])
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{row.said(name, 0)}{spread}"


def _joined(tokens: Sequence[str]) -> str:
    return " ".join(tokens).replace(" ##", "")


def _escaped(text: str) -> str:
    """Return a text that is not taken for markup; the table escapes its own."""
    for mark in "\\`*_<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
