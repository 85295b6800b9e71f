"""The texts of the trade-off's attacker, and those under attack: none of these is known to them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.attacks.inversion.shipped import text_mark
from core.corpora import bundled_sentences, load_corpus
from core.errors import InvalidInputError
from core.text import words

__all__ = [
    "LEAST_HELD",
    "N_HELD",
    "AttackersTexts",
    "auxiliary_texts",
    "digest",
    "draw_texts",
    "folded",
]

N_HELD = 1000
"""Texts at most that the attacker sets aside to choose epochs by and to learn to judge from."""

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

    Raises
    ------
    InvalidInputError
        A text is in two of them; case and punctuation make no other text.
    """

    known: tuple[str, ...]
    held: tuple[str, ...]
    targets: tuple[str, ...]

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
    found = load_corpus(reference).texts if reference else bundled_sentences()
    return tuple({folded(text): text for text in found}.values())


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
) -> AttackersTexts:
    """Draw the attacker's texts and the targets; the seed changes the targets, not what is known.

    Parameters
    ----------
    texts : sequence of str
        All different.
    held_out : collection of str, optional
        Marks (`text_mark`) of texts that weights were not trained on, where the attack begins with
        such weights: targets and what is set aside are among these.

    Raises
    ------
    InvalidInputError
        Too few texts.
    """
    apart = _apart(texts, n_targets) if held_out is None else _marked(texts, held_out)
    if len(apart) < n_targets + LEAST_HELD:
        what = "that the weights were not trained on" if held_out is not None else "to set aside"
        raise InvalidInputError(
            f"The attack needs {n_targets + LEAST_HELD} texts {what}, and the auxiliary texts "
            f"hold {len(apart)}. Name others by --auxiliary, or fewer by --n-targets."
        )
    taken = {folded(texts[i]) for i in apart}
    rest = [i for i, text in enumerate(texts) if folded(text) not in taken]
    if len(rest) < n_known:
        raise InvalidInputError(
            f"The attack is trained on {n_known:,} texts, and {len(rest):,} are left beside those "
            "under attack. Name others by --auxiliary, or fewer by --n-auxiliary."
        )
    known = np.random.default_rng([0, 2]).permutation(rest)[:n_known]
    order = np.random.default_rng([seed, 3]).permutation(apart)

    def chosen(rows: Iterable[int]) -> tuple[str, ...]:
        return tuple(texts[i] for i in rows)

    held = order[n_targets : n_targets + N_HELD]
    return AttackersTexts(chosen(known), chosen(held), chosen(order[:n_targets]))


def _marked(texts: Sequence[str], held_out: Collection[str]) -> list[int]:
    marks = frozenset(held_out)
    return [i for i, text in enumerate(texts) if text_mark(text) in marks]


def _apart(texts: Sequence[str], n_targets: int) -> list[int]:
    """Return as many texts as are attacked and set aside, the same under every seed."""
    n = min(3 * n_targets + N_HELD, max(n_targets + LEAST_HELD, len(texts) // 3))
    return np.random.default_rng([0, 1]).permutation(len(texts))[:n].tolist()
