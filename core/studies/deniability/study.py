"""The deniability study: tables and figures of Qu et al. (2021), §5.3–5.4, on given corpora.

A cell a corpus: how many of its tokens come back, and which η match those of the paper. One for a
sentence and for what tokens turn into; one for the vocabulary, from the statistics that ship.
"""

from __future__ import annotations

from collections.abc import Callable
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
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import setting
from leakscope.core.storage.artifacts import digest_file
from leakscope.core.studies.deniability.tables import markdown as markdown
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
            "statistics": _statistics_digest(),
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
            {**shared, "part": "vocabulary", "geometry": _geometry_digest()},
        ]


def uses(cell: Cell) -> Cell:
    """Return the defence whose replacements are counted: text to text."""
    return {"defence": "text_to_text"}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a cell's part; the rows name by `table` the table that they belong to."""
    return _PARTS[cell["part"]](cell)


def _statistics_digest() -> str:
    """Return a digest of the shipped vocabulary statistics."""
    return digest_file(SHIPPED / ENCODER / "model.json")[:16]


def _geometry_digest() -> str:
    """Return a digest of the shipped distances between tokens."""
    return digest_file(SHIPPED / ENCODER / "geometry.json")[:16]


@lru_cache(maxsize=8)
def content_of(corpus: str) -> str:
    """Return a digest of a corpus's texts."""
    return NamedTexts.of(corpus).open().content_hash[:16]


@lru_cache(maxsize=1)
def _open_encoder(name: str) -> tuple[WhiteBoxEncoder, VocabularyDeniability, Geometry]:
    """Load an encoder with the statistics and geometry of its vocabulary, once per process."""
    encoder = require_white_box(load_encoder(name), "Deniability")
    found = load_vocabulary(SHIPPED / name, encoder)
    return encoder, found, load_geometry(SHIPPED / name / "geometry.json", encoder)


def _corpus_rows(cell: Cell) -> list[Row]:
    """Measure token inversion on a corpus at each η, and the η that match the paper's.

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
    """Return the share of tokens that text-to-text noise at η leaves unchanged."""
    privatizer = TextPrivatizer(encoder, eta, rng=np.random.default_rng([seed, int(eta * 10)]))
    n_back = int((privatizer.tokens(drawn) == drawn).sum())
    return Score(100 * n_back / len(drawn), wilson_interval(n_back, len(drawn)), len(drawn))


def _matching_rows(
    name: str, accuracy: NDArray[np.float64], etas: NDArray[np.float64]
) -> list[Row]:
    """Return, for each η of the paper, the η at which this encoder gives the same accuracy."""
    rows = []
    for paper, values in PAPER_TABLE_3.items():
        for eta, value in values:
            matched = float(np.exp(np.interp(value, accuracy, np.log(etas))))
            rows.append(
                Row(
                    facts={
                        "table": "matching",
                        "name": name,
                        "paper": paper,
                        "paper_eta": eta,
                        "paper_accuracy": value,
                        "eta": round(matched, 1),
                    }
                )
            )
    return rows


def _sentence_rows(cell: Cell) -> list[Row]:
    """Return the privatised example sentence at each η, and the replacements of tokens."""
    encoder, _, _ = _open_encoder(cell["encoder"])
    etas, seed = cell["etas"], cell["seed"]
    vectors = token_table(encoder)
    engine = DeniabilityEngine(vectors, candidate_ids(encoder), seed=seed, eta_min=min(etas))
    sentence = DeniableSentence(encoder, engine, cell["sentence"])
    said = [
        Row(
            facts={
                "table": "sentence",
                "eta": eta,
                "privatised": sentence.privatised(engine, eta, seed),
            }
        )
        for eta in etas
    ]
    return [*said, *_replacement_rows(encoder, engine, cell)]


def _replacement_rows(encoder: WhiteBoxEncoder, engine: DeniabilityEngine, cell: Cell) -> list[Row]:
    """Return the most frequent replacements of each example token at each η."""
    names = list(encoder.tokens)
    known = [token for token in cell["tokens"] if token in names]
    envelopes = engine.envelopes([names.index(token) for token in known])
    rows = []
    for eta in cell["etas"]:
        for token, most in zip(known, envelopes.replacements(eta), strict=True):
            said = [[names[other], count] for other, count in most]
            rows.append(
                Row(
                    facts={
                        "table": "replacements",
                        "token": token,
                        "eta": eta,
                        "n_draws": engine.n_draws,
                        "replacements": said,
                    }
                )
            )
    return rows


def _vocabulary_rows(cell: Cell) -> list[Row]:
    """Return N_w and S_w at each η, and the distances between tokens."""
    _, found, geometry = _open_encoder(cell["encoder"])
    distances: dict[str, Any] = {
        "table": "distances",
        "dimension": geometry.dimension,
        "neighbours": list(geometry.neighbours),
        "mean_distance": list(geometry.mean_distance),
    }
    return [*(_count_row(found, eta) for eta in cell["etas"]), Row(facts=distances)]


def _count_row(found: VocabularyDeniability, eta: float) -> Row:
    """Return the means, worst cases and histograms of N_w and S_w over the vocabulary at η.

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
    "corpus": _corpus_rows,
    "sentence": _sentence_rows,
    "vocabulary": _vocabulary_rows,
}
