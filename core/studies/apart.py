"""Targets apart from what is known: none of them nearly repeats a text that somebody learnt from.

Every study that attacks texts draws them from what is left here, so that no figure is of texts that
the attacker knows almost word for word. docs/decisions/0016-texts-that-nearly-repeat-others.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.corpora import Sentences
from core.corpora.near_duplicates import THRESHOLD, near_duplicates
from core.corpora.splits import come_in_documents
from core.errors import InvalidInputError
from core.specs import setting

__all__ = ["LEAST_NEAR", "Apart", "documents_or_none", "keep_apart", "near_setting"]

LEAST_NEAR = 0.05
"""Share in common from which texts can be taken to repeat each other: of fewer, some are missed."""


@dataclass(frozen=True)
class Apart:
    """Sentences that may be attacked, and how many may not.

    Attributes
    ----------
    sentences : Sentences
        Those that repeat nothing that is known.
    n_near_duplicates : int
        Those that were dropped: different documents share sentences (boilerplate, quotations),
        word for word or nearly.
    documents : tuple of str or None
        The document of each that is left, where several came from one; else each is its own.
    """

    sentences: Sentences
    n_near_duplicates: int
    documents: tuple[str, ...] | None

    def take(self, rows: Sequence[int]) -> Apart:
        """Return some of the sentences; what was dropped, and what documents are, stays."""
        kept = None if self.documents is None else tuple(self.documents[i] for i in rows)
        return Apart(self.sentences.take(list(rows)), self.n_near_duplicates, kept)


def near_setting() -> Any:
    """Declare the setting of a study that says from where on a text repeats another."""
    return setting(
        THRESHOLD,
        "share of runs of three words in common from which a text nearly repeats a known one, and "
        "is not attacked",
        low=LEAST_NEAR,
        high=1,
        flag="near-duplicates",
    )


def keep_apart(held: Sentences, known: Iterable[str], near: float = THRESHOLD) -> Apart:
    """Return those of the sentences that repeat no known text, not even nearly.

    Parameters
    ----------
    known : iterable of str
        All that anybody learns from, whose attack is scored on the sentences.
    near : float
        See `core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        None is left.
    """
    dropped = near_duplicates(held.texts, known, near)
    left = held.take([i for i in range(len(held)) if i not in dropped])
    if dropped and not left:
        raise InvalidInputError(
            f"Each of the {len(dropped):,} texts that could be attacked nearly repeats one that "
            "the attacker knows. Give texts of another source, or raise --near-duplicates."
        )
    return Apart(left, len(dropped), documents_or_none(left, held))


def documents_or_none(sentences: Sentences, among: Sentences) -> tuple[str, ...] | None:
    """Return the document of each sentence, or None where hardly one of `among` shares its own."""
    return sentences.document_ids if come_in_documents(among.document_ids) else None
