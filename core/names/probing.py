"""Which of some known candidates is named in a vector? Asked of the encoder, not of an attack.

No training and no vocabulary: the candidates may be names that nobody ever trained on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.names.person import PersonName
from core.names.sentences import NamedSentence, units_of_sentences
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.rates import rate_by_document
from core.results import Recovery, Score
from core.vectors import dot, unit

__all__ = ["KNOWLEDGE", "Knowledge", "Probing", "probe_names", "ranks_of_truth"]


@dataclass(frozen=True)
class Knowledge:
    """What an attacker is assumed to know besides the candidates, the vector and the encoder."""

    title: str
    assumes: str


KNOWLEDGE: dict[str, Knowledge] = {
    "sentence": Knowledge(
        "The rest of the sentence",
        "every word of the sentence except the name; the surname alone is put in its place, since "
        "the first name is not known",
    ),
    "recovered": Knowledge(
        "The words that an attack read",
        "nothing about the sentence; an inversion attack reads words from the vector, and each "
        "candidate's full name is encoded together with them",
    ),
    "alone": Knowledge(
        "Nothing else",
        "nothing about the sentence; each candidate's full name is encoded alone",
    ),
}
"""The variants of the probe, by how much they assume."""


@dataclass(frozen=True, eq=False)
class Probing:
    """The cosine of every candidate with every vector, for one `Knowledge`.

    Parameters
    ----------
    scores : ndarray of float32, shape (n, C)
    truth : ndarray of int, shape (n,)
        Position of the right candidate.
    units : list of n or None
        The unit of each sentence, of which intervals are; None where each is its own.
    """

    scores: NDArray[np.float32]
    truth: NDArray[np.int64]
    units: list[Hashable] | None = None

    def hits(self, k: int, *, seed: int = 0) -> Score:
        """Return how often the right candidate is among the k best."""
        ranks = ranks_of_truth(self.scores, self.truth)
        return rate_by_document(ranks < k, self.units, seed=seed)


def ranks_of_truth(scores: NDArray[np.float32], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many candidates score at least as well as the right one: 0 is best, ties lose.

    Examples
    --------
    >>> ranks_of_truth(np.array([[0.1, 0.9], [0.5, 0.5]], np.float32), np.array([1, 0])).tolist()
    [0, 1]
    """
    own = scores[np.arange(len(truth)), truth][:, None]
    ranks: NDArray[np.int64] = (scores >= own).sum(1) - 1
    return ranks


def probe_names(
    knows: str,
    encoder: Encoder,
    sentences: Sequence[NamedSentence],
    vectors: Vectors,
    truth: Sequence[int],
    candidates: Sequence[PersonName],
    *,
    answers: Sequence[Recovery] | None = None,
    on_progress: OnProgress = no_progress,
) -> Probing:
    """Compare each vector with what the candidates' sentences would give.

    Parameters
    ----------
    knows : str
        A key of KNOWLEDGE.
    sentences : sequence of n NamedSentence
        The texts under attack before the candidate was put in; only `sentence` reads them.
    vectors : ndarray of float32, shape (n, d)
    truth : sequence of n int
    answers : sequence of n Recovery, optional
        What an attack read from the vectors; `recovered` needs it.

    Raises
    ------
    InvalidInputError
        No such knowledge, fewer than two candidates, or answers missing.
    """
    if knows not in KNOWLEDGE:
        raise InvalidInputError(f"knows must be one of {', '.join(KNOWLEDGE)}, got {knows!r}.")
    if len(candidates) < 2:
        raise InvalidInputError("Probing needs at least two candidates to choose between.")
    asked = unit(vectors)
    if knows == "alone":
        scores = dot(asked, unit(encoder.encode([name.full for name in candidates])))
    elif knows == "sentence":
        bare = [PersonName(name.surname) for name in candidates]
        written = [[s.with_name(name) for name in bare] for s in sentences]
        scores = _beside(encoder, asked, written, on_progress)
    elif answers is not None:
        written = [[_with_words(name, answer, candidates) for name in candidates]
                   for answer in answers]  # fmt: skip
        scores = _beside(encoder, asked, written, on_progress)
    else:
        raise InvalidInputError("answers are needed to probe with the words that were recovered.")
    return Probing(scores, np.asarray(truth, np.int64), units_of_sentences(sentences))


def _with_words(name: PersonName, answer: Recovery, candidates: Sequence[PersonName]) -> str:
    """Return the name before the words read, surnames of the candidates left out."""
    others = frozenset().union(*(c.words for c in candidates))
    return " ".join([name.full, *(w.word for w in answer.words if w.word not in others)])


def _beside(
    encoder: Encoder, asked: Vectors, written: list[list[str]], on_progress: OnProgress
) -> NDArray[np.float32]:
    """Return the cosine of each vector with each text written for it."""
    distinct = list(dict.fromkeys(text for row in written for text in row))
    encoded = unit(encoder.encode(distinct, on_progress))
    at = {text: i for i, text in enumerate(distinct)}
    rows = np.array([[at[text] for text in row] for row in written])
    return np.concatenate([dot(asked[[i]], encoded[row]) for i, row in enumerate(rows)])
