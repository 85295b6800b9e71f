"""The deniability study: tables and figures of Qu et al. (2021), §5.3–5.4, on given corpora.

A cell a corpus: how many of its tokens come back, and which η match those of the paper. One for a
sentence and for what tokens turn into; one for the vocabulary, from the statistics that ship.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.deniability.engine import DeniabilityEngine
from leakscope.core.defences.deniability.eta_choice import corpus_counts, token_inversion
from leakscope.core.defences.deniability.geometry import Geometry, load_geometry
from leakscope.core.defences.deniability.sentence import DeniableSentence
from leakscope.core.defences.deniability.vocabulary import (
    SHIPPED,
    VocabularyDeniability,
    load_vocabulary,
)
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.eta_grid import NAMED_ETAS
from leakscope.core.defences.metric_dp.mechanisms import TextPrivatizer
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import wilson_interval
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import DefenceSpec, setting
from leakscope.core.storage.artifacts import digest_file
from leakscope.core.studies.deniability.odds import ODDS, format_odds_cell, odds_note
from leakscope.core.studies.named_texts import NamedTexts, parse_named_texts

ENCODER = "minilm"
"""The encoder whose vocabulary statistics ship."""

PAPER_TABLE_3: dict[str, tuple[tuple[float, float], ...]] = {
    "SST-2": (
        (50, 0.0154),
        (75, 0.1084),
        (100, 0.3402),
        (125, 0.6354),
        (150, 0.8500),
        (175, 0.9511),
    ),
    "QQP": ((50, 0.0165), (75, 0.1066), (100, 0.3420), (125, 0.6462), (150, 0.8620), (175, 0.9570)),
}
"""Token inversion accuracy by η from Qu et al. (2021, Table 3), for BERT-base, n = 768."""

SENTENCE = "The nurse wrote that the patient from Lisbon had stopped taking insulin."
TOKENS = ("nurse", "insulin", "lisbon", "money", "seven", "not")

N_BINS = 25
"""Number of bins of the histograms of N_w and S_w."""


@dataclass(frozen=True, kw_only=True)
class DeniabilityStudy:
    """Settings of the deniability study: corpora, number of tokens and seed."""

    corpora: tuple[str, ...] = setting(
        ("lee",), "corpora, or rows of a file as NAME=FILE or NAME=FILE:COLUMN=VALUE", holds="texts"
    )
    n_tokens: int = setting(20_000, "tokens of each corpus to privatise", low=1)
    seed: int = setting(0, "random seed of the noise", low=0)

    def cells(self) -> list[Cell]:
        """Return one cell per corpus, one for the example sentence and one for the vocabulary.

        Raises
        ------
        InvalidInputError
            Two corpora of one name, or one that cannot be read.
        """
        parse_named_texts(self.corpora)
        shared = {
            "study": "deniability",
            "encoder": ENCODER,
            "statistics": digest_file(SHIPPED / ENCODER / "model.json")[:16],
            "etas": list(NAMED_ETAS),
        }
        return [
            *(
                {
                    **shared,
                    "part": "corpus",
                    "corpus": corpus,
                    "content": content_of(corpus),
                    "n_tokens": self.n_tokens,
                    "seed": self.seed,
                }
                for corpus in self.corpora
            ),
            {
                **shared,
                "part": "sentence",
                "sentence": SENTENCE,
                "tokens": list(TOKENS),
                "seed": self.seed,
            },
            {
                **shared,
                "part": "vocabulary",
                "geometry": digest_file(SHIPPED / ENCODER / "geometry.json")[:16],
            },
        ]


def uses(cell: Cell) -> Cell:
    """Return {"defence": "text_to_text"}: the registry entry that each cell measures."""
    return {"defence": "text_to_text"}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a cell: a corpus, the sentence or the vocabulary; each row names its `table`."""
    return _PARTS[cell["part"]](cell)


@lru_cache(maxsize=8)
def content_of(corpus: str) -> str:
    """Return a digest of the texts that a corpus reference names."""
    return NamedTexts.of(corpus).open().content_hash[:16]


@lru_cache(maxsize=1)
def _open_encoder(name: str) -> tuple[WhiteBoxEncoder, VocabularyDeniability, Geometry]:
    """Load an encoder with the statistics and geometry of its vocabulary, once per process."""
    encoder = require_white_box(load_encoder(name), "Deniability")
    found = load_vocabulary(SHIPPED / name, encoder)
    return encoder, found, load_geometry(SHIPPED / name / "geometry.json", encoder)


def _measure_corpus(cell: Cell) -> list[Row]:
    """Measure token inversion on a corpus at each η, and find the η that match the paper's.

    Raises
    ------
    InvalidInputError
        The corpus has changed since the study was started.
    """
    encoder, found, _ = _open_encoder(cell["encoder"])
    texts = NamedTexts.of(cell["corpus"])
    if content_of(cell["corpus"]) != cell["content"]:
        raise InvalidInputError(
            f"{cell['corpus']} has changed since the study was started. Copy the same "
            "file to every machine, or start the study again."
        )
    counts = corpus_counts(encoder, texts.open().texts)
    accuracy, coverage = token_inversion(found, counts)
    tokens = np.repeat(np.fromiter(counts, np.int64), np.fromiter(counts.values(), np.int64))
    n = min(cell["n_tokens"], len(tokens))
    drawn = np.random.default_rng(cell["seed"]).choice(tokens, n, replace=False)
    facts = {
        "table": "inversion",
        "name": texts.name,
        "n_corpus": len(tokens),
        "coverage": coverage,
    }
    inverted = [
        Row(
            facts={**facts, "eta": eta},
            scores={
                "token_inversion": _token_inversion(encoder, drawn, eta, cell["seed"]),
                "expected": Score(100 * float(accuracy[found.at(eta)]), n=len(tokens)),
            },
        )
        for eta in cell["etas"]
    ]
    return [*inverted, *_matching_rows(texts.name, accuracy, found.etas)]


def _token_inversion(
    encoder: WhiteBoxEncoder, drawn: NDArray[np.int64], eta: float, seed: int
) -> Score:
    """Privatise tokens by text-to-text noise at η; return the per cent left unchanged."""
    privatizer = TextPrivatizer(encoder, eta, rng=np.random.default_rng([seed, int(eta * 10)]))
    n_back = int((privatizer.tokens(drawn) == drawn).sum())
    return Score(100 * n_back / len(drawn), wilson_interval(n_back, len(drawn)), len(drawn))


def _matching_rows(
    name: str, accuracy: NDArray[np.float64], etas: NDArray[np.float64]
) -> list[Row]:
    """Return a row per η of the paper: the η that gives this encoder the same accuracy."""
    rows = []
    for paper, values in PAPER_TABLE_3.items():
        for eta, value in values:
            matched = float(np.exp(np.interp(value, accuracy, np.log(etas))))
            facts = {"table": "matching", "name": name, "paper": paper, "paper_eta": eta}
            rows.append(Row(facts={**facts, "paper_accuracy": value, "eta": round(matched, 1)}))
    return rows


def _measure_sentence(cell: Cell) -> list[Row]:
    """Privatise the example sentence at each η, and count replacements of example tokens."""
    encoder, _, _ = _open_encoder(cell["encoder"])
    etas, seed = cell["etas"], cell["seed"]
    vectors = token_table(encoder)
    engine = DeniabilityEngine(vectors, candidate_ids(encoder), seed=seed, eta_min=min(etas))
    sentence = DeniableSentence(encoder, engine, cell["sentence"])
    privatised = {eta: sentence.privatised(engine, eta, seed) for eta in etas}
    return [
        *(
            Row(facts={"table": "sentence", "eta": eta, "privatised": tokens})
            for eta, tokens in privatised.items()
        ),
        *_replacement_rows(encoder, engine, cell),
    ]


def _replacement_rows(encoder: WhiteBoxEncoder, engine: DeniabilityEngine, cell: Cell) -> list[Row]:
    """Draw replacements of each example token at each η; return rows of the most frequent."""
    names = list(encoder.tokens)
    known = [token for token in cell["tokens"] if token in names]
    envelopes = engine.envelopes([names.index(token) for token in known])
    rows = []
    for eta in cell["etas"]:
        for token, most in zip(known, envelopes.replacements(eta), strict=True):
            counts = [[names[other], count] for other, count in most]
            facts = {"table": "replacements", "token": token, "eta": eta}
            rows.append(Row(facts={**facts, "n_draws": engine.n_draws, "replacements": counts}))
    return rows


def _summarise_vocabulary(cell: Cell) -> list[Row]:
    """Return a row of N_w and S_w per η, and a row of distances between tokens."""
    _, found, geometry = _open_encoder(cell["encoder"])
    distances: dict[str, Any] = {
        "table": "distances",
        "dimension": geometry.dimension,
        "neighbours": list(geometry.neighbours),
        "mean_distance": list(geometry.mean_distance),
    }
    return [*(_count_row(found, eta) for eta in cell["etas"]), Row(facts=distances)]


def _count_row(found: VocabularyDeniability, eta: float) -> Row:
    """Return a row: means, worst cases and histograms of N_w and S_w over the vocabulary at η.

    `mean_n_w` and `mean_s_w` hold a mean for each set of draws.
    """
    at, n = found.at(eta), len(found.tokens)
    edges = np.linspace(0, found.n_draws, N_BINS + 1)
    n_w, s_w = found.n_w[:, at], found.s_w[:, at]
    means = {"mean_n_w": found.mean_n_w[:, at], "mean_s_w": found.mean_s_w[:, at]}
    facts = {
        "table": "counts",
        "eta": eta,
        "n_draws": found.n_draws,
        "n_vocabulary": n,
        **{name: values.tolist() for name, values in means.items()},
        "max_n_w": int(n_w.max()),
        "min_s_w": int(s_w.min()),
        "histogram_n_w": np.histogram(n_w, edges)[0].tolist(),
        "histogram_s_w": np.histogram(s_w, edges)[0].tolist(),
    }
    scores = {
        "n_w": Score(float(means["mean_n_w"].mean()), n=n),
        "s_w": Score(float(means["mean_s_w"].mean()), n=n),
    }
    return Row(scores=scores, facts=facts)


_PARTS: dict[str, Callable[[Cell], list[Row]]] = {
    "corpus": _measure_corpus,
    "sentence": _measure_sentence,
    "vocabulary": _summarise_vocabulary,
}


def rows_of_table(rows: Sequence[Row], table: str) -> list[Row]:
    """Return those rows whose fact `table` has the given name."""
    return [row for row in rows if row.get("table") == table]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown page; missing parts are left out, failures listed."""
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
    """Format the paragraph above the tables: encoder, numbers of tokens and draws, seeds."""
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
    """Return the Markdown section on the odds that each measured η guarantees; empty if unknown."""
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
    """Return the Markdown section on token inversion by corpus and η."""
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
    """Return the Markdown section on the η that match those of the paper."""
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
    """Return the Markdown section on N_w and S_w by η."""
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
    """Return the Markdown section with the figure of distances and noise."""
    del rows  # the figure has them
    return [
        "## Distances and noise (their Fig. 3)\n",
        "![Distances to neighbours and the noise](deniability-geometry.svg)\n",
    ]


def _sentence_section(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown lines of the section with the privatised sentence at each η."""
    lines = [
        [f"{row['eta']:g}", _escape_markup(_join_word_pieces(row["privatised"]))] for row in rows
    ]
    return [
        "## A sentence at each η (their Table 1)\n",
        f"One draw, scaled to each η. Original: *{rows[0]['sentence']}*\n",
        _table(["η", "privatised"], lines),
    ]


def _replacement_section(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown section with the most frequent replacements of each token."""
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
    """Format columns and lines of cells as a Markdown table, in one string."""
    return "\n".join(markdown_table(columns, lines)) + "\n"


def _format_spread(row: Row, name: str) -> str:
    """Format the mean of N_w or S_w with its standard deviation over sets of draws."""
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
