"""Parts of a corpus that share no document: by drawing, and by class."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.corpora.documents import Corpus, Document

__all__ = ["split_by_class", "split_by_document"]


def split_by_document(
    corpus: Corpus, fractions: Sequence[float], seed: int = 0
) -> tuple[Corpus, ...]:
    """Draw the documents into as many corpora as there are fractions.

    Documents with the same text fall on the same side. Within a part, documents keep their
    order. Corò (2022) splits by paragraph, so that one article may lie on both sides; here none
    does.

    Parameters
    ----------
    fractions : sequence of float
        Positive shares of the distinct texts; their sum is 1.
    seed : int
        The same seed and content give the same parts.

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
    for document in corpus.documents:
        groups.setdefault(_same_text(document), len(groups))
    bounds = np.rint(np.cumsum(fractions) * len(groups)).astype(int)
    if np.any(np.diff(bounds, prepend=0) < 1):
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has {len(groups)} distinct documents, too few for parts of "
            f"{tuple(fractions)}. Give more documents or fewer parts."
        )
    rank = np.random.default_rng(seed).permutation(len(groups))
    part_of = np.searchsorted(bounds, rank, side="right")
    parts: list[list[Document]] = [[] for _ in fractions]
    for document in corpus.documents:
        parts[part_of[groups[_same_text(document)]]].append(document)
    n = len(parts)
    return tuple(
        replace(corpus, name=f"{corpus.name}, part {i} of {n}", documents=tuple(part))
        for i, part in enumerate(parts, 1)
    )


def split_by_class(
    corpus: Corpus, classes: Collection[str], leave_out: Collection[str] = ()
) -> tuple[Corpus, Corpus]:
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
    unknown = sorted({*classes, *leave_out} - set(corpus.labels))
    if unknown or not classes:
        known = ", ".join(corpus.labels) or "none: its documents have no label"
        raise InvalidInputError(
            f"classes of corpus {corpus.name!r} must be among: {known}; got {unknown or 'none'}."
        )
    inside = tuple(d for d in corpus.documents if d.label in classes)
    held = frozenset(_same_text(d) for d in inside)
    skipped = {None, *classes, *leave_out}
    others = (d for d in corpus.documents if d.label not in skipped)
    outside = tuple(d for d in others if _same_text(d) not in held)
    if not outside:
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has no document outside {sorted(classes)}, so nothing is "
            "left for the cross-domain side. Name fewer classes."
        )
    said = ", ".join(label for label in corpus.labels if label in classes)
    return (
        replace(corpus, name=f"{corpus.name}: {said}", documents=inside),
        replace(corpus, name=f"{corpus.name}: all but {said}", documents=outside),
    )


def _same_text(document: Document) -> str:
    """Return what two documents with the same text have in common, white space aside."""
    return " ".join(document.text.split())
