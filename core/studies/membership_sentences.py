"""Which pairs of sentences, and which books, a dual encoder was trained on.

Implements Song & Raghunathan (2020), §6.4 and Fig. 5: fixed and learned similarity, by pairs and by
books, by how rare their words are. Beside each row stands what the same attack finds of books that
the encoder was not trained on, half of which are called members by lot before anything is drawn or
learned of them. Nothing is trained for that: it costs the scoring of half as many books again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.sentences.registry import PAPERS_OWN, SENTENCE_ATTACKS
from core.attacks.membership.sentences.scoring import BookPairs, by_book, rarity, scored_apart
from core.attacks.membership.words.comparable import deciles
from core.encoders.dual.context_pairs import ContextPairs
from core.errors import InvalidInputError
from core.registry import find
from core.specs import setting
from core.studies.membership_classifier_rows import NULL
from core.studies.membership_halves import (
    Beside,
    Halves,
    Scored,
    check_contents,
    contents_of,
    deal_strangers,
    draw_halves,
    group_rows,
    open_documents,
    settings_told,
    trained_encoder,
    with_blind_of_documents,
)
from core.studies.membership_pairs import pairs_by_document
from core.studies.membership_tables import sentences_markdown as markdown
from core.studies.rows import Cell, Row

__all__ = ["LEVELS", "SENTENCE_ENCODERS", "MembershipSentencesStudy", "markdown", "measure"]

SENTENCE_ENCODERS = ("dual_lstm", "dual_transformer")

LEVELS = ("pair", "book")
"""What is called a member: two consecutive sentences, or a document by the mean of its pairs."""


@dataclass(frozen=True, kw_only=True)
class MembershipSentencesStudy:
    """Consecutive sentences and books against dual encoders trained on half of the books."""

    target: str = setting("bundled", "a corpus of documents, half of which are trained on")
    document_column: str = setting("", "column that tells which rows are one document")
    encoders: tuple[str, ...] = setting(
        SENTENCE_ENCODERS, "dual encoders", choices=SENTENCE_ENCODERS
    )
    similarities: tuple[str, ...] = setting(
        tuple(SENTENCE_ATTACKS), "attacks by name", choices=tuple(SENTENCE_ATTACKS)
    )
    dimension: int = setting(0, "numbers in a vector; 0 for each encoder's own", low=0, high=8192)
    epochs: tuple[int, ...] = setting(
        (0,), "passes over the pairs, one encoder each; 0 for each encoder's own", low=0, high=1000
    )
    learning_rate: float = setting(0.0, "of Adam; 0 for each encoder's own", low=0.0, high=1.0)
    n_validation: int = setting(200, "pairs held out of training, at most a tenth", low=2)
    n_pairs: int = setting(400, "pairs of a document that are scored, at most", low=1)
    labelled_share: float = setting(
        0.1, "share of the documents that the attacker knows", low=0.01, high=0.5, paper="SR20"
    )
    seeds: tuple[int, ...] = setting((0, 1, 2), "one draw of the halves each", low=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have."""
        return (self.document_column,) if self.document_column else ()

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
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
                "encoder_settings": settings_told(encoder, self._given(encoder, epochs, seed)),
                "seed": seed,
            }
            for encoder in self.encoders
            for epochs in self.epochs
            for seed in self.seeds
        ]

    def _given(self, encoder: str, epochs: int, seed: int) -> dict[str, Any]:
        """Return the settings that are not an encoder's own; of 0 they are its own."""
        asked = {"epochs": epochs, "dimension": self.dimension, "learning_rate": self.learning_rate}
        if encoder == "dual_transformer":
            asked["feed_forward"] = 4 * self.dimension
        given = {name: value for name, value in asked.items() if value}
        return {"n_validation": self.n_validation, "seed": seed, **given}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a dual encoder on half of the documents and attack pairs and books of both halves."""
    check_contents(cell)
    corpus = open_documents(cell["target"], cell["document_column"])
    halves = draw_halves(corpus, cell["seed"], cell["labelled_share"])
    documents = pairs_by_document(corpus)
    encoder, trained_on = _trained(cell, documents, halves, folder)
    shared = {
        "n_trained": len(trained_on),
        "epochs": encoder.epochs,
        "next_found": encoder.validation_[-1].score.value / 100,
    }
    rows = _attacked(cell, encoder, documents, trained_on, halves, shared)
    rows = _with_null(rows, _strangers(cell, encoder, documents, trained_on, halves))
    return with_blind_of_documents(rows, corpus, halves)


def _strangers(
    cell: Cell,
    encoder: Any,
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
) -> list[Row]:
    """Return the rows of each attack on books that were not trained on, some called members.

    Of these as many pairs are left out as training holds out, and pairs of all that stand in books
    that were trained on. None where too few books or pairs are left.
    """
    dealt = deal_strangers(halves, cell["seed"], cell["labelled_share"])
    if dealt is None:
        return []
    rows, strangers = dealt
    unknown = [[pair for pair in documents[i] if pair not in trained_on] for i in rows.tolist()]
    called = [pair for i in np.flatnonzero(strangers.members).tolist() for pair in unknown[i]]
    try:
        return _attacked(cell, encoder, unknown, _not_held_out(called, encoder), strangers, {})
    except InvalidInputError:  # all that is labelled, or left, is of one kind
        return []


def _with_null(rows: Sequence[Row], strangers: Sequence[Row]) -> list[Row]:
    """Return rows with the AUC that the same attack has among books that were not trained on."""

    def told(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("level", "similarity", "decile", "labels"))

    areas = {told(row): {NULL: row.scores["auc"]} for row in strangers if row["labels"] == "true"}
    return [replace(row, scores={**row.scores, **areas.get(told(row), {})}) for row in rows]


def _attacked(
    cell: Cell,
    encoder: Any,
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
    shared: dict[str, Any],
) -> list[Row]:
    """Return the rows of each attack on pairs and books of either half."""
    pairs, members = _comparable(documents, trained_on, halves, cell)
    tenths = deciles(-rarity(pairs.texts, pairs.first, pairs.second), seed=cell["seed"])
    vectors = encoder.encode(list(pairs.texts))
    labelled = halves.labelled[pairs.documents]
    groups = np.concatenate([np.zeros(len(members), dtype=np.int64), tenths])

    @cache
    def levels(name: str) -> list[Scored]:
        """Return the scores of all pairs and again of those in tenths, and of books in each."""
        attack = find(SENTENCE_ATTACKS, name, "similarity").kind
        scores = scored_apart(attack, vectors, pairs, members, labelled)
        every = Scored(
            np.tile(scores, 2), np.tile(members, 2), np.tile(labelled, 2),
            np.tile(pairs.documents, 2), groups,
        )  # fmt: skip
        return [every, _books(every)]

    own = [Beside(PAPERS_OWN, each.scores) for each in levels(PAPERS_OWN)]
    rows = []
    for name in cell["similarities"]:
        for level, scored, beside in zip(LEVELS, levels(name), own, strict=True):
            told = {"level": level, "similarity": name, **shared}
            other = None if name == PAPERS_OWN else beside
            rows += group_rows(scored, {}, cell["seed"], beside=other, **told)
    return rows


def _books(scored: Scored) -> Scored:
    """Return the mean score of each book within each group."""
    means, documents, groups, places = by_book(scored.scores, scored.units, scored.groups)
    return Scored(means, scored.members[places], scored.labelled[places], documents, groups)


def _trained(
    cell: Cell, documents: Sequence[Sequence[tuple[str, str]]], halves: Halves, folder: Path
) -> tuple[Any, set[tuple[str, str]]]:
    """Return the encoder, and the pairs that it was trained on: those held out are none."""
    pairs = [pair for i in np.flatnonzero(halves.members).tolist() for pair in documents[i]]
    told = {name: cell[name] for name in ("target", "document_column", "contents", "seed")}

    def fit(encoder: Any, checkpoint: str) -> Any:
        return encoder.fit_pairs(pairs, checkpoint_dir=checkpoint)

    encoder = trained_encoder(cell["encoder"], cell["encoder_settings"], told, fit, folder)
    return encoder, _not_held_out(pairs, encoder)


def _not_held_out(pairs: Sequence[tuple[str, str]], encoder: Any) -> set[tuple[str, str]]:
    """Return pairs without those that training on them holds out."""
    n_held_out = min(encoder.n_validation, len(pairs) // 10)
    rows, _ = ContextPairs.of(pairs).split(n_held_out, encoder.seed)
    return {pairs[i] for i in rows}


def _comparable(
    documents: Sequence[Sequence[tuple[str, str]]],
    trained_on: set[tuple[str, str]],
    halves: Halves,
    cell: Cell,
) -> tuple[BookPairs, NDArray[np.bool_]]:
    """Return pairs of either half, and which were trained on.

    Left out are pairs of a member's book that were not trained on, pairs that stand in books of
    both halves, and those under attack that stand in a labelled book too: who knows that book by
    heart knows them.
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
            "No two consecutive sentences stand in one half alone. Give running text."
        )
    found = BookPairs.of(chosen, owners)
    return found, halves.members[found.documents]
