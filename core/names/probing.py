"""Probing: find which of several candidate names is in a vector, by encoding each candidate.

It needs the encoder, but no attack, training or vocabulary: the candidates may be names that no
attack was trained on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import rate_by_document
from leakscope.core.names.person import PersonName
from leakscope.core.names.sentences import NamedSentence, units_of_sentences
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Recovery, Score
from leakscope.core.vectors import dot, unit


@dataclass(frozen=True)
class Knowledge:
    """What a probing attacker knows besides the candidates, the vector and the encoder.

    `assumes` is a few sentences.
    """

    title: str
    assumes: str


KNOWLEDGE: dict[str, Knowledge] = {
    "sentence": Knowledge(
        "The rest of the sentence",
        "The attacker knows every word of the sentence except the name. It puts each surname in "
        "its place, without a first name, and compares the vectors.",
    ),
    "recovered": Knowledge(
        "Words that an attack recovered",
        "The attacker does not know the sentence. First it recovers words from the vector. Then "
        "it encodes each full name with these words, and compares the vectors.",
    ),
    "alone": Knowledge(
        "Nothing else",
        "The attacker does not know the sentence. It compares the vector with the vector of each "
        "full name.",
    ),
}
"""The probing attackers, from most to least knowledge."""


@dataclass(frozen=True, eq=False)
class Probing:
    """Cosine similarity of every candidate with every vector, for one `Knowledge`.

    Parameters
    ----------
    scores : ndarray of float32, shape (n, C)
    truth : ndarray of int, shape (n,)
        Position of the right candidate.
    units : list of n or None
        The sampling unit of each sentence, for intervals; None if each sentence is its own.
    """

    scores: NDArray[np.float32]
    truth: NDArray[np.int64]
    units: list[Hashable] | None = None

    def hits(self, k: int, *, seed: int = 0) -> Score:
        """Compute how often the true candidate is among the k best, in per cent."""
        ranks = ranks_of_truth(self.scores, self.truth)
        return rate_by_document(ranks < k, self.units, seed=seed)


def ranks_of_truth(scores: NDArray[np.float32], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each vector's rank of its true candidate: 0 is best, ties count against it.

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
    """Encode each candidate name in a text and score it against each vector by cosine.

    Parameters
    ----------
    knows : str
        A key of KNOWLEDGE.
    sentences : sequence of n NamedSentence
        The texts under attack before the candidate was inserted; only `sentence` uses them.
    vectors : ndarray of float32, shape (n, d)
    truth : sequence of n int
    answers : sequence of n Recovery, optional
        What an attack recovered from the vectors; `recovered` needs it.

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
        scores = _cosines_with_texts(encoder, asked, written, on_progress)
    elif answers is not None:
        written = [
            [_name_with_words(name, answer, candidates) for name in candidates]
            for answer in answers
        ]
        scores = _cosines_with_texts(encoder, asked, written, on_progress)
    else:
        raise InvalidInputError("answers are needed to probe with the words that were recovered.")
    return Probing(scores, np.asarray(truth, np.int64), units_of_sentences(sentences))


def _name_with_words(name: PersonName, answer: Recovery, candidates: Sequence[PersonName]) -> str:
    """Join a name and the recovered words, without the candidates' surnames, to one text."""
    others = frozenset().union(*(c.words for c in candidates))
    return " ".join([name.full, *(w.word for w in answer.words if w.word not in others)])


def _cosines_with_texts(
    encoder: Encoder, asked: Vectors, written: list[list[str]], on_progress: OnProgress
) -> NDArray[np.float32]:
    """Encode each vector's candidate texts and return their cosines with it."""
    distinct = list(dict.fromkeys(text for row in written for text in row))
    encoded = unit(encoder.encode(distinct, on_progress))
    at = {text: i for i, text in enumerate(distinct)}
    rows = np.array([[at[text] for text in row] for row in written])
    return np.concatenate([dot(asked[[i]], encoded[row]) for i, row in enumerate(rows)])
