"""All that the page of names shows of some sentences and names, computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import attack_vocabulary
from core.errors import InvalidInputError
from core.names.person import PLACEHOLDER, PersonName
from core.names.probing import KNOWLEDGE, Probing, probe_names
from core.names.sentences import NamedSentence
from core.names.substitution import Substitution, substitute_names
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress

__all__ = ["MOST_NAMES", "MOST_VECTORS", "NameExperiment", "check_size", "run_experiment"]

MOST_NAMES = 12
MOST_VECTORS = 1000
MOST_PROBED = 60


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

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each cell of the matrix."""
        found = self.substitution
        return [
            {
                "whose sentences": row.full,
                "name put in": column.full,
                "sentences": rate.n,
                "read, %": rate.value,
                "95 % from": rate.ci95.low,
                "to": rate.ci95.high,
                "training texts with it": count,
            }
            for row in found.rows
            for column, count in zip(found.names, self.training_counts, strict=True)
            for rate in [found.cell(row, column)]
        ]


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
