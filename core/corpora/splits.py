"""Split a corpus into parts without shared documents: at random, by class, or held out."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain, zip_longest

import numpy as np

from leakscope.core.corpora.document import Document
from leakscope.core.errors import InvalidInputError

LEAST_ALONE = 0.9
"""Documents per text from which texts count as single sentences, not as parts of documents."""

MOST_APART = 0.25
"""Maximum share of the texts in documents that are held out or excluded with them."""

LEAST_DOCUMENTS = 20
"""Minimum number of held-out documents, if there are enough: each gives at most a twentieth."""


def split_by_document(
    documents: Sequence[Document], fractions: Sequence[float], seed: int = 0, *, name: str
) -> tuple[tuple[Document, ...], ...]:
    """Split documents at random into parts of given fractions; equal texts stay together.

    Documents with the same text fall on the same side. Within a part, documents keep their
    order. Corò (2022) splits by paragraph, so that one article may lie on both sides; here none
    does.

    Parameters
    ----------
    fractions : sequence of float
        Positive shares of the distinct texts; their sum is 1.
    seed : int
        The same seed and content give the same parts.
    name : str
        Name of their corpus, for messages.

    Raises
    ------
    InvalidInputError
        Fractions that are not shares, or too few documents to give each part one.
    """
    if not all(f > 0 for f in fractions) or not math.isclose(sum(fractions), 1.0):
        raise InvalidInputError(
            f"fractions must be positive and sum to 1, got {tuple(fractions)}; e.g. (0.8, 0.2)."
        )
    groups: dict[str, int] = {}
    for document in documents:
        groups.setdefault(document.normalised_text, len(groups))
    bounds = np.rint(np.cumsum(fractions) * len(groups)).astype(int)
    if np.any(np.diff(bounds, prepend=0) < 1):
        raise InvalidInputError(
            f"Corpus {name!r} has {len(groups)} distinct documents, too few for parts of "
            f"{tuple(fractions)}. Give more documents or fewer parts."
        )
    rank = np.random.default_rng(seed).permutation(len(groups))
    part_of = np.searchsorted(bounds, rank, side="right")
    parts: list[list[Document]] = [[] for _ in fractions]
    for document in documents:
        parts[part_of[groups[document.normalised_text]]].append(document)
    return tuple(map(tuple, parts))


def split_by_class(
    documents: Sequence[Document],
    classes: Collection[str],
    leave_out: Collection[str] = (),
    *,
    name: str,
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """Split documents into those of the given classes and those of all other classes.

    Implements step 1 of Corò (2022), Figure 4.4. Documents without a class belong to neither
    side, nor does what `leave_out` names (there, General and World, which overlap with all).
    A text that appears on both sides stays in-domain only.

    Raises
    ------
    InvalidInputError
        A class that the corpus does not have, or a side that would be empty.
    """
    if isinstance(classes, str) or isinstance(leave_out, str):
        raise InvalidInputError("classes and leave_out take lists of names, got a string.")
    labels = tuple(dict.fromkeys(d.label for d in documents if d.label is not None))
    unknown = sorted({*classes, *leave_out} - set(labels))
    if unknown or not classes:
        known = ", ".join(labels) or "none: its documents have no label"
        raise InvalidInputError(
            f"classes of corpus {name!r} must be among: {known}; got {unknown or 'none'}."
        )
    inside = tuple(d for d in documents if d.label in classes)
    held = frozenset(d.normalised_text for d in inside)
    skipped = {None, *classes, *leave_out}
    others = (d for d in documents if d.label not in skipped)
    outside = tuple(d for d in others if d.normalised_text not in held)
    if not outside:
        raise InvalidInputError(
            f"Corpus {name!r} has no document outside {sorted(classes)}, so nothing is "
            "left for the cross-domain side. Name fewer classes."
        )
    return inside, outside


def hold_out(
    order: Sequence[int], documents: Sequence[str], n_held_out: int
) -> tuple[list[int], list[int]]:
    """Return row indices to score on and to train on, from different documents if possible.

    A document gives a twentieth of the held-out rows at most, and what else it holds is in neither
    part. Documents that are held out hold a quarter of all rows at most, so that something is left
    to train on; where there are few, each gives more than a twentieth, all about as many. Where not
    even two fit, rows are drawn one by one, and both parts are of the same documents.

    Parameters
    ----------
    order : sequence of int
        The rows that take part, in the order in which they are drawn.
    documents : sequence of str
        Document of every row, including rows that take no part.

    Examples
    --------
    >>> hold_out(range(12), "aabcddeeffgg", 2)
    ([0, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11])
    """
    members: dict[str, list[int]] = {}
    for row in order:
        members.setdefault(documents[row], []).append(row)
    most = max(1, n_held_out // LEAST_DOCUMENTS)
    room, n_found = MOST_APART * len(order), 0
    taken: dict[str, list[int]] = {}
    for document, rows in members.items():
        if n_found < n_held_out and len(rows) <= room:
            taken[document] = rows
            room, n_found = room - len(rows), n_found + min(most, len(rows))
    if len(taken) < min(2, n_held_out):
        return list(order[:n_held_out]), list(order[n_held_out:])
    in_turn = chain.from_iterable(zip_longest(*taken.values()))
    held_out = [row for row in in_turn if row is not None][:n_held_out]
    return held_out, [row for row in order if documents[row] not in taken]


def share_documents(documents: Sequence[str]) -> bool:
    """Return whether texts share documents, given the document id of each.

    A table of sentences has rows that hold two: these make no documents of the others.
    """
    return len(set(documents)) < LEAST_ALONE * len(documents)
