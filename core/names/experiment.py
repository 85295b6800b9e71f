"""All that the page of names shows of some sentences and names, computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.evaluation import attack_vocabulary
from core.errors import InvalidInputError
from core.names.person import PLACEHOLDER, PersonName
from core.names.probing import KNOWLEDGE, Probing, probe_names, ranks_of_truth
from core.names.sentences import NamedSentence
from core.names.substitution import Substitution, substitute_names
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.rates import mean_rate, rate_of
from core.results import Score

__all__ = [
    "MOST_NAMES",
    "MOST_VECTORS",
    "NOT_TESTABLE",
    "NameAttacker",
    "NameExperiment",
    "check_size",
    "run_experiment",
]

MOST_NAMES = 12
MOST_VECTORS = 1000
MOST_PROBED = 60

NOT_TESTABLE = "not testable by this attack"
"""Said of a surname that is not in an attack's vocabulary: it could never be read."""


@dataclass(frozen=True, kw_only=True)
class NameAttacker:
    """How often one attacker finds the name that is in a sentence.

    Attributes
    ----------
    knows : str
        A key of KNOWLEDGE; empty for the inversion attack, which has no list of names.
    rate : Score
        In per cent, of sentences; `chance` is what guessing reaches. Its n is 0 where no name
        could be tested.
    n_found, n_asked : int
        Vectors whose name it found, of those that it was asked about.
    """

    knows: str
    rate: Score
    n_found: int
    n_asked: int

    @property
    def is_testable(self) -> bool:
        """Whether this attacker could have found any of the names."""
        return self.n_asked > 0

    @property
    def beats_guessing(self) -> bool:
        """Whether its interval lies above what guessing reaches."""
        return self.is_testable and self.rate.ci95.low > self.rate.chance


@dataclass(frozen=True, eq=False)
class NameExperiment:
    """A substitution, what the attack knows of the names, and the probes.

    Parameters
    ----------
    substitution : Substitution
    training_counts : tuple of int
        Training texts that hold each surname; 0 for those that the attack cannot answer.
    probed : tuple of (sentence, name)
        Positions of the texts whose vectors were probed, drawn at random where there are many.
    probes : dict
        Knowledge to Probing, of those texts in that order.
    """

    substitution: Substitution
    training_counts: tuple[int, ...]
    probed: tuple[tuple[int, int], ...]
    probes: dict[str, Probing]

    @property
    def is_testable(self) -> NDArray[np.bool_]:
        """Whether the inversion attack can answer each surname at all, shape (C,)."""
        return np.array(self.training_counts) > 0

    def attackers(self) -> list[NameAttacker]:
        """Return what each attacker finds, the one that knows least first.

        The inversion attack is counted on the surnames that it can answer: in the sentences as
        they were written, or with other names put in where no sentence has a name of its own. The
        probes are counted on every vector that they were asked about.
        """
        matrix = self.substitution
        counted = (matrix.is_own if matrix.is_own.any() else ~matrix.is_own) & self.is_testable
        found = [_attacker("", matrix.read, counted, chance=0.0)]
        for knows in reversed(KNOWLEDGE):
            probe = self.probes[knows]
            hits = ranks_of_truth(probe.scores, probe.truth) < 1
            is_hit = np.zeros(matrix.read.shape, bool)
            is_asked = np.zeros(matrix.read.shape, bool)
            rows, columns = np.array(self.probed).T
            is_hit[rows, columns], is_asked[rows, columns] = hits, True
            chance = 100 / len(matrix.names)
            found.append(_attacker(knows, is_hit, is_asked, chance=chance))
        return found

    def strongest(self) -> NameAttacker:
        """Return the attacker that finds the largest share; of equals, the one that knows least."""
        return max(self.attackers(), key=lambda one: one.rate.value if one.is_testable else -1.0)

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each cell of the matrix; no rate where the surname is not testable."""
        found = self.substitution
        return [
            {
                "whose sentences": row.full,
                "name put in": column.full,
                "sentences": rate.n,
                "read, %": rate.value if count else None,
                "95 % from": rate.ci95.low if count else None,
                "to": rate.ci95.high if count else None,
                "training texts with it": count,
                "note": "" if count else NOT_TESTABLE,
            }
            for row in found.rows
            for column, count in zip(found.names, self.training_counts, strict=True)
            for rate in [found.cell(row, column)]
        ]


def _attacker(
    knows: str, is_hit: NDArray[np.bool_], is_asked: NDArray[np.bool_], *, chance: float
) -> NameAttacker:
    """Count hits among those asked, shape (S, C) both; vectors of one sentence are one unit."""
    n = is_asked.sum(1)
    n_found, n_asked = int((is_hit & is_asked).sum()), int(n.sum())
    if n.max() <= 1:
        rate = rate_of(n_found, n_asked)
    else:
        shares = np.where(n > 0, (is_hit & is_asked).sum(1) / np.maximum(n, 1), np.nan)
        rate = mean_rate(shares, n_trials=n_asked)
    rate = replace(rate, chance=chance)
    return NameAttacker(knows=knows, rate=rate, n_found=n_found, n_asked=n_asked)


def run_experiment(
    attack: InversionAttack,
    encoder: Encoder,
    sentences: Sequence[NamedSentence],
    names: Sequence[PersonName],
    *,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> NameExperiment:
    """Substitute, attack, and probe.

    Raises
    ------
    InvalidInputError
        Fewer than two names, or more names or vectors than the page takes.
    """
    names = [name for name in names if name != PLACEHOLDER]
    check_size(len(sentences), len(names))
    found = substitute_names(
        attack, encoder, sentences, names, lambda f, told: on_progress(0.6 * f, told)
    )
    pairs = [(s, c) for s in range(len(sentences)) for c in range(len(names))]
    rows = np.random.default_rng(seed).permutation(len(pairs))[:MOST_PROBED]
    probed = tuple(pairs[i] for i in sorted(rows))
    vectors = encoder.encode([found.texts[s][c] for s, c in probed])
    probes = {
        knows: probe_names(
            knows, encoder, [sentences[s] for s, _ in probed], vectors, [c for _, c in probed],
            names, answers=[found.answers[s][c] for s, c in probed],
            on_progress=lambda f, _, at=i: on_progress(  # type: ignore[misc]
                0.6 + 0.4 * (at + f) / len(KNOWLEDGE), "Probing for each name"
            ),
        )
        for i, knows in enumerate(KNOWLEDGE)
    }  # fmt: skip
    vocabulary = attack_vocabulary(attack, encoder)
    counts = tuple(
        min((vocabulary.document_frequency[vocabulary.index[w]] if w in vocabulary.index else 0)
            for w in name.words)
        for name in names
    )  # fmt: skip
    return NameExperiment(found, counts, probed, probes)


def check_size(n_sentences: int, n_names: int) -> None:
    """Raise InvalidInputError for fewer than two names, or more of anything than the page takes."""
    if n_names < 2:
        raise InvalidInputError("There is one name. Write at least two, to put one for the other.")
    if n_names > MOST_NAMES:
        raise InvalidInputError(
            f"There are {n_names} names; the heat map takes at most {MOST_NAMES}. For more, use "
            "the command line: python -m core study names."
        )
    if n_sentences * n_names > MOST_VECTORS:
        raise InvalidInputError(
            f"{n_sentences} sentences with {n_names} names are {n_sentences * n_names:,} vectors; "
            f"at most {MOST_VECTORS:,} are computed here. Take fewer of either."
        )
