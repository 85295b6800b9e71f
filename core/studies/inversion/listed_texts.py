"""Invented candidates (names, numbers, IBANs), and texts with one candidate inserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError, similar

TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "name": (
        "{text} Please ask {who}.",
        "{text} The message is from {who}.",
        "{who} wrote: {text}",
        "For {who}: {text}",
    ),
    "telephone": (
        "{text} Call me on {who}.",
        "{text} The telephone number is {who}.",
        "My number is {who}. {text}",
        "Telephone {who}: {text}",
    ),
    "iban": (
        "{text} The account is {who}.",
        "{text} Send the money to {who}.",
        "Please pay to {who}. {text}",
        "IBAN {who}: {text}",
    ),
}
"""Templates by kind of candidate that insert one after or before a text."""

KINDS: Mapping[str, str] = {"name": "names", "telephone": "telephone numbers", "iban": "IBANs"}
"""Each kind of candidate, with its plural."""

_FIRST = """
    Ada Albert Amir Anita Boris Carla Cedric Chloe Daniel Diana Dmitri Edith Elias Emma Fatima
    Felix Fiona Georg Grace Hana Hector Ingrid Irene Ivan Jamal Jonas Judith Karim Kenji Laura
    Leila Lucas Magda Marco Miriam Nadia Nils Noah Olga Oscar Paula Pedro Priya Quentin Rachel
    Ravi Rosa Samuel Selma Simon Tara Theo Ursula Victor Wanda Xavier Yara Yusuf Zoe Zoltan
""".split()  # noqa: SIM905 - a list literal would take 60 lines
_SYLLABLES = tuple(
    row.split()
    for row in (
        "Bal Cor Den Fal Gor Hel Kar Lom Mar Nor Pel Ros Sal Tor Ves Wil",
        "a be de i ka le mo ni o ri ta vi",
        "berg dale dottir ford kov land ley mann nen rin ski ston tero wick zano",
    )
)
"""The parts of invented surnames: 2,880 in all."""

MOST_CANDIDATES = len(_FIRST)
"""The most candidates that can have distinct first names."""

_PREFIX = "0550"
_BANK = "05550000"
"""Invented: no German bank code begins with 0."""


@dataclass(frozen=True)
class FilledTexts:
    """Texts with a candidate inserted into each, and which candidate it is.

    Attributes
    ----------
    texts : tuple of str
        With a candidate put in.
    labels : ndarray of int64, shape (n,)
        The place of that candidate in the list.
    carriers : tuple of str
        The same texts without it.
    """

    texts: tuple[str, ...]
    labels: NDArray[np.int64]
    carriers: tuple[str, ...]


def draw_candidates(kind: str, n: int, seed: int) -> tuple[str, ...]:
    """Invent n distinct candidates of a kind: names, telephone numbers or IBANs.

    Names share neither first name nor surname; telephone numbers share a prefix, and IBANs country
    and bank, so that only the rest of the digits tells which one it is.

    Raises
    ------
    InvalidInputError
        No such kind, or more than there are.

    Examples
    --------
    >>> draw_candidates("telephone", 2, 0) == draw_candidates("telephone", 2, 0)
    True
    >>> len({name.split()[1] for name in draw_candidates("name", 40, 0)})
    40
    """
    if kind not in KINDS:
        raise InvalidInputError(
            f"--kinds must be among {', '.join(KINDS)}, got {kind!r}." + similar(kind, KINDS)
        )
    if not 2 <= n <= MOST_CANDIDATES:
        raise InvalidInputError(f"--n-candidates must lie in [2, {MOST_CANDIDATES}], got {n}.")
    rng = np.random.default_rng([seed, 7, *kind.encode()])
    if kind == "name":
        first = rng.permutation(len(_FIRST))[:n]
        sizes = tuple(map(len, _SYLLABLES))
        drawn = rng.choice(int(np.prod(sizes)), n, replace=False)
        places = np.column_stack(np.unravel_index(drawn, sizes)).tolist()
        parts = (map(list.__getitem__, _SYLLABLES, place) for place in places)
        return tuple(f"{_FIRST[i]} {''.join(part)}" for i, part in zip(first, parts, strict=True))
    digits = 6 if kind == "telephone" else 10
    numbers = (f"{i:0{digits}}" for i in rng.choice(10**digits, n, replace=False).tolist())
    if kind == "telephone":
        return tuple(f"{_PREFIX} {number[:3]} {number[3:]}" for number in numbers)
    return tuple(format_iban(_BANK, number) for number in numbers)


def format_iban(bank: str, account: str) -> str:
    """Format a German IBAN in groups of four, with check digits (ISO 13616: modulo 97).

    Examples
    --------
    >>> format_iban("37040044", "0532013000")
    'DE89 3704 0044 0532 0130 00'
    """
    number = bank + account
    check = 98 - int(f"{number}131400") % 97  # D is 13, E is 14
    whole = f"DE{check:02}{number}"
    return " ".join(whole[i : i + 4] for i in range(0, len(whole), 4))


def insert_candidates(
    carriers: Sequence[str],
    candidates: Sequence[str],
    kind: str,
    n_copies: int,
    seed: Sequence[int],
) -> FilledTexts:
    """Return n copies of each text, with a different candidate inserted in each by a template.

    Candidates and templates are drawn at random for each text.

    Parameters
    ----------
    n_copies : int
        At most as many as there are candidates.
    seed : sequence of int
        Of the draws. Texts to learn from and texts under attack take different ones.
    """
    rng = np.random.default_rng([*seed, *kind.encode()])
    templates = TEMPLATES[kind]
    # Different candidates for the copies of a text: the first of a random order per text.
    labels = np.argsort(rng.random((len(carriers), len(candidates))), axis=1)[:, :n_copies].ravel()
    chosen = rng.integers(0, len(templates), len(labels)).tolist()
    repeated = tuple(text for text in carriers for _ in range(n_copies))
    texts = tuple(
        templates[t].format(text=text, who=candidates[label])
        for t, text, label in zip(chosen, repeated, labels.tolist(), strict=True)
    )
    return FilledTexts(texts, labels.astype(np.int64), repeated)
