"""Substitute names in sentences, and score how often the surname is recovered."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import mean_rate, rate_by_document
from leakscope.core.names.person import PersonName
from leakscope.core.names.sentences import NamedSentence, units_of_sentences
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from leakscope.core.results import Recovery, Score
from leakscope.core.text import word_set


@dataclass(frozen=True, eq=False)
class Substitution:
    """An attack's answers to every sentence with every name in it.

    Parameters
    ----------
    sentences : tuple of S NamedSentence
        Sentences with their original names.
    names : tuple of C PersonName
        Names to insert.
    texts : list of S lists of C str
        What was encoded.
    answers : list of S lists of C Recovery
    is_answered : ndarray of bool, shape (S, C, C)
        Whether every word of surname k is in the answer to sentence s with name j.
    """

    sentences: tuple[NamedSentence, ...]
    names: tuple[PersonName, ...]
    texts: list[list[str]]
    answers: list[list[Recovery]]
    is_answered: NDArray[np.bool_]

    @property
    def rows(self) -> tuple[PersonName, ...]:
        """The names that the sentences originally contain, in order."""
        return tuple(dict.fromkeys(sentence.name for sentence in self.sentences))

    @property
    def is_recovered(self) -> NDArray[np.bool_]:
        """Whether the surname in the text was recovered, for each sentence and name, (S, C)."""
        return np.einsum("scc->sc", self.is_answered)

    def rows_of_name(self, name: PersonName) -> NDArray[np.int64]:
        """Return the indices of the sentences that originally contain a name."""
        return np.array([i for i, s in enumerate(self.sentences) if s.name == name], np.int64)

    @property
    def units(self) -> list[Hashable]:
        """The sampling unit of each sentence: its document or, if unknown, its text."""
        return units_of_sentences(self.sentences)

    def cell(self, row: PersonName, column: PersonName, *, seed: int = 0) -> Score:
        """Compute how often `column` was recovered when inserted into the sentences of `row`."""
        rows = self.rows_of_name(row)
        hits = self.is_recovered[rows, self.names.index(column)]
        return rate_by_document(hits, _take_units(self.units, rows), seed=seed)

    @property
    def is_own(self) -> NDArray[np.bool_]:
        """Whether a name is the sentence's original one, for each pair, shape (S, C)."""
        return np.array([[s.name == name for name in self.names] for s in self.sentences])

    def diagonal(self, *, seed: int = 0) -> Score:
        """Compute how often the original surname was recovered from unchanged sentences."""
        rows, columns = np.nonzero(self.is_own)
        return rate_by_document(
            self.is_recovered[rows, columns], _take_units(self.units, rows), seed=seed
        )

    def exchanged(self, among: NDArray[np.bool_] | None = None, *, seed: int = 0) -> Score:
        """Compute how often a substituted surname was recovered.

        Parameters
        ----------
        among : ndarray of bool, shape (S, C) or (C,), optional
            Count only these substitutions.
        """
        counted = ~self.is_own if among is None else ~self.is_own & among
        shares, n = _row_shares(self.is_recovered, counted), int(counted.sum())
        return mean_rate(shares, documents=self.units, n_trials=n, seed=seed)

    def false_alarms(self, *, seed: int = 0) -> Score:
        """Compute the rate at which the attack answers a listed surname that is not in the text.

        It shows when an attack answers names too freely.
        """
        held = [[word_set(text) for text in row] for row in self.texts]
        absent = np.array(
            [[[not k.words <= words for k in self.names] for words in row] for row in held]
        )
        n = len(self.sentences)
        shares = _row_shares(self.is_answered.reshape(n, -1), absent.reshape(n, -1))
        return mean_rate(shares, documents=self.units, n_trials=int(absent.sum()), seed=seed)

    def ranked_first(self, *, seed: int = 0) -> Score:
        """Compute how often the true surname ranks first among the listed ones (unchanged texts).

        The attacker knows the list.
        """
        s, c = np.nonzero(self.is_own)
        right = np.array(
            [
                first_candidate(self.answers[i][j], self.names) == j
                for i, j in zip(s, c, strict=True)
            ],
            bool,
        )
        return rate_by_document(right, _take_units(self.units, s), seed=seed)


def substitute_names(
    attack: InversionAttack,
    encoder: Encoder,
    sentences: Sequence[NamedSentence],
    names: Sequence[PersonName],
    on_progress: OnProgress = no_progress,
) -> Substitution:
    """Insert every name into every sentence, encode the texts and invert the vectors.

    Implements the experiment of Corò (2022), §5.2.3 (Tables 5.6 and 5.7): `cell(row, column)`
    is the fraction of times that the surname is among the recovered words. Rows are the original
    names; the thesis writes them as columns.

    Raises
    ------
    InvalidInputError
        No sentence or no name.
    """
    if not sentences or not names:
        raise InvalidInputError("Substitution needs at least one sentence and one name.")
    texts = [[sentence.with_name(name) for name in names] for sentence in sentences]
    flat = [text for row in texts for text in row]
    distinct = list(dict.fromkeys(flat))
    n = len(distinct)
    vectors = encoder.encode(
        distinct, lambda f, _: on_progress(f / 2, f"Encoded {round(f * n):,} of {n:,} sentences")
    )
    found = attack.invert(
        encoder,
        vectors,
        lambda f, _: on_progress(0.5 + f / 2, f"Attacked {round(f * n):,} of {n:,} vectors"),
    )
    by_text = dict(zip(distinct, found, strict=True))
    answers = [[by_text[text] for text in row] for row in texts]
    said = np.array(
        [[[k.words <= answer.word_set for k in names] for answer in row] for row in answers]
    )
    on_progress(1.0, f"Attacked {n:,} vectors")
    return Substitution(tuple(sentences), tuple(names), texts, answers, said)


def first_candidate(answer: Recovery, names: Sequence[PersonName]) -> int | None:
    """Return the index of the name whose surname ranks highest in an attack's answer, or None.

    A surname of several words has the rank of its lowest-ranked word.
    """
    rank = {found.word: i for i, found in enumerate((*answer.words, *answer.runners_up))}
    placed = [
        (max(rank[word] for word in name.words), i)
        for i, name in enumerate(names)
        if all(word in rank for word in name.words)
    ]
    return min(placed)[1] if placed else None


def _take_units(units: Sequence[Hashable], rows: NDArray[np.int64]) -> list[Hashable]:
    """Return the units at the given rows."""
    return [units[i] for i in rows]


def _row_shares(hits: NDArray[np.bool_], counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return each row's share of hits among its counted cells; NaN if it has none."""
    n = counted.sum(1)
    share = (hits & counted).sum(1) / np.maximum(n, 1)
    return np.where(n > 0, share, np.nan)
