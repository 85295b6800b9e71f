"""The names page's experiment: substitution, inversion and probing together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.evaluation import attack_vocabulary
from leakscope.core.attacks.inversion.job import shared_attack
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import mean_rate, rate_of
from leakscope.core.names.person import PLACEHOLDER, PersonName
from leakscope.core.names.probing import KNOWLEDGE, Probing, probe_names, ranks_of_truth
from leakscope.core.names.sentences import NamedSentence
from leakscope.core.names.substitution import Substitution, substitute_names
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import AttackSpec, EncoderSpec

MOST_NAMES = 12
MOST_VECTORS = 1000
MOST_PROBED = 60

NOT_TESTABLE = "not testable by this attack"
"""Note on a surname outside an attack's vocabulary, which it can never recover."""


@dataclass(frozen=True, kw_only=True)
class NameAttacker:
    """How often one attacker finds the name in a sentence.

    Attributes
    ----------
    knows : str
        A key of KNOWLEDGE; empty for the inversion attack, which has no list of names.
    rate : Score
        In per cent of sentences; `chance` is the guessing rate. Its n is 0 if no name could be
        tested.
    n_found, n_asked : int
        Vectors whose name it found, and vectors that it was tested on.
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
        """Whether the interval of the attacker's rate lies above the guessing rate."""
        return self.is_testable and self.rate.ci95.low > self.rate.chance


@dataclass(frozen=True, eq=False)
class NameExperiment:
    """A name substitution, training counts of the surnames, and probing results.

    Parameters
    ----------
    substitution : Substitution
    training_counts : tuple of int
        Training texts that contain each surname; 0 for surnames outside the vocabulary.
    probed : tuple of (sentence, name)
        Positions of the texts whose vectors were probed, drawn at random if there are many.
    probes : dict
        A Probing by what the attacker knows, on those texts in that order.
    """

    substitution: Substitution
    training_counts: tuple[int, ...]
    probed: tuple[tuple[int, int], ...]
    probes: dict[str, Probing]

    @property
    def is_testable(self) -> NDArray[np.bool_]:
        """Whether each surname is in the inversion attack's vocabulary, shape (C,)."""
        return np.array(self.training_counts) > 0

    def attackers(self) -> list[NameAttacker]:
        """Compute each attacker's success rate, from least to most knowledge.

        The inversion attack is scored on the surnames in its vocabulary: in the unchanged
        sentences, or with inserted names if no sentence has an original name. The probes are scored
        on every vector that they were tested on.
        """
        matrix = self.substitution
        counted = (matrix.is_own if matrix.is_own.any() else ~matrix.is_own) & self.is_testable
        found = [_make_attacker("", matrix.is_recovered, counted, chance=0.0)]
        for knows in reversed(KNOWLEDGE):
            probe = self.probes[knows]
            hits = ranks_of_truth(probe.scores, probe.truth) < 1
            is_hit = np.zeros(matrix.is_recovered.shape, bool)
            is_asked = np.zeros(matrix.is_recovered.shape, bool)
            rows, columns = np.array(self.probed).T
            is_hit[rows, columns], is_asked[rows, columns] = hits, True
            chance = 100 / len(matrix.names)
            found.append(_make_attacker(knows, is_hit, is_asked, chance=chance))
        return found

    def strongest(self) -> NameAttacker:
        """Return the attacker with the highest rate; among equals, the one with least knowledge."""
        return max(self.attackers(), key=lambda one: one.rate.value if one.is_testable else -1.0)

    def table(self) -> list[dict[str, Any]]:
        """Return export records, one per (original name, inserted name) cell of the matrix."""
        found = self.substitution
        return [
            {
                "original name": row.full,
                "inserted name": column.full,
                "sentences": rate.n,
                "recovered, %": rate.value if count else None,
                "95 % CI from": rate.ci95.low if count else None,
                "95 % CI to": rate.ci95.high if count else None,
                "training texts with the name": count,
                "note": "" if count else NOT_TESTABLE,
            }
            for row in found.rows
            for column, count in zip(found.names, self.training_counts, strict=True)
            for rate in [found.cell(row, column)]
        ]


def _make_attacker(
    knows: str, is_hit: NDArray[np.bool_], is_asked: NDArray[np.bool_], *, chance: float
) -> NameAttacker:
    """Build a NameAttacker from hit and asked masks, both (S, C); a sentence is one unit."""
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
    """Insert every name into every sentence, invert the vectors and probe for the names.

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
            knows,
            encoder,
            [sentences[s] for s, _ in probed],
            vectors,
            [c for _, c in probed],
            names,
            answers=[found.answers[s][c] for s, c in probed],
            on_progress=lambda f, _, at=i: on_progress(  # type: ignore[misc]
                0.6 + 0.4 * (at + f) / len(KNOWLEDGE), "Probing for each name"
            ),
        )
        for i, knows in enumerate(KNOWLEDGE)
    }
    vocabulary = attack_vocabulary(attack, encoder)
    counts = tuple(
        min(
            (vocabulary.document_frequency[vocabulary.index[w]] if w in vocabulary.index else 0)
            for w in name.words
        )
        for name in names
    )
    return NameExperiment(found, counts, probed, probes)


def check_size(n_sentences: int, n_names: int) -> None:
    """Raise InvalidInputError for fewer than two names, or too many names or vectors."""
    if n_names < 2:
        raise InvalidInputError("There is only one name. Write at least two, to exchange them.")
    if n_names > MOST_NAMES:
        raise InvalidInputError(
            f"There are {n_names} names; the heat map takes at most {MOST_NAMES}. For more, use "
            "the command line: leakscope study names."
        )
    if n_sentences * n_names > MOST_VECTORS:
        raise InvalidInputError(
            f"{n_sentences} sentences with {n_names} names are {n_sentences * n_names:,} vectors; "
            f"at most {MOST_VECTORS:,} are computed here. Use fewer sentences or names."
        )


def compare_names(
    attack: AttackSpec,
    on: EncoderSpec,
    sentences: Sequence[NamedSentence],
    names: Sequence[PersonName],
    on_progress: OnProgress = no_progress,
) -> NameExperiment:
    """Load the specified attack and encoder, and run the names experiment.

    Raises
    ------
    InvalidInputError
        Fewer than two names, or more names or vectors than the page takes.
    """
    on_progress(0.0, "Loading the attack")
    ready, encoder = shared_attack(attack, on), shared_encoder(on)
    return run_experiment(ready, encoder, sentences, names, on_progress=on_progress)
