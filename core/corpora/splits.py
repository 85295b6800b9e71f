"""Parts of a corpus that share no document: by drawing, and by class."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from core.corpora.document import Document
from core.errors import InvalidInputError

__all__ = ["split_by_class", "split_by_document"]


def split_by_document(
    documents: Sequence[Document], fractions: Sequence[float], seed: int = 0, *, name: str
) -> tuple[tuple[Document, ...], ...]:
    """Draw documents into as many parts as there are fractions.

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
        Of their corpus, for messages.

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
        groups.setdefault(document.folded, len(groups))
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
        parts[part_of[groups[document.folded]]].append(document)
    return tuple(map(tuple, parts))


def split_by_class(
    documents: Sequence[Document],
    classes: Collection[str],
    leave_out: Collection[str] = (),
    *,
    name: str,
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """Return the documents of the classes (in-domain) and those of all others (cross-domain).

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
    held = frozenset(d.folded for d in inside)
    skipped = {None, *classes, *leave_out}
    others = (d for d in documents if d.label not in skipped)
    outside = tuple(d for d in others if d.folded not in held)
    if not outside:
        raise InvalidInputError(
            f"Corpus {name!r} has no document outside {sorted(classes)}, so nothing is "
            "left for the cross-domain side. Name fewer classes."
        )
    return inside, outside
