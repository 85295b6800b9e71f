"""Estimate an attack's F1 without texts, from the probabilities of its answers.

An attack that names k words with probabilities p, and gives its next words a total probability q,
expects an F1 of 2·Σp / (k + Σp + q) for its own answer. These probabilities are overconfident, but
across corpora the true F1 is linear in that number. The line ships with the attack, fitted on
corpora of several genres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.inversion.shipped import shipped_digest
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder
from leakscope.core.results import Interval, Recovery, Score
from leakscope.core.storage.artifacts import UNFIT, read_json

SHIPPED = ASSETS / "audit" / "expected_f1.json"

MARGIN = 0.25
"""How far beyond the corpora the line is used, as a share of their range."""


def own_expectation(answer: Recovery) -> float:
    """Return the F1 that an attack predicts for its own answer, in [0, 1].

    Examples
    --------
    >>> from leakscope.core.results import RecoveredWord
    >>> own_expectation(Recovery((RecoveredWord("rain", 1.0), RecoveredWord("sea", 0.5))))
    0.8571428571428571
    """
    named = sum(word.score for word in answer.words)
    rest = sum(word.score for word in answer.runners_up)
    whole = len(answer.words) + named + rest
    return float(2 * named / whole) if whole else 0.0


@dataclass(frozen=True)
class ExpectedF1:
    """The regression line from an attack's predicted F1 to its true F1, fitted over corpora.

    Attributes
    ----------
    attack : str
    attack_sha256 : str
        Of the weights with which the corpora were attacked.
    corpora : tuple of str
    own : ndarray of float64, shape (K,)
        The mean of `own_expectation` on each corpus.
    f1 : ndarray of float64, shape (K,)
        The true token-set F1 in per cent.
    """

    attack: str
    attack_sha256: str
    corpora: tuple[str, ...]
    own: np.ndarray
    f1: np.ndarray

    @classmethod
    def load(cls, path: Path = SHIPPED) -> Self:
        """Load a regression line from a JSON file, by default the shipped one.

        Raises
        ------
        ArtifactError
            The file is missing, damaged, or describes no line.
        """
        stored = read_json(path)
        try:
            return cls.of_rows(stored["attack"], stored["attack_sha256"], stored["rows"])
        except UNFIT as error:
            raise ArtifactError(
                f"{path} does not contain the F1 of corpora. Restore it."
            ) from error

    @classmethod
    def for_attack(cls, attack: str, encoder: Encoder) -> Self | None:
        """Load the shipped line; return None if it was fitted on another attack or weights."""
        line = cls.load()
        is_of_it = attack == line.attack and shipped_digest(encoder, attack) == line.attack_sha256
        return line if is_of_it else None

    @classmethod
    def of_rows(cls, attack: str, digest: str, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Build the line from at least 4 rows: a corpus, its predicted mean F1 and its true one."""
        if len(rows) < 4:
            raise ValueError("a line and its error need at least 4 corpora")
        return cls(
            attack,
            digest,
            tuple(str(row["corpus"]) for row in rows),
            np.array([float(row["own"]) for row in rows]),
            np.array([float(row["f1"]) for row in rows]),
        )

    def predict(self, answers: Sequence[Recovery]) -> Score:
        """Predict the mean F1 of answers to vectors of one corpus, with its interval.

        The interval is that of a new observation on a line fitted by least squares (Student's t
        with K − 2 degrees of freedom), widened by the error of the mean over these answers.

        Parameters
        ----------
        answers : sequence of Recovery
            Of the attack with the weights that the line was measured with; at least 2.
        """
        own = np.array([own_expectation(answer) for answer in answers])
        x, k = float(own.mean()), len(self.own)
        centre = self.own.mean()
        spread = float(((self.own - centre) ** 2).sum())
        slope = float(((self.own - centre) * (self.f1 - self.f1.mean())).sum() / spread)
        start = float(self.f1.mean() - slope * centre)
        variance = float(((self.f1 - start - slope * self.own) ** 2).sum() / (k - 2))
        of_line = variance * (1 + 1 / k + (x - centre) ** 2 / spread)
        of_mean = slope**2 * float(own.var(ddof=1)) / len(own)
        half = float(stdtrit(k - 2, 0.975)) * float(np.sqrt(of_line + of_mean))
        value = start + slope * x
        low, value, high = (min(100.0, max(0.0, v)) for v in (value - half, value, value + half))
        return Score(value, Interval(low, high), len(answers))

    def covers(self, answers: Sequence[Recovery]) -> bool:
        """Return whether the answers' predicted F1 is within or near the range of the corpora.

        Beyond, the line is a guess: vectors under noise, for one, look like those of hard texts.
        """
        x = float(np.mean([own_expectation(answer) for answer in answers]))
        low, high = float(self.own.min()), float(self.own.max())
        margin = MARGIN * (high - low)
        return low - margin <= x <= high + margin
