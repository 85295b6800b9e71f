"""The deniability study as a page of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["markdown"]


def markdown(result: dict[str, Any]) -> str:
    """Return the tables as a page."""
    etas = [row["eta"] for row in result["figure_4"]]
    parts = [
        "# Deniability under d_χ-privacy\n",
        f"Encoder: {result['encoder']}, {result['n_vocabulary']:,} regular tokens, "
        f"{result['n_draws']:,} draws a token, seed {result['seed']}. The counterparts are tables "
        "and figures of Qu et al. (2021), measured there on BERT-base (n = 768), whose η has "
        "another scale: the last table says which η match.\n",
        "## Token inversion on corpora (their Table 3)\n",
        "Share of tokens that come back, in per cent, under fresh noise on a sample of the "
        "corpus's tokens, [95 % Wilson interval]; in brackets after it the expectation over all "
        "its tokens from N_w.\n",
        _table(
            ["corpus", "tokens (sample)", *(f"η {e:g}" for e in etas)],
            [
                [rows[0]["corpus"], f"{rows[0]['n_corpus']:,} ({rows[0]['n']:,})",
                 *(_share(row) for row in rows)]
                for rows in _grouped(result["table_3"], "corpus")
            ],
        ),
        "## Which η match those of the paper\n",
        "η at which this encoder's expected token inversion equals what the paper prints.\n",
        _table(
            ["paper", "η there", "accuracy there", *dict.fromkeys(
                row["corpus"] for row in result["matching"])],
            [
                [rows[0]["paper"], f"{rows[0]['paper_eta']:g}",
                 f"{rows[0]['paper_accuracy']:.2%}", *(f"{row['eta']:g}" for row in rows)]
                for rows in _grouped(result["matching"], "paper", "paper_eta")
            ],
        ),
        "## N_w and S_w over the vocabulary (their Fig. 4)\n",
        "Mean over tokens, ± standard deviation over sets of draws; the worst token.\n",
        _table(
            ["η", "mean N_w", "greatest N_w", "mean S_w", "least S_w"],
            [
                [f"{row['eta']:g}", _spread(row["mean_n_w"]), f"{row['max_n_w']:,}",
                 _spread(row["mean_s_w"]), f"{row['min_s_w']:,}"]
                for row in result["figure_4"]
            ],
        ),
        "![Histograms of N_w and S_w by η](deniability-histograms.svg)\n",
        "## Distances and noise (their Fig. 3)\n",
        "![Distances to neighbours and the noise](deniability-geometry.svg)\n",
        "## A sentence at each η (their Table 1)\n",
        f"One draw, scaled. Original: *{result['table_1']['sentence']}*\n",
        _table(
            ["η", "privatised"],
            [[f"{r['eta']:g}", _escaped(_joined(r["tokens"]))] for r in result["table_1"]["rows"]],
        ),
        "## What tokens turn into (their Table 2)\n",
        f"Ten most frequent of {result['n_draws']:,} draws.\n",
        _table(
            ["token", "η", "outcomes (draws)"],
            [
                [row["token"], f"{row['eta']:g}",
                 _escaped(", ".join(f"{t} {n}" for t, n in row["replacements"]))]
                for row in sorted(result["table_2"], key=lambda r: (r["token"], r["eta"]))
            ],
        ),
    ]  # fmt: skip
    return "\n".join(parts)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _grouped(rows: list[dict[str, Any]], *keys: str) -> list[list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append(row)
    return list(groups.values())


def _share(row: dict[str, Any]) -> str:
    low, high = (100 * limit for limit in row["ci95"])
    return f"{100 * row['accuracy']:.1f} [{low:.1f}, {high:.1f}] ({100 * row['expected']:.1f})"


def _spread(means: list[float]) -> str:
    values: NDArray[np.float64] = np.array(means)
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.0f}{spread}"


def _joined(tokens: list[str]) -> str:
    return " ".join(tokens).replace(" ##", "")


def _escaped(text: str) -> str:
    """Return a text that no table takes for markup."""
    for mark in "\\`*_|<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
