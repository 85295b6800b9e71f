"""The tables and figures of Qu et al. (2021), §5.3–5.4, for corpora of one's own.

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

from core.defences.deniability.engine import DeniabilityEngine
from core.defences.deniability.eta_choice import corpus_counts, token_inversion
from core.defences.deniability.geometry import Geometry, load_geometry
from core.defences.deniability.sentence import DeniableSentence
from core.defences.deniability.vocabulary import (
    NAMED_ETAS,
    SHIPPED,
    VocabularyDeniability,
    load_vocabulary,
)
from core.defences.metric_dp.candidates import candidate_ids
from core.defences.metric_dp.mechanisms import TextPrivatizer
from core.encoders import load_encoder
from core.encoders.white_box import require_white_box, token_table
from core.errors import InvalidInputError
from core.intervals import wilson_interval
from core.protocols import WhiteBoxEncoder
from core.results import Score
from core.specs import setting
from core.store import digest_file
from core.studies.deniability_tables import markdown
from core.studies.named_texts import NamedTexts, check_names
from core.studies.rows import Cell, Row

__all__ = ["ENCODER", "PAPER_TABLE_3", "DeniabilityStudy", "markdown", "measure"]

ENCODER = "minilm"
"""Whose vocabulary was measured, and ships."""

PAPER_TABLE_3: dict[str, tuple[tuple[float, float], ...]] = {
    "SST-2": ((50, 0.0154), (75, 0.1084), (100, 0.3402), (125, 0.6354), (150, 0.8500),
              (175, 0.9511)),
    "QQP": ((50, 0.0165), (75, 0.1066), (100, 0.3420), (125, 0.6462), (150, 0.8620),
            (175, 0.9570)),
}  # fmt: skip
"""Token inversion accuracy by η as Qu et al. (2021, Table 3) print it, for BERT-base, n = 768."""

SENTENCE = "The nurse wrote that the patient from Lisbon had stopped taking insulin."
TOKENS = ("nurse", "insulin", "lisbon", "money", "seven", "not")

N_BINS = 25
"""Of the histograms of N_w and S_w."""


@dataclass(frozen=True, kw_only=True)
class DeniabilityStudy:
    """Token inversion on corpora, and what tokens of the vocabulary turn into, at each η."""

    corpora: tuple[str, ...] = setting(
        ("lee",), "corpora, or rows of a file as NAME=FILE or NAME=FILE:COLUMN=VALUE", holds="texts"
    )
    n_tokens: int = setting(20_000, "tokens of each corpus that are privatised", low=1)
    seed: int = setting(0, "of the noise", low=0)

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each corpus, a sentence, and the vocabulary.

        Raises
        ------
        InvalidInputError
            Two corpora of one name, or one that cannot be read.
        """
        check_names(self.corpora)
        shared = {"study": "deniability", "encoder": ENCODER, "statistics": _statistics(),
                  "etas": list(NAMED_ETAS)}  # fmt: skip
        return [
            *(
                {**shared, "part": "corpus", "corpus": corpus, "content": content_of(corpus),
                 "n_tokens": self.n_tokens, "seed": self.seed}
                for corpus in self.corpora
            ),
            {**shared, "part": "sentence", "sentence": SENTENCE, "tokens": list(TOKENS),
             "seed": self.seed},
            {**shared, "part": "vocabulary", "geometry": _geometry()},
        ]  # fmt: skip


def uses(cell: Cell) -> Cell:
    """Return the defence whose tokens are counted."""
    return {"defence": "text_to_text"}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a part: the rows of each table say by `table` which they belong to."""
    return _PARTS[cell["part"]](cell)


def _statistics() -> str:
    """Return what identifies the statistics that ship."""
    return digest_file(SHIPPED / ENCODER / "model.json")[:16]


def _geometry() -> str:
    """Return what identifies the distances between tokens that ship."""
    return digest_file(SHIPPED / ENCODER / "geometry.json")[:16]


@lru_cache(maxsize=8)
def content_of(corpus: str) -> str:
    """Return what identifies the texts of a corpus."""
    return NamedTexts.of(corpus).open().content_hash[:16]


@lru_cache(maxsize=1)
def _opened(name: str) -> tuple[WhiteBoxEncoder, VocabularyDeniability, Geometry]:
    """Return an encoder with the statistics of its vocabulary."""
    encoder = require_white_box(load_encoder(name), "Deniability")
    found = load_vocabulary(SHIPPED / name, encoder)
    return encoder, found, load_geometry(SHIPPED / name / "geometry.json", encoder)


def _corpus_rows(cell: Cell) -> list[Row]:
    """Count the tokens of a corpus that come back under fresh noise, beside the expectation.

    Raises
    ------
    InvalidInputError
        The corpus holds other texts than where the study was begun.
    """
    encoder, found, _ = _opened(cell["encoder"])
    texts = NamedTexts.of(cell["corpus"])
    if content_of(cell["corpus"]) != cell["content"]:
        raise InvalidInputError(
            f"{cell['corpus']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )
    counts = corpus_counts(encoder, texts.open().texts)
    accuracy, coverage = token_inversion(found, counts)
    tokens = np.repeat(np.fromiter(counts, np.int64), np.fromiter(counts.values(), np.int64))
    n = min(cell["n_tokens"], len(tokens))
    drawn = np.random.default_rng(cell["seed"]).choice(tokens, n, replace=False)
    facts = {"table": "inversion", "name": texts.name, "n_corpus": len(tokens),
             "coverage": coverage}  # fmt: skip
    inverted = [
        Row(
            facts={**facts, "eta": eta},
            scores={
                "token_inversion": _inverted(encoder, drawn, eta, cell["seed"]),
                "expected": Score(100 * float(accuracy[found.at(eta)]), n=len(tokens)),
            },
        )
        for eta in cell["etas"]
    ]
    return [*inverted, *_matching(texts.name, accuracy, found.etas)]


def _inverted(encoder: WhiteBoxEncoder, drawn: NDArray[np.int64], eta: float, seed: int) -> Score:
    """Return the share of tokens that come back at η, under noise of its own."""
    privatizer = TextPrivatizer(encoder, eta, rng=np.random.default_rng([seed, int(eta * 10)]))
    n_back = int((privatizer.tokens(drawn) == drawn).sum())
    return Score(100 * n_back / len(drawn), wilson_interval(n_back, len(drawn)), len(drawn))


def _matching(name: str, accuracy: NDArray[np.float64], etas: NDArray[np.float64]) -> list[Row]:
    """Return, for each η of the paper, the η at which this encoder gives the same accuracy."""
    rows = []
    for paper, values in PAPER_TABLE_3.items():
        for eta, value in values:
            matched = float(np.exp(np.interp(value, accuracy, np.log(etas))))
            rows.append(Row(facts={"table": "matching", "name": name, "paper": paper,
                                   "paper_eta": eta, "paper_accuracy": value,
                                   "eta": round(matched, 1)}))  # fmt: skip
    return rows


def _sentence_rows(cell: Cell) -> list[Row]:
    """Return a sentence at each η, and what tokens turn into."""
    encoder, _, _ = _opened(cell["encoder"])
    etas, seed = cell["etas"], cell["seed"]
    vectors = token_table(encoder)
    engine = DeniabilityEngine(vectors, candidate_ids(encoder), seed=seed, eta_min=min(etas))
    sentence = DeniableSentence(encoder, engine, cell["sentence"])
    said = [
        Row(facts={"table": "sentence", "eta": eta,
                   "privatised": sentence.privatised(engine, eta, seed)})
        for eta in etas
    ]  # fmt: skip
    return [*said, *_replacements(encoder, engine, cell)]


def _replacements(encoder: WhiteBoxEncoder, engine: DeniabilityEngine, cell: Cell) -> list[Row]:
    names = list(encoder.tokens)
    known = [token for token in cell["tokens"] if token in names]
    envelopes = engine.envelopes([names.index(token) for token in known])
    rows = []
    for eta in cell["etas"]:
        for token, most in zip(known, envelopes.replacements(eta), strict=True):
            said = [[names[other], count] for other, count in most]
            rows.append(Row(facts={"table": "replacements", "token": token, "eta": eta,
                                   "n_draws": engine.n_draws, "replacements": said}))  # fmt: skip
    return rows


def _vocabulary_rows(cell: Cell) -> list[Row]:
    """Return N_w and S_w at each η, and the distances between tokens beside the noise."""
    _, found, geometry = _opened(cell["encoder"])
    distances: dict[str, Any] = {"table": "distances", "dimension": geometry.dimension,
                                 "neighbours": list(geometry.neighbours),
                                 "mean_distance": list(geometry.mean_distance)}  # fmt: skip
    return [*(_counts(found, eta) for eta in cell["etas"]), Row(facts=distances)]


def _counts(found: VocabularyDeniability, eta: float) -> Row:
    """Return the means of N_w and S_w over the vocabulary, the worst token, and histograms.

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
