"""Texts with authors and classes, to train membership-inference targets on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns, load_corpus, split_sentences
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.tasks.outcomes import ClassIds

PIECES = ("texts", "sentences")
"""What counts as one sample: each text as in the file, or each of its sentences."""

LEAST_WORDS = 5
"""Minimum words of a sentence sample; shorter ones are greetings and signatures."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Limits on which users, classes and texts are used; 0 means no limit.

    Parameters
    ----------
    least, most : int
        Texts of a user: users with fewer are left out, of those with more some are drawn.
    n_users : int
        Users that are drawn.
    n_classes : int
        The most frequent classes; texts of others are left out.
    """

    least: int = 2
    most: int = 0
    n_users: int = 0
    n_classes: int = 0


@dataclass(frozen=True)
class AuthoredTexts(ClassIds):
    """Texts with the user and class of each.

    Attributes
    ----------
    n_shared : int
        Texts that were left out since several users have them, such as what is passed on.
    n_unlabelled : int
        Rows of the file that have no user or no class, and are not among these.
    """

    name: str
    texts: tuple[str, ...]
    users: tuple[str, ...]
    labels: tuple[str, ...]
    n_shared: int = 0
    n_unlabelled: int = 0

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    @cached_property
    def digest(self) -> str:
        """A hash of texts, users and classes."""
        return digest_of({}, [self.texts, self.users, self.labels])[:16]

    def chosen(self, rows: Sequence[int] | NDArray[np.int64]) -> AuthoredTexts:
        """Return new AuthoredTexts of the texts at the given rows, in that order."""
        return AuthoredTexts(
            self.name,
            tuple(self.texts[i] for i in rows),
            tuple(self.users[i] for i in rows),
            tuple(self.labels[i] for i in rows),
            self.n_shared,
            self.n_unlabelled,
        )

    def selected(self, selection: Selection, seed: int) -> AuthoredTexts:
        """Draw users and texts by a Selection and a seed; return them as new AuthoredTexts.

        Raises
        ------
        InvalidInputError
            One class is left, or no user has as many texts as asked for.
        """
        rng = np.random.default_rng([seed, 11])
        counts = Counter(self.labels)
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        kept = set(ranked[: selection.n_classes or None])
        by_user: dict[str, list[int]] = {}
        for i, user in enumerate(self.users):
            if self.labels[i] in kept:
                by_user.setdefault(user, []).append(i)
        enough = sorted(u for u, rows in by_user.items() if len(rows) >= selection.least)
        drawn = [enough[i] for i in rng.permutation(len(enough))[: selection.n_users or None]]
        rows = [
            i
            for user in sorted(drawn)
            for i in sorted(rng.permutation(by_user[user])[: selection.most or None].tolist())
        ]
        if not rows:
            raise InvalidInputError(
                f"No user of {self.name} has {selection.least} texts. Ask for fewer."
            )
        found = self.chosen(rows)
        if len(found.classes) < 2:
            raise InvalidInputError(
                f"The texts of {self.name} are of one class, {found.classes[0]!r}, and a "
                "classifier needs two. Name another column, or ask for more classes."
            )
        return found


def read_authored(
    name: str, place: str, *, label: str, user: str, piece: str = "texts"
) -> AuthoredTexts:
    """Read a table of texts with users and classes; drop texts that several users share.

    Rows without user or class are left out, and counted, and so are texts that several users have:
    they would lie on both sides of every split by user. What a user repeats is kept once. Where the
    column of classes holds dates, the class is the year.

    Parameters
    ----------
    place : str
        A file, as FILE#COLUMN where the column of texts is named.
    label, user : str
        The columns of classes and users.
    piece : str
        One of PIECES.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be used, or no text is left.
    """
    if piece not in PIECES:
        raise InvalidInputError(f"A sample must be one of {', '.join(PIECES)}, got {piece!r}.")
    path, _, column = place.partition("#")
    columns = Columns(text=column or None, label=label, author=user)
    documents = load_corpus(Path(path), columns=columns).documents
    rows: dict[tuple[str, str], tuple[str, str]] = {}
    n_unlabelled = 0
    for document in documents:
        if document.label is None or document.author is None:
            n_unlabelled += 1
            continue
        for text in _split_pieces(document.text, piece):
            folded = " ".join(text.split()).casefold()
            rows.setdefault((folded, document.author), (text, document.label))
    owners = Counter(folded for folded, _ in rows)
    own = [
        (text, who, label) for (folded, who), (text, label) in rows.items() if owners[folded] == 1
    ]
    if not own:
        raise InvalidInputError(
            f"{path} holds no text with a user in {user!r} and a class in {label!r}. "
            "Name the columns."
        )
    texts, users, labels = zip(*own, strict=True)
    n_shared = len(rows) - len(own)
    return AuthoredTexts(name, texts, users, _shorten_dates(labels), n_shared, n_unlabelled)


def _split_pieces(text: str, piece: str) -> list[str]:
    """Split a text into sentences of at least five words, or return it whole in a list."""
    if piece == "texts":
        return [text]
    return [s for s in split_sentences(text) if len(s.split()) >= LEAST_WORDS]


def _shorten_dates(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Shorten labels to their years if all are dates; else return them unchanged."""
    if all(_DATE.match(label) for label in labels):
        return tuple(label[:4] for label in labels)
    return labels
