"""Which passages word vectors were trained on, by how rare the word in the middle is.

Implements Song & Raghunathan (2020), §6.4 and Fig. 4. Beside each encoder one is trained on both
halves, in which nobody is a member: where an attack finds something there, too, the halves differ
in more than membership.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.words.comparable import (
    matched,
    on_both_sides,
    twins,
    word_deciles,
)
from core.attacks.membership.words.registry import PAPERS_OWN, WORD_ATTACKS
from core.attacks.membership.words.vectors import NO_VECTOR, WordVectors
from core.attacks.membership.words.windows import (
    NumberedWords,
    Windows,
    number_words,
    windows_of,
)
from core.corpora import split_sentences
from core.registry import find
from core.specs import setting
from core.studies.membership_halves import (
    Beside,
    Halves,
    Scored,
    check_contents,
    contents_of,
    draw_halves,
    group_rows,
    open_documents,
    settings_told,
    trained_encoder,
    with_blind_of_documents,
)
from core.studies.membership_tables import words_markdown as markdown
from core.studies.rows import Cell, Row

__all__ = ["WORD_ENCODERS", "MembershipWordsStudy", "markdown", "measure"]

WORD_ENCODERS = ("word2vec", "fasttext", "glove")

N_OF_ALL = 5
"""Times as many windows stand for all as for a decile."""


@dataclass(frozen=True, kw_only=True)
class MembershipWordsStudy:
    """Windows of words against word vectors that are trained on half of a corpus."""

    target: str = setting("bundled", "a corpus of documents, half of which are trained on")
    document_column: str = setting("", "column that tells which rows are one document")
    encoders: tuple[str, ...] = setting(WORD_ENCODERS, "word vectors", choices=WORD_ENCODERS)
    similarities: tuple[str, ...] = setting(
        tuple(WORD_ATTACKS), "attacks by name", choices=tuple(WORD_ATTACKS)
    )
    n_words: tuple[int, ...] = setting((5, 11), "words of a window, odd", low=3, high=99)
    compared: str = setting(
        "shared",
        "windows of words on both sides, as many of each word; or of all known words",
        choices=("shared", "known"),
    )
    n_windows: int = setting(2000, "windows of a decile, of either half, at most", low=10)
    labelled_share: float = setting(
        0.1, "share of the documents that the attacker knows", low=0.01, high=0.5, paper="SR20"
    )
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one draw of the halves each", low=0)
    has_control: bool = setting(
        True, "train on both halves as well, for the first seed", flag="control"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have."""
        return (self.document_column,) if self.document_column else ()

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
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
                "encoder_settings": settings_told(encoder, {}) | {"seed": seed},
                "trained_on": trained_on,
                "seed": seed,
            }
            for encoder in self.encoders
            for trained_on, seed in draws
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train word vectors on half of the documents and attack windows of both halves."""
    check_contents(cell)
    corpus = open_documents(cell["target"], cell["document_column"])
    halves = draw_halves(corpus, cell["seed"], cell["labelled_share"])
    documents, numbered = _numbered(cell["target"], cell["document_column"])
    encoder = _trained(cell, documents, halves, folder)
    vectors = WordVectors.of(numbered.words, encoder.words_, encoder.vectors_)
    inside, outside = numbered.counts(halves.members), numbered.counts(~halves.members)
    is_used = inside >= encoder.min_count
    if cell["compared"] == "shared":
        is_used = on_both_sides(inside, outside, encoder.min_count)
    vectors = vectors.only(is_used)
    rows = []
    for n_words in cell["n_words"]:
        windows = _comparable(windows_of(numbered, n_words), vectors, halves, cell)
        rows += _attacked(windows, vectors, inside + outside, halves, cell, n_words)
    return with_blind_of_documents(rows, corpus, halves)


@lru_cache(maxsize=1)
def _numbered(
    target: str, document_column: str
) -> tuple[tuple[tuple[str, ...], ...], NumberedWords]:
    """Return the sentences of each document, and their words by number."""
    corpus = open_documents(target, document_column)
    documents = tuple(
        (document.text,)
        if corpus.is_split
        else tuple(split_sentences(document.text, corpus.language))
        for document in corpus.documents
    )
    return documents, number_words(documents)


def _trained(cell: Cell, documents: Sequence[Sequence[str]], halves: Halves, folder: Path) -> Any:
    """Return the word vectors of a half, or of both."""
    is_read = halves.members | (cell["trained_on"] == "both")
    told = {
        name: cell[name] for name in ("target", "document_column", "contents", "trained_on", "seed")
    }

    def fit(encoder: Any, checkpoint: str) -> Any:
        return encoder.fit([s for i in np.flatnonzero(is_read).tolist() for s in documents[i]])

    return trained_encoder(cell["encoder"], cell["encoder_settings"], told, fit, folder)


def _comparable(windows: Windows, vectors: WordVectors, halves: Halves, cell: Cell) -> Windows:
    """Return the windows that may be held against each other."""
    has_score = vectors.rows[windows.centres] != NO_VECTOR
    around = (vectors.rows[windows.contexts] != NO_VECTOR) & (
        windows.contexts != windows.centres[:, None]
    )
    windows = windows.take(has_score & around.any(1))
    windows = windows.take(~twins(windows, halves.members[windows.documents]))
    if cell["compared"] == "known":
        return windows
    kept = halves.labelled[windows.documents]  # what is learned of need not match
    scored = np.flatnonzero(~kept)
    centres, documents = windows.centres[scored], windows.documents[scored]
    kept[scored] = matched(centres, halves.members[documents], seed=cell["seed"])
    return windows.take(kept)


def _attacked(
    windows: Windows,
    vectors: WordVectors,
    counts: NDArray[np.int64],
    halves: Halves,
    cell: Cell,
    n_words: int,
) -> list[Row]:
    """Return the rows of each attack on windows of one length."""
    seed = cell["seed"]
    by_word = word_deciles(windows.centres, counts, seed=seed)
    drawn, groups = _sampled(windows, by_word, halves, cell["n_windows"], seed)
    is_known = halves.labelled[windows.documents[drawn]]
    # Whoever knows labelled windows by heart knows these: they stand in one half alone.
    is_new = is_known | ~twins(windows.take(drawn), is_known)
    drawn, groups = drawn[is_new], groups[is_new]
    chosen = windows.take(drawn)
    members, labelled = halves.members[chosen.documents], halves.labelled[chosen.documents]
    facts = {
        group: _frequencies(counts[chosen.centres[groups == group]])
        for group in np.unique(groups).tolist()
    }
    learns = labelled & (groups > 0)

    @cache
    def scored(name: str) -> tuple[Any, NDArray[np.float64]]:
        attack = find(WORD_ATTACKS, name, "similarity").kind()
        attack.fit(vectors, chosen.take(learns), members[learns])
        return attack, attack.score(chosen)

    own = Beside(PAPERS_OWN, scored(PAPERS_OWN)[1])
    rows = []
    for name in cell["similarities"]:
        attack, scores = scored(name)
        found = Scored(scores, members, labelled, chosen.documents, groups)
        shared = {"similarity": name, "window": n_words, **_chosen(attack)}
        beside = None if name == PAPERS_OWN else own
        rows += group_rows(found, facts, seed, beside=beside, **shared)
    return rows


def _chosen(attack: Any) -> dict[str, Any]:
    """Return what an attack chose on labelled windows."""
    names = ("n_directions_", "sampling_")
    return {name.rstrip("_"): getattr(attack, name) for name in names if hasattr(attack, name)}


def _frequencies(counts: NDArray[np.int64]) -> dict[str, int]:
    """Return how often the centre words of a decile stand in the whole corpus."""
    return {"rarest": int(counts.min()), "most_frequent": int(counts.max())}


def _sampled(
    windows: Windows, by_word: NDArray[np.int64], halves: Halves, n_windows: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return windows of each decile, and of all together, with the group that they stand in.

    As many at most of members and of others, labelled or scored.
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
