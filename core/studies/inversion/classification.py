"""The study of encoders' utility: news classified by topic (Corò 2022, Table 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.encoders.fitted import make_encoder
from leakscope.core.encoders.registry import FITTED_ON_TEXTS
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.studies.domains import (
    DOMAINS,
    check_contents,
    content_of,
    encoder_settings,
    open_corpus,
    open_encoder,
)
from leakscope.core.units import resampled_rows, units_or_none

VIEWS = ("titles", "sentences", "text")
"""The title; the title and the first three sentences; everything."""

_ALPHAS = [10.0**-i for i in range(1, 6)]
GRIDS: dict[str, dict[str, list[Any]]] = {
    "c22": {
        "loss": ["hinge", "log_loss"],
        "penalty": ["l1", "l2", "elasticnet"],
        "alpha": _ALPHAS,
        "n_iter_no_change": [5, 10, 20, 30],
    },
    "short": {"loss": ["hinge"], "penalty": ["l2"], "alpha": _ALPHAS, "n_iter_no_change": [5]},
}
"""Settings of the classifier that are tried: those of Corò (2022), §4.1.3, or a 24th of them."""

PAPER = {
    ("tfidf", "in"): (72.13, 82.27, 85.23),
    ("hashing", "in"): (71.22, 81.08, 84.21),
    ("lsa_tfidf", "in"): (68.24, 81.36, 83.90),
    ("lsa_hashing", "in"): (68.33, 80.81, 84.31),
    ("tfidf", "cross"): (72.59, 82.35, 84.67),
    ("hashing", "cross"): (71.22, 81.08, 84.21),
    ("lsa_tfidf", "cross"): (63.62, 77.63, 82.71),
    ("lsa_hashing", "cross"): (62.23, 77.19, 82.24),
    ("doc2vec", "cross"): (74.64, 81.43, 83.13),
    ("minilm", "cross"): (77.77, 82.77, 85.03),
}
"""Macro-F1 of Corò (2022), Table 5.1, by `VIEWS`, on Italian news of eight classes; its
Sentence-BERT is compared with MiniLM."""


@dataclass(frozen=True, kw_only=True)
class ClassificationStudy:
    """Settings of the classification study: a linear classifier on vectors, by encoder and view."""

    target: str = setting(REQUIRED, "table of news with texts, titles and classes")
    title_column: str = setting("title", "column with the titles")
    label_column: str = setting("label_name", "column with the classes")
    other: str = setting("wikipedia", "corpus to fit cross-domain encoders on")
    encoders: tuple[str, ...] = setting((*FITTED_ON_TEXTS, "minilm"), "names of encoders")
    views: tuple[str, ...] = setting(VIEWS, "part of an article to encode", choices=VIEWS)
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "domains of the texts to fit encoders on", choices=tuple(DOMAINS)
    )
    per_class: int = setting(2000, "maximum number of documents per class", low=2, paper="C22")
    grid: str = setting("c22", "settings of the classifier to try", choices=tuple(GRIDS))
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table needs: title and label."""
        return (self.title_column, self.label_column)

    def cells(self) -> list[Cell]:
        """Return one cell per domain, encoder, view and seed; pretrained ones are cross-domain."""
        shared = {
            "study": "classification",
            "target": self.target,
            "title": self.title_column,
            "label": self.label_column,
            "other": self.other,
            "per_class": self.per_class,
            "grid": self.grid,
            "contents": [content_of(self.target), content_of(self.other)],
        }
        return [
            {
                **shared,
                "encoder": encoder,
                "encoder_settings": encoder_settings(encoder),
                "view": view,
                "domain": domain,
                "seed": seed,
            }
            for domain in self.domains
            for encoder in self.encoders
            if encoder in FITTED_ON_TEXTS or domain == "cross"
            for view in self.views
            for seed in self.seeds
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a linear classifier on 70 % of the vectors; return a row of its macro-F1 on the rest.

    Test texts that nearly repeat a training text are left out.
    """
    from sklearn.linear_model import SGDClassifier  # pages use only the table's rows
    from sklearn.metrics import f1_score
    from sklearn.model_selection import GridSearchCV, train_test_split

    check_contents(cell)
    texts, labels = _draw_documents(cell)
    known, held, known_labels, held_labels = train_test_split(
        texts, labels, test_size=0.3, random_state=cell["seed"], stratify=labels
    )
    repeats = near_duplicates(held, known)
    held = [text for i, text in enumerate(held) if i not in repeats]
    held_labels = [label for i, label in enumerate(held_labels) if i not in repeats]
    encoder = _encoder(cell, known, folder)
    search = GridSearchCV(
        SGDClassifier(early_stopping=True, max_iter=1000, random_state=cell["seed"]),
        GRIDS[cell["grid"]],
        scoring="f1_macro",
        cv=5,
    )
    search.fit(encoder.encode(known), known_labels)
    said, true = search.predict(encoder.encode(held)), np.asarray(held_labels)
    classes, counts = np.unique(known_labels, return_counts=True)
    blind = np.full(len(true), classes[counts.argmax()])
    rng = np.random.default_rng([cell["seed"], 9])
    present = np.unique(true)
    drawn = [
        f1_score(true[i], said[i], average="macro", labels=present, zero_division=0)
        for i in resampled_rows(units_or_none(held), len(true), 500, rng)
    ]
    low, high = 100 * np.percentile(drawn, [2.5, 97.5])
    score = Score(
        100 * f1_score(true, said, average="macro"),
        Interval(float(low), float(high)),
        len(held),
        100 * f1_score(true, blind, average="macro"),
    )
    facts = {
        "n_train": len(known),
        "n": len(held),
        "n_near_duplicates": len(repeats),
        "n_classes": len(classes),
        "dimension": encoder.dimension,
        "chosen": search.best_params_,
    }
    return [Row(scores={"macro_f1": score}, facts=facts)]


def _draw_documents(cell: Cell) -> tuple[list[str], list[str]]:
    """Draw documents, at most `per_class` a class; return the cell's view of them, and classes."""
    path, column = split_reference(cell["target"])
    columns = Columns(text=cell["title"], label=cell["label"])
    titles = load_corpus(Path(path), columns=columns)
    bodies = {d.id: d.text for d in load_corpus(Path(path), columns=Columns(text=column)).documents}
    documents = [d for d in titles.documents if d.label is not None and d.id in bodies]
    if len({d.label for d in documents}) < 2:
        raise InvalidInputError(f"{path} must have at least two classes in {cell['label']!r}.")
    order = np.random.default_rng(cell["seed"]).permutation(len(documents))
    left = {str(d.label): int(cell["per_class"]) for d in documents}
    texts, labels = [], []
    for i in order:
        document, label = documents[i], str(documents[i].label)
        if left[label]:
            left[label] -= 1
            texts.append(_text_of_view(cell["view"], document.text, bodies[document.id]))
            labels.append(label)
    return texts, labels


def _text_of_view(view: str, title: str, body: str) -> str:
    """Return what a view encodes of an article: its title, first sentences or all."""
    if view == "titles":
        return title
    if view == "sentences":
        return " ".join([title, *split_sentences(body)[:3]])
    return f"{title} {body}"[:20_000]


def _encoder(cell: Cell, known: Sequence[str], folder: Path) -> Encoder:
    """Open the cell's encoder, fitted on the training texts if in-domain, otherwise on `other`."""
    if cell["domain"] == "in":
        return make_encoder(cell["encoder"]).fit(known)
    return open_encoder(  # fitted on the same texts for every view
        cell["encoder"],
        {"other": cell["other"]},
        lambda: open_corpus(cell["other"]).sentences().texts,
        folder,
        contents=cell["contents"][1:],
    )


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table with the thesis's scores."""
    scores = ("n", "macro-F1 [95 %]", "largest class only", "C22")
    lines = markdown_table(("encoder", "fitted", "view", *scores), map(_table_cells, rows))
    return "\n".join(lines) + "\n"


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return a row's table cells: setting, macro-F1 and the thesis's figure, or its error."""
    head = (row["encoder"], row["domain"], row["view"])
    if row.error:
        return (*head, "–", f"failed: {row.error}")
    theirs = PAPER.get((row["encoder"], row["domain"]))
    paper = f"{theirs[VIEWS.index(row['view'])]:.1f}" if theirs else ""
    score = row.scores["macro_f1"]
    return (*head, score.n, score.format(is_bold=True), f"{score.chance:.1f}", paper)
