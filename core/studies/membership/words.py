"""The word-vector membership study: which windows of words the vectors were trained on.

Implements Song & Raghunathan (2020), §6.4 and Fig. 4. A control encoder is
trained on both halves, so that there are no non-members: if an attack succeeds on it too, the
halves differ in more than membership.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.registry import WORD_ATTACKS, WORDS_OWN
from leakscope.core.attacks.membership.words.attack import NO_VECTOR, WordVectors
from leakscope.core.attacks.membership.words.windows import (
    NumberedWords,
    Windows,
    balanced_mask,
    extract_windows,
    frequent_in_both,
    number_words,
    windows_in_both,
    word_deciles,
)
from leakscope.core.corpora import split_sentences
from leakscope.core.registry import find
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import setting
from leakscope.core.studies.membership.halves import (
    Halves,
    ReferenceScores,
    Scored,
    all_encoder_settings,
    check_contents,
    contents_of,
    draw_halves,
    group_rows,
    open_documents,
    trained_encoder,
    with_document_baseline,
)
from leakscope.core.studies.membership.tables import words_markdown

markdown = words_markdown

WORD_ENCODERS = ("word2vec", "fasttext", "glove")

N_OF_ALL = 5
"""How many times more windows are drawn overall than per decile."""


@dataclass(frozen=True, kw_only=True)
class MembershipWordsStudy:
    """Settings of the study: word vectors trained on half of a corpus, and attacks."""

    target: str = setting("bundled", "a corpus of documents; models are trained on half of them")
    document_column: str = setting("", "column whose value groups rows into documents")
    encoders: tuple[str, ...] = setting(WORD_ENCODERS, "word vectors", choices=WORD_ENCODERS)
    similarities: tuple[str, ...] = setting(
        tuple(WORD_ATTACKS), "attacks by name", choices=tuple(WORD_ATTACKS)
    )
    n_words: tuple[int, ...] = setting((5, 11), "words per window, odd", low=3, high=99)
    compared: str = setting(
        "shared",
        "shared: equally many windows of words in both halves; known: all known words",
        choices=("shared", "known"),
    )
    n_windows: int = setting(2000, "most windows per decile and half", low=10)
    labelled_share: float = setting(
        0.1, "share of the documents that the attacker knows", low=0.01, high=0.5, paper="SR20"
    )
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one draw of the halves per seed", low=0)
    has_control: bool = setting(
        True, "also train on both halves, for the first seed", flag="control"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table must have: that of documents, if given."""
        return (self.document_column,) if self.document_column else ()

    def cells(self) -> list[Cell]:
        """Return one cell per encoder and draw, and a control trained on both halves."""
        shared = {
            "study": "membership-words",
            "target": self.target,
            "document_column": self.document_column,
            "contents": contents_of(self.target, self.document_column),
            "similarities": list(self.similarities),
            "n_words": list(self.n_words),
            "compared": self.compared,
            "n_windows": self.n_windows,
            "labelled_share": self.labelled_share,
        }
        draws = [("half", seed) for seed in self.seeds]
        draws += [("both", seed) for seed in self.seeds[:1] if self.has_control]
        return [
            {
                **shared,
                "encoder": encoder,
                "encoder_settings": all_encoder_settings(encoder, {}) | {"seed": seed},
                "trained_on": trained_on,
                "seed": seed,
            }
            for encoder in self.encoders
            for trained_on, seed in draws
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Load or train word vectors on half of the documents; attack windows of both halves."""
    check_contents(cell)
    corpus = open_documents(cell["target"], cell["document_column"])
    halves = draw_halves(corpus, cell["seed"], cell["labelled_share"])
    documents, numbered = _numbered_documents(cell["target"], cell["document_column"])
    encoder = _load_or_train_vectors(cell, documents, halves, folder)
    vectors = WordVectors.of(numbered.words, encoder.words_, encoder.vectors_)
    inside, outside = numbered.counts(halves.members), numbered.counts(~halves.members)
    is_used = inside >= encoder.min_count
    if cell["compared"] == "shared":
        is_used = frequent_in_both(inside, outside, encoder.min_count)
    vectors = vectors.only(is_used)
    rows = []
    for n_words in cell["n_words"]:
        windows = _comparable_windows(extract_windows(numbered, n_words), vectors, halves, cell)
        rows += _attack_rows(windows, vectors, inside + outside, halves, cell, n_words)
    return with_document_baseline(rows, corpus, halves)


@lru_cache(maxsize=1)
def _numbered_documents(
    target: str, document_column: str
) -> tuple[tuple[tuple[str, ...], ...], NumberedWords]:
    """Read a corpus; return the sentences of each document, and their words as numbers."""
    corpus = open_documents(target, document_column)
    documents = tuple(
        (document.text,)
        if corpus.is_split
        else tuple(split_sentences(document.text, corpus.language))
        for document in corpus.documents
    )
    return documents, number_words(documents)


def _load_or_train_vectors(
    cell: Cell, documents: Sequence[Sequence[str]], halves: Halves, folder: Path
) -> Any:
    """Load a cell's word vectors, or train them on the member half, or both for the control."""
    is_read = halves.members | (cell["trained_on"] == "both")
    told = {
        name: cell[name] for name in ("target", "document_column", "contents", "trained_on", "seed")
    }

    def fit(encoder: Any, checkpoint: str) -> Any:
        """Train an encoder on the sentences of the chosen documents, and return it."""
        return encoder.fit([s for i in np.flatnonzero(is_read).tolist() for s in documents[i]])

    return trained_encoder(cell["encoder"], cell["encoder_settings"], told, fit, folder)


def _comparable_windows(
    windows: Windows, vectors: WordVectors, halves: Halves, cell: Cell
) -> Windows:
    """Select the windows to compare: scorable, in one half only, balanced by centre word."""
    has_score = vectors.rows[windows.centres] != NO_VECTOR
    around = (vectors.rows[windows.contexts] != NO_VECTOR) & (
        windows.contexts != windows.centres[:, None]
    )
    windows = windows.take(has_score & around.any(1))
    windows = windows.take(~windows_in_both(windows, halves.members[windows.documents]))
    if cell["compared"] == "known":
        return windows
    kept = halves.labelled[windows.documents]  # labelled windows need not be balanced
    scored = np.flatnonzero(~kept)
    centres, documents = windows.centres[scored], windows.documents[scored]
    kept[scored] = balanced_mask(centres, halves.members[documents], seed=cell["seed"])
    return windows.take(kept)


def _attack_rows(
    windows: Windows,
    vectors: WordVectors,
    counts: NDArray[np.int64],
    halves: Halves,
    cell: Cell,
    n_words: int,
) -> list[Row]:
    """Run each attack on windows of one length; return rows, overall and by decile."""
    seed = cell["seed"]
    by_word = word_deciles(windows.centres, counts, seed=seed)
    drawn, groups = _sample_windows(windows, by_word, halves, cell["n_windows"], seed)
    is_known = halves.labelled[windows.documents[drawn]]
    # An attack could memorise labelled windows; windows with equal words occur in one half only.
    is_new = is_known | ~windows_in_both(windows.take(drawn), is_known)
    drawn, groups = drawn[is_new], groups[is_new]
    chosen = windows.take(drawn)
    members, labelled = halves.members[chosen.documents], halves.labelled[chosen.documents]
    facts = {
        group: {"rarest": int(own.min()), "most_frequent": int(own.max())}
        for group in np.unique(groups).tolist()
        for own in [counts[chosen.centres[groups == group]]]
    }
    learns = labelled & (groups > 0)

    @cache
    def scored(name: str) -> tuple[Any, NDArray[np.float64]]:
        """Fit an attack on labelled windows, and score all chosen ones; once per attack."""
        attack = find(WORD_ATTACKS, name, "similarity").kind()
        attack.fit(vectors, chosen.take(learns), members[learns])
        return attack, attack.score(chosen)

    own = ReferenceScores(WORDS_OWN, scored(WORDS_OWN)[1])
    rows = []
    for name in cell["similarities"]:
        attack, scores = scored(name)
        found = Scored(scores, members, labelled, chosen.documents, groups)
        learned = ("n_directions_", "sampling_")
        shared = {"similarity": name, "window": n_words} | {
            each.rstrip("_"): getattr(attack, each) for each in learned if hasattr(attack, each)
        }
        beside = None if name == WORDS_OWN else own
        rows += group_rows(found, facts, seed, beside=beside, **shared)
    return rows


def _sample_windows(
    windows: Windows, by_word: NDArray[np.int64], halves: Halves, n_windows: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sample windows of each decile and of all; return their indices and their groups.

    At most equally many members and non-members, labelled and scored.
    """
    order = np.random.default_rng([seed, 14]).permutation(len(windows))
    kinds = 2 * halves.members[windows.documents] + halves.labelled[windows.documents]
    rows, groups = [], []
    for group in range(11):
        own = order if group == 0 else order[by_word[order] == group]
        most = n_windows * (N_OF_ALL if group == 0 else 1)
        for kind in range(4):
            taken = own[kinds[own] == kind][:most]
            rows.append(taken)
            groups.append(np.full(len(taken), group))
    return np.concatenate(rows), np.concatenate(groups)
