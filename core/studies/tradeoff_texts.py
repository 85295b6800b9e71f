"""The texts of the trade-off's attacker, and those under attack: none of these is known to them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.shipped import text_mark
from core.corpora import Sentences, bundled_sentences, load_bundled, load_corpus
from core.corpora.near_duplicates import THRESHOLD, near_duplicates
from core.errors import InvalidInputError
from core.studies.apart import documents_or_none
from core.text import words

__all__ = [
    "LEAST_HELD",
    "N_HELD",
    "AttackersTexts",
    "auxiliary_digest",
    "auxiliary_documents",
    "auxiliary_texts",
    "digest",
    "draw_texts",
    "folded",
    "spare_texts",
]

N_HELD = 1000
"""Texts at most that the attacker sets aside to choose epochs by and to learn to judge from."""

MANY_DOCUMENTS = 50
"""Documents that targets come from at least, where there are enough."""

LEAST_HELD = 20
"""As many at least: the search cannot learn to judge from fewer."""


@dataclass(frozen=True)
class AttackersTexts:
    """What the attacker trains on, what they set aside, and what they attack.

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
        """Check that the three have no text in common."""
        known, held, targets = ({folded(t) for t in part} for part in self.parts)
        for name, both in (
            ("under attack and trained on", known & targets),
            ("under attack and set aside", held & targets),
            ("set aside and trained on", known & held),
        ):
            if both:
                raise InvalidInputError(
                    f"{len(both)} texts are {name}: no figure would say what is read of texts "
                    "that are not known. Give other auxiliary texts."
                )

    @property
    def facts(self) -> dict[str, Any]:
        """What a row says of them."""
        found: dict[str, Any] = {"n_near_duplicates": self.n_near_duplicates, "unit": "sentence"}
        if self.documents is None:
            return found
        return found | {"unit": "document", "n_documents": len(set(self.documents))}

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The three."""
        return self.known, self.held, self.targets


def folded(text: str) -> str:
    """Return what two texts share that differ in case, spaces and punctuation alone.

    Examples
    --------
    >>> folded("The Dog, barked!") == folded("the dog barked")
    True
    """
    return " ".join(words(text))


@lru_cache(maxsize=2)
def auxiliary_texts(reference: str) -> tuple[str, ...]:
    """Return the sentences that attackers and targets are drawn from, bundled ones by default."""
    found = _sentences(reference).texts if reference else bundled_sentences()
    return tuple({folded(text): text for text in found}.values())


@lru_cache(maxsize=2)
def auxiliary_documents(reference: str) -> Mapping[str, str]:
    """Return the document of each sentence; nothing where they come one by one."""
    found = _sentences(reference)
    ids = documents_or_none(found, found)
    return {} if ids is None else dict(zip(found.texts, ids, strict=True))


@lru_cache(maxsize=2)
def _sentences(reference: str) -> Sentences:
    return (load_corpus(reference) if reference else load_bundled()).sentences()


def auxiliary_digest(reference: str) -> str:
    """Return what identifies the attacker's sentences, and the document of each."""
    texts, documents = auxiliary_texts(reference), auxiliary_documents(reference)
    return digest((*texts, *(documents[text] for text in texts if text in documents)))


@lru_cache(maxsize=2)
def digest(texts: tuple[str, ...]) -> str:
    """Return what identifies texts in their order."""
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
    """Draw the attacker's texts and the targets; the seed changes the targets, not what is known.

    Parameters
    ----------
    texts : sequence of str
        All different.
    held_out : collection of str, optional
        Marks (`text_mark`) of texts that weights were not trained on, where the attack begins with
        such weights: targets and what is set aside are among these.
    documents : mapping, optional
        The documents of texts that come in some: what is attacked or set aside is of others than
        what is known, unless `held_out` says which texts these are.
    near : float
        From where on a text nearly repeats another; see `core.corpora.near_duplicates`. Such a
        text of one side is dropped where the other side may learn from the one that it repeats.

    Raises
    ------
    InvalidInputError
        Too few texts.
    """
    own, documents = _documents_of(texts, documents)
    sides = _sides(tuple(texts), own, n_targets, _marks(held_out), near)
    _check_enough(sides, n_known, n_targets, has_marks=held_out is not None)
    known = _ordered(sides)[:n_known]
    order = np.random.default_rng([seed, 3]).permutation(sides.apart).tolist()

    def chosen(rows: Iterable[int]) -> tuple[str, ...]:
        return tuple(texts[i] for i in rows)

    targets, rest = chosen(order[:n_targets]), chosen(order[n_targets : n_targets + N_HELD])
    repeated = near_duplicates(rest, targets, near)
    held = tuple(text for i, text in enumerate(rest) if i not in repeated)
    if len(held) < LEAST_HELD:
        raise InvalidInputError(
            f"The attacker sets {LEAST_HELD} texts aside at least, and {len(held)} are left that "
            "nearly repeat none under attack. Name others by --auxiliary, or fewer by --n-targets."
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
    """Return n texts at most that the same call of `draw_texts` gives to nobody, under any seed."""
    own, _ = _documents_of(texts, documents)
    sides = _sides(tuple(texts), own, n_targets, _marks(held_out), near)
    spare = np.random.default_rng([seed, 5]).permutation(_ordered(sides)[n_known:])[:n]
    return tuple(texts[i] for i in spare)


def _documents_of(
    texts: Sequence[str], documents: Mapping[str, str] | None
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the document of each text, a row its own where none is told, and those told."""
    if documents is None or documents.keys().isdisjoint(texts):
        documents = {}
    return tuple(documents.get(text, f"row {i}") for i, text in enumerate(texts)), documents


def _marks(held_out: Collection[str] | None) -> frozenset[str] | None:
    return None if held_out is None else frozenset(held_out)


def _ordered(sides: _Sides) -> NDArray[np.int64]:
    """Return what can be known, in the order in which it is."""
    found: NDArray[np.int64] = np.random.default_rng([0, 2]).permutation(
        np.array(sides.rest, np.int64)
    )
    return found


@dataclass(frozen=True)
class _Sides:
    """The rows that may be attacked or set aside, and those that may be known."""

    apart: tuple[int, ...]
    rest: tuple[int, ...]
    n_near_duplicates: int


def _check_enough(sides: _Sides, n_known: int, n_targets: int, *, has_marks: bool) -> None:
    if len(sides.apart) < n_targets + LEAST_HELD:
        what = "that the weights were not trained on" if has_marks else "to set aside"
        raise InvalidInputError(
            f"The attack needs {n_targets + LEAST_HELD} texts {what}, and the auxiliary texts "
            f"hold {len(sides.apart)}. Name others by --auxiliary, or fewer by --n-targets."
        )
    if len(sides.rest) < n_known:
        raise InvalidInputError(
            f"The attack is trained on {n_known:,} texts, and {len(sides.rest):,} are left beside "
            "those under attack. Name others by --auxiliary, or fewer by --n-auxiliary."
        )


@lru_cache(maxsize=2)
def _sides(
    texts: tuple[str, ...],
    documents: tuple[str, ...],
    n_targets: int,
    held_out: frozenset[str] | None,
    near: float,
) -> _Sides:
    """Part the texts; of those apart, none repeats one of the rest."""
    apart = _apart(documents, n_targets) if held_out is None else _marked(texts, held_out)
    taken = {folded(texts[i]) for i in apart}
    # Of a document that is attacked, nothing is known; marked texts are parted already.
    closed = {documents[i] for i in apart} if held_out is None else frozenset[str]()
    rest = tuple(
        i
        for i, text in enumerate(texts)
        if documents[i] not in closed and folded(text) not in taken
    )
    dropped = near_duplicates([texts[i] for i in apart], (texts[i] for i in rest), near)
    kept = tuple(row for i, row in enumerate(apart) if i not in dropped)
    return _Sides(kept, rest, len(dropped))


def _marked(texts: Sequence[str], held_out: frozenset[str]) -> list[int]:
    return [i for i, text in enumerate(texts) if text_mark(text) in held_out]


def _apart(documents: Sequence[str], n_targets: int) -> list[int]:
    """Return as many texts as are attacked and set aside, under every seed.

    Few of each document, of many: targets of one document are alike, so that an interval needs
    many. A third of the documents at most where they are long enough.
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
