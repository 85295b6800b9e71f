"""Decontamination: remove target sentences that nearly repeat a text the attacker learned from.

Every study that attacks texts draws them from what is left here, so that no figure is of texts that
the attacker knows almost word for word. docs/decisions/0016-texts-that-nearly-repeat-others.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leakscope.core.corpora import Sentences
from leakscope.core.corpora.near_duplicates import THRESHOLD, near_duplicates
from leakscope.core.corpora.splits import share_documents
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import setting

LEAST_NEAR = 0.05
"""The lowest near-duplicate threshold: below it, some near-duplicates are missed."""


@dataclass(frozen=True)
class Decontaminated:
    """Sentences to attack without near-duplicates of known texts, and how many were dropped.

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

    def take(self, rows: Sequence[int]) -> Decontaminated:
        """Return the sentences at the given indices, with the number of dropped ones unchanged."""
        kept = None if self.documents is None else tuple(self.documents[i] for i in rows)
        return Decontaminated(self.sentences.take(list(rows)), self.n_near_duplicates, kept)


def near_duplicate_setting() -> Any:
    """Return the field that declares a study's `--near-duplicates`, the overlap to drop from."""
    return setting(
        THRESHOLD,
        "share of runs of three words in common from which a text nearly repeats a known one, and "
        "is not attacked",
        low=LEAST_NEAR,
        high=1,
        flag="near-duplicates",
    )


def drop_near_duplicates(
    held: Sentences, known: Iterable[str], near: float = THRESHOLD
) -> Decontaminated:
    """Return the sentences that nearly repeat no known text; raise if none is left.

    Parameters
    ----------
    known : iterable of str
        Every text that encoder or attacks learn from.
    near : float
        See `leakscope.core.corpora.near_duplicates`.

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
    return Decontaminated(left, len(dropped), documents_or_none(left, held))


def documents_or_none(sentences: Sentences, among: Sentences) -> tuple[str, ...] | None:
    """Return each sentence's document; None if documents in `among` rarely hold two sentences."""
    return sentences.document_ids if share_documents(among.document_ids) else None
