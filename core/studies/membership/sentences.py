"""The dual-encoder membership study: which sentence pairs and books an encoder was trained on.

Implements Song & Raghunathan (2020), §6.4 and Fig. 5: fixed and learned similarity, by pairs and by
books, by how rare their words are. Each row also has the null AUC: the same attack on books that
the encoder was not trained on, half of which are called members at random before anything is drawn
or learned. No further model is trained: it costs only the scoring of half as many books again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.registry import SENTENCE_ATTACKS, SENTENCES_OWN
from leakscope.core.attacks.membership.sentences.scoring import (
    BookPairs,
    cross_fitted_scores,
    mean_by_book,
    rarity,
)
from leakscope.core.attacks.membership.words.windows import frequency_deciles
from leakscope.core.corpora import Corpus
from leakscope.core.encoders.dual.context_pairs import ContextPairs, pairs_of
from leakscope.core.errors import InvalidInputError
from leakscope.core.registry import find
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import setting
from leakscope.core.studies.membership.classifier_rows import NULL
from leakscope.core.studies.membership.halves import (
    Halves,
    ReferenceScores,
    Scored,
    all_encoder_settings,
    check_contents,
    contents_of,
    draw_halves,
    draw_null_halves,
    group_rows,
    open_documents,
    trained_encoder,
    with_document_baseline,
)
from leakscope.core.studies.membership.tables import sentences_markdown

markdown = sentences_markdown

SENTENCE_ENCODERS = ("dual_lstm", "dual_transformer")

LEVELS = ("pair", "book")
"""The units of membership: two consecutive sentences, or a document by the mean of its pairs."""


@dataclass(frozen=True, kw_only=True)
class MembershipSentencesStudy:
    """Settings of the study: dual encoders trained on half of the books, and attacks."""

    target: str = setting("bundled", "a corpus of documents; models are trained on half of them")
    document_column: str = setting("", "column whose value groups rows into documents")
    encoders: tuple[str, ...] = setting(
        SENTENCE_ENCODERS, "dual encoders", choices=SENTENCE_ENCODERS
    )
    similarities: tuple[str, ...] = setting(
        tuple(SENTENCE_ATTACKS), "attacks by name", choices=tuple(SENTENCE_ATTACKS)
    )
    dimension: int = setting(
        0, "dimensions of a vector; 0 for each encoder's own", low=0, high=8192
    )
    epochs: tuple[int, ...] = setting(
        (0,),
        "passes over the pairs, one encoder per value; 0 for each encoder's own",
        low=0,
        high=1000,
    )
    learning_rate: float = setting(0.0, "of Adam; 0 for each encoder's own", low=0.0, high=1.0)
    n_validation: int = setting(200, "pairs held out from training, at most a tenth", low=2)
    n_pairs: int = setting(400, "most pairs scored per document", low=1)
    labelled_share: float = setting(
        0.1, "share of the documents that the attacker knows", low=0.01, high=0.5, paper="SR20"
    )
    seeds: tuple[int, ...] = setting((0, 1, 2), "one draw of the halves per seed", low=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table must have: that of documents, if given."""
        return (self.document_column,) if self.document_column else ()

    def cells(self) -> list[Cell]:
        """Return one cell per encoder, number of epochs and seed."""
        shared = {
            "study": "membership-sentences",
            "target": self.target,
            "document_column": self.document_column,
            "contents": contents_of(self.target, self.document_column),
            "similarities": list(self.similarities),
            "n_pairs": self.n_pairs,
            "labelled_share": self.labelled_share,
        }
        return [
            {
                **shared,
                "encoder": encoder,
                "encoder_settings": all_encoder_settings(
                    encoder, self._encoder_entries(encoder, epochs, seed)
                ),
                "seed": seed,
            }
            for encoder in self.encoders
            for epochs in self.epochs
            for seed in self.seeds
        ]

    def _encoder_entries(self, encoder: str, epochs: int, seed: int) -> dict[str, Any]:
        """Return the encoder settings that the study overrides, by name; 0 keeps the default."""
        asked = {"epochs": epochs, "dimension": self.dimension, "learning_rate": self.learning_rate}
        if encoder == "dual_transformer":
            asked["feed_forward"] = 4 * self.dimension
        given = {name: value for name, value in asked.items() if value}
        return {"n_validation": self.n_validation, "seed": seed, **given}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Load or train an encoder on half of the documents; attack pairs and books of both halves."""
    check_contents(cell)
    corpus = open_documents(cell["target"], cell["document_column"])
    halves = draw_halves(corpus, cell["seed"], cell["labelled_share"])
    documents = pairs_by_document(corpus)
    encoder, trained_on = _load_or_train_encoder(cell, documents, halves, folder)
    shared = {
        "n_trained": len(trained_on),
        "epochs": encoder.epochs,
        "next_found": encoder.validation_[-1].score.value / 100,
    }
    rows = _attack_rows(cell, encoder, documents, trained_on, halves, shared)
    rows = _with_null(rows, _null_rows(cell, encoder, documents, trained_on, halves))
    return with_document_baseline(rows, corpus, halves)


def _null_rows(
    cell: Cell,
    encoder: Any,
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
) -> list[Row]:
    """Attack books not trained on, half of them called members at random; return the rows.

    As many of their pairs are left out as training holds out, and pairs that also occur in books
    that were trained on. Empty if too few books or pairs are left.
    """
    dealt = draw_null_halves(halves, cell["seed"], cell["labelled_share"])
    if dealt is None:
        return []
    rows, strangers = dealt
    unknown = [[pair for pair in documents[i] if pair not in trained_on] for i in rows.tolist()]
    called = [pair for i in np.flatnonzero(strangers.members).tolist() for pair in unknown[i]]
    try:
        return _attack_rows(cell, encoder, unknown, _training_pairs(called, encoder), strangers, {})
    except InvalidInputError:  # the labelled or remaining pairs are all of one kind
        return []


def _with_null(rows: Sequence[Row], strangers: Sequence[Row]) -> list[Row]:
    """Return rows with the null AUC added: the same attack on books that were not trained on."""

    def key(row: Row) -> tuple[Any, ...]:
        """Return the entries that identify a row's attack and group."""
        return tuple(row[name] for name in ("level", "similarity", "decile", "labels"))

    areas = {key(row): {NULL: row.scores["auc"]} for row in strangers if row["labels"] == "true"}
    return [replace(row, scores={**row.scores, **areas.get(key(row), {})}) for row in rows]


def _attack_rows(
    cell: Cell,
    encoder: Any,
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
    shared: dict[str, Any],
) -> list[Row]:
    """Run each attack on pairs and on books of both halves; return rows, overall and by decile."""
    pairs, members = _comparable_pairs(documents, trained_on, halves, cell)
    tenths = frequency_deciles(-rarity(pairs.texts, pairs.first, pairs.second), seed=cell["seed"])
    vectors = encoder.encode(list(pairs.texts))
    labelled = halves.labelled[pairs.documents]
    groups = np.concatenate([np.zeros(len(members), dtype=np.int64), tenths])

    @cache
    def levels(name: str) -> list[Scored]:
        """Score all pairs by an attack; return scores overall and by decile, and means by book."""
        attack = find(SENTENCE_ATTACKS, name, "similarity").kind
        scores = cross_fitted_scores(attack, vectors, pairs, members, labelled)
        every = Scored(
            np.tile(scores, 2),
            np.tile(members, 2),
            np.tile(labelled, 2),
            np.tile(pairs.documents, 2),
            groups,
        )
        means, books, of_group, places = mean_by_book(every.scores, every.units, every.groups)
        by_book = Scored(means, every.members[places], every.labelled[places], books, of_group)
        return [every, by_book]

    own = [ReferenceScores(SENTENCES_OWN, each.scores) for each in levels(SENTENCES_OWN)]
    rows = []
    for name in cell["similarities"]:
        for level, scored, beside in zip(LEVELS, levels(name), own, strict=True):
            told = {"level": level, "similarity": name, **shared}
            other = None if name == SENTENCES_OWN else beside
            rows += group_rows(scored, {}, cell["seed"], beside=other, **told)
    return rows


def _load_or_train_encoder(
    cell: Cell, documents: Sequence[Sequence[tuple[str, str]]], halves: Halves, folder: Path
) -> tuple[Any, set[tuple[str, str]]]:
    """Load or train an encoder on the members' pairs; return it with the pairs it learned."""
    pairs = [pair for i in np.flatnonzero(halves.members).tolist() for pair in documents[i]]
    told = {name: cell[name] for name in ("target", "document_column", "contents", "seed")}

    def fit(encoder: Any, checkpoint: str) -> Any:
        """Train an encoder on the members' pairs of sentences, and return it."""
        return encoder.fit_pairs(pairs, checkpoint_dir=checkpoint)

    encoder = trained_encoder(cell["encoder"], cell["encoder_settings"], told, fit, folder)
    return encoder, _training_pairs(pairs, encoder)


def _training_pairs(pairs: Sequence[tuple[str, str]], encoder: Any) -> set[tuple[str, str]]:
    """Return the set of pairs that an encoder learns from, without its validation pairs."""
    n_held_out = min(encoder.n_validation, len(pairs) // 10)
    rows, _ = ContextPairs.of(pairs).split(n_held_out, encoder.seed)
    return {pairs[i] for i in rows}


def _comparable_pairs(
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
    cell: Cell,
) -> tuple[BookPairs, NDArray[np.bool_]]:
    """Draw pairs that occur in one half only; return them, and which were trained on.

    Left out are pairs of a member's book that were not trained on, pairs that occur in books of
    both halves, and attacked pairs that also occur in a labelled book, which an attacker could
    memorise.
    """
    outside = {pair for i in np.flatnonzero(~halves.members).tolist() for pair in documents[i]}
    known = {pair for i in np.flatnonzero(halves.labelled).tolist() for pair in documents[i]}
    rng = np.random.default_rng([cell["seed"], 15])
    chosen, owners = [], []
    for i, pairs in enumerate(documents):
        is_inside = bool(halves.members[i])
        fit = [
            p for p in pairs if (p in trained_on) is is_inside and (p in outside) is not is_inside
        ]
        drawn = sorted(rng.permutation(len(fit))[: cell["n_pairs"]].tolist())
        kept = [fit[k] for k in drawn if halves.labelled[i] or fit[k] not in known]
        chosen += kept
        owners += [i] * len(kept)
    if not chosen:
        raise InvalidInputError(
            "No two consecutive sentences occur in one half alone. Give running text."
        )
    found = BookPairs.of(chosen, owners)
    return found, halves.members[found.documents]


def pairs_by_document(corpus: Corpus) -> list[list[tuple[str, str]]]:
    """Split each document into pairs of consecutive sentences; a single sentence makes none.

    Raises
    ------
    InvalidInputError
        No document has two sentences in a row.
    """
    found = []
    for document in corpus.documents:
        try:
            found.append(pairs_of(replace(corpus, documents=(document,))))
        except InvalidInputError:
            found.append([])
    if not any(found):
        pairs_of(corpus)  # raises an error that says what is wrong
    return found
