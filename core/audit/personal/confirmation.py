"""Confirming an identifier by ranking candidates in the known rest of its text.

The attacker knows the text but for the identifier, and the encoder (where vectors were changed by
a known defence, the encoder behind it). No training, and no list of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.personal.confidence import LEAST_CANDIDATES, Confidence, distances
from leakscope.core.audit.personal.kinds import Identifier
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress

_TEXTS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Question:
    """An identifier to confirm, with its text, vector and candidates; `repr` shows no content.

    Attributes
    ----------
    text : str
    vector : ndarray of float32, shape (d,)
    identifier : Identifier
    candidates : tuple of str
        Without the true value.
    others : tuple of Identifier
        Where the same value is written again: the candidates are put there too.
    """

    text: str = field(repr=False)
    vector: NDArray[np.float32] = field(repr=False)
    identifier: Identifier
    candidates: tuple[str, ...] = field(repr=False)
    others: tuple[Identifier, ...] = ()

    def written(self) -> list[str]:
        """Return copies of the text: with the true value, then with each candidate in its place."""
        places = sorted((self.identifier, *self.others), key=lambda found: -found.start)
        texts = []
        for value in (self.identifier.value, *self.candidates):
            text = self.text
            for found in places:
                text = text[: found.start] + value + text[found.end :]
            texts.append(text)
        return texts


@dataclass(frozen=True)
class Confirmation:
    """The rank of the true value, with the attacker's confidence.

    Attributes
    ----------
    rank : int
        Of the true value among all candidates, itself included: 1 is first. A candidate that fits
        as well counts as better.
    n_candidates : int
        With the true value.
    confidence : float or None
        The probability that the attacker may give the first candidate; None where it was not
        calibrated for this encoder, or with fewer than 20 candidates.
    without_truth : float or None
        The same, where the true value is taken out of the list: what a wrong claim would be made
        with.
    """

    rank: int
    n_candidates: int
    confidence: float | None
    without_truth: float | None


def rank_of_first(found: NDArray[np.float64]) -> int:
    """Return the rank of the array's first distance, 1 for the smallest; ties count against it.

    Examples
    --------
    >>> rank_of_first(np.array([0.2, 0.1, 0.3])), rank_of_first(np.array([0.2, 0.2, 0.3]))
    (2, 2)
    """
    return int((found <= found[0]).sum())


def confirm(
    encoder: Encoder,
    questions: Sequence[Question],
    *,
    calibrated: Confidence | None = None,
    on_progress: OnProgress = no_progress,
) -> list[Confirmation]:
    """Encode each text with each candidate; rank the true value of each identifier by the vectors.

    Texts are encoded in batches over several identifiers. Nothing is cached.

    Parameters
    ----------
    encoder : Encoder
    questions : sequence of Question
    calibrated : Confidence, optional
        Used where it was fitted on this encoder.
    """
    is_ours = calibrated is not None and calibrated.fingerprint == encoder.fingerprint
    found: list[Confirmation] = []
    while len(found) < len(questions):
        batch: list[Question] = []
        texts: list[str] = []
        for question in questions[len(found) :]:
            if batch and len(texts) + len(question.candidates) >= _TEXTS_AT_ONCE:
                break
            batch.append(question)
            texts += question.written()
        vectors = encoder.encode(texts)
        start = 0
        for question in batch:
            end = start + len(question.candidates) + 1
            found.append(
                _confirm_one(question, vectors[start:end], calibrated if is_ours else None)
            )
            start = end
        on_progress(len(found) / len(questions), f"{len(found)} of {len(questions)} identifiers")
    return found


def _confirm_one(
    question: Question, vectors: Vectors, calibrated: Confidence | None
) -> Confirmation:
    """Rank one question's true value, given the vectors of its text with each candidate."""
    found = distances(question.vector, vectors)
    confidence = without = None
    if calibrated is not None and len(found) > LEAST_CANDIDATES:
        confidence = calibrated.of_list(question.vector, vectors)
        without = calibrated.of_list(question.vector, vectors[1:])
    return Confirmation(rank_of_first(found), len(found), confidence, without)
