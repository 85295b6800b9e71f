"""Attacking a classifier of which somebody uploaded the answers: work for a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.evaluation import AttackOutcome, evaluate
from core.attacks.membership.classifiers.example import simulated_outputs
from core.attacks.membership.classifiers.features import confidence
from core.attacks.membership.classifiers.limits import MOST_UPLOADED_CELLS
from core.attacks.membership.classifiers.probabilities_file import (
    OwnOutputs,
    read_outputs,
    target_column,
)
from core.attacks.membership.classifiers.told import result_of
from core.attacks.membership.rates import PRIORS
from core.corpora.apart import reading
from core.corpora.memory_file import MemoryFile
from core.corpora.uploads import check_upload
from core.protocols import OnProgress, no_progress

__all__ = ["OwnAttacked", "attack_example", "attack_upload"]

SAMPLE_COLUMN = "sample"
_SHARE_OF_READING = 0.2


@dataclass(frozen=True, eq=False)
class OwnAttacked:
    """A classifier's answers, and what attacks made of them.

    Attributes
    ----------
    record : dict
        What `core membership --json` tells.
    outcomes : tuple of AttackOutcome
    labels : tuple of str (n,)
        The true class of each sample.
    confidences : float array (n,)
        The probability that the classifier gives it.
    members : bool array (n,)
    users : tuple of str (n,), empty where none are told
    texts : tuple of str (n,), empty where none are told
        Of the column `text`, else `sample`.
    is_simulated : bool
        Nothing of it was measured; the record says so, too.
    """

    record: dict[str, Any]
    outcomes: tuple[AttackOutcome, ...]
    labels: tuple[str, ...]
    confidences: NDArray[np.float64]
    members: NDArray[np.bool_]
    users: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    is_simulated: bool = False

    @property
    def user_names(self) -> tuple[str, ...]:
        """The users in the order of a ranking of users."""
        return tuple(sorted(set(self.users)))

    def samples_of(self, user: str) -> list[int]:
        """Return the numbers of a user's samples."""
        return [i for i, name in enumerate(self.users) if name == user]


def attack_upload(file: MemoryFile, on_progress: OnProgress = no_progress) -> OwnAttacked:
    """Read a table of probabilities and run all attacks that it allows.

    Raises
    ------
    InvalidInputError
        The file, a column or a row cannot be used; the message names it and the remedy.
    """
    on_progress(0.0, "Reading the table")
    with reading():
        check_upload(file)
        own = read_outputs(file, most_cells=MOST_UPLOADED_CELLS)
        texts = own.texts or target_column(file, SAMPLE_COLUMN)
    return _attacked(own, texts, on_progress)


def attack_example(on_progress: OnProgress = no_progress) -> OwnAttacked:
    """Run all attacks on made-up answers."""
    found = _attacked(simulated_outputs(), (), on_progress)
    return replace(found, record={"simulated": True, **found.record}, is_simulated=True)


def _attacked(own: OwnOutputs, texts: Sequence[str], on_progress: OnProgress) -> OwnAttacked:
    left = 1 - _SHARE_OF_READING

    def tell(done: float, attack: str) -> None:
        on_progress(_SHARE_OF_READING + left * done, f"Attack: {attack}")

    outcomes = evaluate(
        own.target, own.shadows, is_calibrated=True, is_checked=True, on_progress=tell
    )
    target = own.target
    return OwnAttacked(
        record=result_of(own, outcomes, PRIORS, 0),
        outcomes=tuple(outcomes),
        labels=tuple(own.classes[label] for label in target.labels.tolist()),
        confidences=confidence(target.probabilities, target.labels),
        members=target.members,
        users=target.users or (),
        texts=tuple(texts),
    )
