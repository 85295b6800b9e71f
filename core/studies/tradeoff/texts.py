"""The texts of the trade-off's word attackers, and targets that none of them knows."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.shipped import text_mark
from leakscope.core.corpora import Sentences, bundled_sentences, load_bundled, load_corpus
from leakscope.core.corpora.near_duplicates import THRESHOLD, near_duplicates
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.decontaminate import documents_or_none
from leakscope.core.text import words

N_HELD = 1000
"""The most texts that the attacker holds out to choose epochs and to calibrate."""

MANY_DOCUMENTS = 50
"""The fewest documents that targets come from, if there are enough."""

LEAST_HELD = 20
"""The fewest held-out texts: the search cannot be calibrated on fewer."""


@dataclass(frozen=True)
class AttackersTexts:
    """The attacker's training texts, held-out texts and targets, without overlaps.

    Attributes
    ----------
    known : tuple of str
        To train on.
    held : tuple of str
        The attacker's own too, but nothing was trained on them.
    targets : tuple of str
        Under attack.
    documents : tuple of str or None
        The document of each target, where several come from one.
    n_near_duplicates : int
        Texts that were neither set aside nor attacked: they nearly repeat one of the others.

    Raises
    ------
    InvalidInputError
        A text is in two of them; case and punctuation make no other text.
    """

    known: tuple[str, ...]
    held: tuple[str, ...]
    targets: tuple[str, ...]
    documents: tuple[str, ...] | None = None
    n_near_duplicates: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidInputError if two of the three sets have a text in common."""
        known, held, targets = ({fold_text(t) for t in part} for part in self.parts)
        for name, both in (
            ("both targets and training texts", known & targets),
            ("both targets and held-out texts", held & targets),
            ("both held-out and training texts", known & held),
        ):
            if both:
                raise InvalidInputError(
                    f"{len(both)} texts are {name}, so the study could not measure leakage of new "
                    "texts. Name other auxiliary texts."
                )

    @property
    def facts(self) -> dict[str, Any]:
        """The numbers of near-duplicates and documents, and the unit, as facts of a row."""
        found: dict[str, Any] = {"n_near_duplicates": self.n_near_duplicates, "unit": "sentence"}
        if self.documents is None:
            return found
        return found | {"unit": "document", "n_documents": len(set(self.documents))}

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The three sets: known, held-out and targets."""
        return self.known, self.held, self.targets


def fold_text(text: str) -> str:
    """Return a text's words in lower case without punctuation, for comparison.

    Examples
    --------
    >>> fold_text("The Dog, barked!") == fold_text("the dog barked")
    True
    """
    return " ".join(words(text))


@lru_cache(maxsize=2)
def auxiliary_texts(reference: str) -> tuple[str, ...]:
    """Read the distinct sentences of a corpus to draw from; of the bundled one for ""."""
    found = _read_sentences(reference).texts if reference else bundled_sentences()
    return tuple({fold_text(text): text for text in found}.values())


@lru_cache(maxsize=2)
def auxiliary_documents(reference: str) -> Mapping[str, str]:
    """Map the sentences of a corpus to their documents; empty if they have no documents."""
    found = _read_sentences(reference)
    ids = documents_or_none(found, found)
    return {} if ids is None else dict(zip(found.texts, ids, strict=True))


@lru_cache(maxsize=2)
def _read_sentences(reference: str) -> Sentences:
    """Read the sentences of a corpus; for "", the bundled ones."""
    return (load_corpus(reference) if reference else load_bundled()).sentences()


def auxiliary_digest(reference: str) -> str:
    """Return a digest of the sentences of a corpus and of their documents."""
    texts, documents = auxiliary_texts(reference), auxiliary_documents(reference)
    return digest((*texts, *(documents[text] for text in texts if text in documents)))


@lru_cache(maxsize=2)
def digest(texts: tuple[str, ...]) -> str:
    """Return a digest of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def draw_texts(
    texts: Sequence[str],
    n_known: int,
    n_targets: int,
    seed: int,
    *,
    held_out: Collection[str] | None = None,
    documents: Mapping[str, str] | None = None,
    near: float = THRESHOLD,
) -> AttackersTexts:
    """Draw the attacker's texts and the targets; only the targets depend on the seed.

    Parameters
    ----------
    texts : sequence of str
        All different.
    held_out : collection of str, optional
        Marks (`text_mark`) of texts that weights were not trained on, if the attack starts from
        such weights: targets and held-out texts are among these.
    documents : mapping, optional
        The documents of texts, if they have some: attacked and held-out texts are of other
        documents than known texts, unless `held_out` decides which texts these are.
    near : float
        From where on a text nearly repeats another; see `leakscope.core.corpora.near_duplicates`.
        A near-duplicate is dropped if the other side may learn from the text that it repeats.

    Raises
    ------
    InvalidInputError
        Too few texts.
    """
    own, documents = _documents_of(texts, documents)
    sides = _split_rows(
        tuple(texts), own, n_targets, None if held_out is None else frozenset(held_out), near
    )
    _check_enough(sides, n_known, n_targets, has_marks=held_out is not None)
    known = _known_order(sides)[:n_known]
    order = np.random.default_rng([seed, 3]).permutation(sides.apart).tolist()

    def chosen(rows: Iterable[int]) -> tuple[str, ...]:
        """Return the texts at the given indices."""
        return tuple(texts[i] for i in rows)

    targets, rest = chosen(order[:n_targets]), chosen(order[n_targets : n_targets + N_HELD])
    repeated = near_duplicates(rest, targets, near)
    held = tuple(text for i, text in enumerate(rest) if i not in repeated)
    if len(held) < LEAST_HELD:
        raise InvalidInputError(
            f"The attacker needs at least {LEAST_HELD} held-out texts, but only {len(held)} do "
            "not nearly repeat a target. Name other texts by --auxiliary, or fewer targets by "
            "--n-targets."
        )
    return AttackersTexts(
        chosen(known),
        held,
        targets,
        tuple(own[i] for i in order[:n_targets]) if documents else None,
        sides.n_near_duplicates,
    )


def spare_texts(
    texts: Sequence[str],
    n_known: int,
    n_targets: int,
    n: int,
    seed: int,
    *,
    held_out: Collection[str] | None = None,
    documents: Mapping[str, str] | None = None,
    near: float = THRESHOLD,
) -> tuple[str, ...]:
    """Return at most n texts that `draw_texts` with these arguments never uses, under any seed."""
    own, _ = _documents_of(texts, documents)
    sides = _split_rows(
        tuple(texts), own, n_targets, None if held_out is None else frozenset(held_out), near
    )
    spare = np.random.default_rng([seed, 5]).permutation(_known_order(sides)[n_known:])[:n]
    return tuple(texts[i] for i in spare)


def _documents_of(
    texts: Sequence[str], documents: Mapping[str, str] | None
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return each text's document (its own row if unknown), and the mapping of known ones."""
    if documents is None or documents.keys().isdisjoint(texts):
        documents = {}
    return tuple(documents.get(text, f"row {i}") for i, text in enumerate(texts)), documents


def _known_order(sides: _Split) -> NDArray[np.int64]:
    """Return the indices of texts that may be known, in the fixed random order of drawing."""
    found: NDArray[np.int64] = np.random.default_rng([0, 2]).permutation(
        np.array(sides.rest, np.int64)
    )
    return found


@dataclass(frozen=True)
class _Split:
    """The rows that may be attacked or held out (`apart`), and those that may be known."""

    apart: tuple[int, ...]
    rest: tuple[int, ...]
    n_near_duplicates: int


def _check_enough(sides: _Split, n_known: int, n_targets: int, *, has_marks: bool) -> None:
    """Raise InvalidInputError if there are too few texts to attack or to know."""
    if len(sides.apart) < n_targets + LEAST_HELD:
        what = "held out from the training of the weights" if has_marks else "to hold out"
        raise InvalidInputError(
            f"The attack needs {n_targets + LEAST_HELD} texts {what}, but the auxiliary texts "
            f"have only {len(sides.apart)}. Name other texts by --auxiliary, or fewer targets by "
            "--n-targets."
        )
    if len(sides.rest) < n_known:
        raise InvalidInputError(
            f"The attack needs {n_known:,} training texts, but only {len(sides.rest):,} remain "
            "besides the targets. Name other texts by --auxiliary, or fewer training texts by "
            "--n-auxiliary."
        )


@lru_cache(maxsize=2)
def _split_rows(
    texts: tuple[str, ...],
    documents: tuple[str, ...],
    n_targets: int,
    held_out: frozenset[str] | None,
    near: float,
) -> _Split:
    """Split text indices into those to attack or hold out, without near-duplicates, and others."""
    if held_out is None:
        apart = _rows_to_attack(documents, n_targets)
    else:
        apart = [i for i, text in enumerate(texts) if text_mark(text) in held_out]
    taken = {fold_text(texts[i]) for i in apart}
    # No text of an attacked document is known; marked texts are split already.
    closed = {documents[i] for i in apart} if held_out is None else frozenset[str]()
    rest = tuple(
        i
        for i, text in enumerate(texts)
        if documents[i] not in closed and fold_text(text) not in taken
    )
    dropped = near_duplicates([texts[i] for i in apart], (texts[i] for i in rest), near)
    kept = tuple(row for i, row in enumerate(apart) if i not in dropped)
    return _Split(kept, rest, len(dropped))


def _rows_to_attack(documents: Sequence[str], n_targets: int) -> list[int]:
    """Draw the indices that are attacked or held out under any seed, few per document.

    Targets of one document are alike, so an interval needs many documents. At most a third of the
    documents is used if they are long enough.
    """
    n = min(3 * n_targets + N_HELD, max(n_targets + LEAST_HELD, len(documents) // 3))
    rows: dict[str, list[int]] = {}
    for i in np.random.default_rng([0, 1]).permutation(len(documents)).tolist():
        rows.setdefault(documents[i], []).append(i)
    most = max(-(-n // MANY_DOCUMENTS), -(-3 * n // len(rows)))
    names = list(rows)
    found: list[int] = []
    for name in np.random.default_rng([0, 4]).permutation(len(names)).tolist():
        if len(found) >= n:
            break
        found += rows[names[name]][:most]
    return found
