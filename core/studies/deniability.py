"""The tables and figures of Qu et al. (2021), §5.3–5.4, for an encoder and corpora of one's own.

`python -m core.studies.deniability --corpus lee --corpus NAME=FILE … --out
docs/results/deniability.json` writes the numbers, a page of tables and two figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from core.corpora import Columns, load_corpus
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
from core.figures.deniability_panels import geometry_panel, histogram_panels
from core.figures.svg import write_svg
from core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from core.store import write_json
from core.studies.deniability_tables import markdown

__all__ = ["PAPER_TABLE_3", "run"]

PAPER_TABLE_3: dict[str, tuple[tuple[float, float], ...]] = {
    "SST-2": ((50, 0.0154), (75, 0.1084), (100, 0.3402), (125, 0.6354), (150, 0.8500),
              (175, 0.9511)),
    "QQP": ((50, 0.0165), (75, 0.1066), (100, 0.3420), (125, 0.6462), (150, 0.8620),
            (175, 0.9570)),
}  # fmt: skip
"""Token inversion accuracy by η as Qu et al. (2021, Table 3) print it, for BERT-base, n = 768."""

SENTENCE = "The nurse wrote that the patient from Lisbon had stopped taking insulin."
TOKENS = ("nurse", "insulin", "lisbon", "money", "seven", "not")


def run(
    encoder: WhiteBoxEncoder,
    corpora: dict[str, Sequence[str]],
    *,
    found: VocabularyDeniability,
    geometry: Geometry,
    etas: Sequence[float] = NAMED_ETAS,
    n_tokens: int = 20_000,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """Measure token inversion on corpora, and gather what the tables show.

    Parameters
    ----------
    corpora : dict
        Name to texts.
    n_tokens : int
        Tokens of each corpus that are privatised under fresh noise, drawn by `seed`; the
        expectation over all of them is computed from N_w beside it.
    """
    rows = []
    for done, (name, texts) in enumerate(corpora.items()):
        on_progress(done / (len(corpora) + 1), f"Token inversion on {name}")
        rows += _inversion(encoder, name, texts, found, etas, n_tokens, seed)
    on_progress(len(corpora) / (len(corpora) + 1), "Sentences and tokens")
    vectors = encoder.token_vectors.detach().float().cpu().numpy()
    engine = DeniabilityEngine(vectors, candidate_ids(encoder), seed=seed, eta_min=min(etas))
    sentence = DeniableSentence(encoder, engine, SENTENCE)
    on_progress(1.0, "Done")
    return {
        "study": "deniability",
        "encoder": encoder.name,
        "n_draws": found.n_draws,
        "n_vocabulary": len(found.tokens),
        "seed": seed,
        "table_1": {
            "sentence": SENTENCE,
            "rows": [
                {"eta": eta, "tokens": sentence.privatised(engine, eta, seed)} for eta in etas
            ],
        },
        "table_2": _replacements(encoder, engine, etas),
        "table_3": rows,
        "matching": _matching(found, encoder, corpora),
        "figure_3": {
            "neighbours": geometry.neighbours,
            "mean_distance": geometry.mean_distance,
            "noise": {f"{eta:g}": geometry.dimension / eta for eta in etas},
        },
        "figure_4": [
            {
                "eta": eta,
                "mean_n_w": found.mean_n_w[:, found.at(eta)].tolist(),
                "mean_s_w": found.mean_s_w[:, found.at(eta)].tolist(),
                "max_n_w": int(found.n_w[:, found.at(eta)].max()),
                "min_s_w": int(found.s_w[:, found.at(eta)].min()),
            }
            for eta in etas
        ],
    }


def _inversion(
    encoder: WhiteBoxEncoder,
    name: str,
    texts: Sequence[str],
    found: VocabularyDeniability,
    etas: Sequence[float],
    n_tokens: int,
    seed: int,
) -> list[dict[str, Any]]:
    counts = corpus_counts(encoder, texts)
    expected, coverage = token_inversion(found, counts)
    tokens = np.repeat(np.fromiter(counts, np.int64), np.fromiter(counts.values(), np.int64))
    rng = np.random.default_rng(seed)
    drawn = rng.choice(tokens, min(n_tokens, len(tokens)), replace=False)
    rows = []
    for eta in etas:
        privatizer = TextPrivatizer(encoder, eta, rng=np.random.default_rng([seed, int(eta * 10)]))
        n_back = int((privatizer.tokens(drawn) == drawn).sum())
        interval = binomtest(n_back, len(drawn)).proportion_ci(method="wilson")
        rows.append(
            {
                "corpus": name,
                "eta": eta,
                "n_corpus": len(tokens),
                "coverage": coverage,
                "expected": float(expected[found.at(eta)]),
                "accuracy": n_back / len(drawn),
                "ci95": [interval.low, interval.high],
                "n": len(drawn),
            }
        )
    return rows


def _replacements(
    encoder: WhiteBoxEncoder, engine: DeniabilityEngine, etas: Sequence[float]
) -> list[dict[str, Any]]:
    names = list(encoder.tokens)
    known = [token for token in TOKENS if token in names]
    envelopes = engine.envelopes([names.index(token) for token in known])
    rows = []
    for eta in etas:
        for token, most in zip(known, envelopes.replacements(eta), strict=True):
            said = [[names[other], count] for other, count in most]
            rows.append({"token": token, "eta": eta, "replacements": said})
    return rows


def _matching(
    found: VocabularyDeniability, encoder: WhiteBoxEncoder, corpora: dict[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Return, for each η of the paper, the η at which this encoder gives the same accuracy."""
    rows = []
    for name, texts in corpora.items():
        accuracy, _ = token_inversion(found, corpus_counts(encoder, texts))
        for paper, values in PAPER_TABLE_3.items():
            for eta, value in values:
                matched = float(np.exp(np.interp(value, accuracy, np.log(found.etas))))
                rows.append({"corpus": name, "paper": paper, "paper_eta": eta,
                             "paper_accuracy": value, "eta": round(matched, 1)})  # fmt: skip
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its tables and figures."""
    parser = argparse.ArgumentParser(prog="python -m core.studies.deniability", description=__doc__)
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME[=FILE[:WHERE]]",
                        help="a corpus by name, or rows of a file")  # fmt: skip
    parser.add_argument("--n-tokens", type=int, default=20_000, help="privatised of each corpus")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/deniability.json"))
    given = parser.parse_args(arguments)
    encoder: Any = load_encoder("minilm")
    found = load_vocabulary(SHIPPED / encoder.name, encoder)
    geometry = load_geometry(SHIPPED / encoder.name / "geometry.json", encoder)
    result = run(
        encoder,
        dict(_corpus(entry) for entry in given.corpus),
        found=found,
        geometry=geometry,
        n_tokens=given.n_tokens,
        seed=given.seed,
        on_progress=lambda share, message: print(f"{share:4.0%} {message}", file=sys.stderr),
    )
    write_json(given.out, result)
    given.out.with_suffix(".md").write_text(markdown(result), encoding="utf-8")
    stem = given.out.with_suffix("")
    write_svg(histogram_panels(found, NAMED_ETAS), Path(f"{stem}-histograms.svg"))
    write_svg(geometry_panel(geometry, NAMED_ETAS), Path(f"{stem}-geometry.svg"))


def _corpus(entry: str) -> tuple[str, Sequence[str]]:
    """Read `NAME`, `NAME=FILE` or `NAME=FILE:COLUMN=VALUE`."""
    name, _, source = entry.partition("=")
    path, _, where = source.partition(":")
    column, _, value = where.partition("=")
    corpus = load_corpus(path or name, columns=Columns(label=column or None) if path else None)
    return name, (corpus.only([value]) if column else corpus).texts


if __name__ == "__main__":
    main()
