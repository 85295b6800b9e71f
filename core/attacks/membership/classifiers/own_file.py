"""Attack the uploaded outputs of a user's classifier, or simulated ones, as a background job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome, evaluate
from leakscope.core.attacks.membership.classifiers.features import confidence
from leakscope.core.attacks.membership.classifiers.limits import MOST_UPLOADED_CELLS
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.probabilities_file import (
    OwnOutputs,
    read_outputs,
    target_column,
)
from leakscope.core.attacks.membership.classifiers.report import attack_report
from leakscope.core.attacks.membership.rates import PRIORS
from leakscope.core.corpora.readers.bounded_reading import reading
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import check_upload
from leakscope.core.protocols import OnProgress, no_progress

SAMPLE_COLUMN = "sample"
_SHARE_OF_READING = 0.2


EXAMPLE_NOTE = (
    "a random generator made every number: no classifier was trained and no text was read"
)

_CLASSES = ("sport", "politics", "music")
_SPREAD = 1.0
"""Standard deviation of the ease of samples."""
_NOISE = 0.4
"""Standard deviation of a classifier's logit for one sample."""
_GAIN = 0.6
"""The increase of the true class's logit for training samples."""


def simulated_outputs(
    n_users: int = 240, n_each: int = 5, n_shadows: int = 4, *, seed: int = 0
) -> OwnOutputs:
    """Simulate the outputs of a classifier and its shadow models, each trained on half the users.

    The logit of the true class is the sum of the sample's ease, noise, and a gain if the classifier
    was trained on the sample.

    Examples
    --------
    >>> own = simulated_outputs(10, 2, 2)
    >>> len(own.target), own.target.n_classes, own.shadows.n_models
    (20, 3, 2)
    """
    rng = np.random.default_rng([seed, 21])
    n = n_users * n_each
    labels = rng.integers(0, len(_CLASSES), n)
    ease = rng.normal(1.0, _SPREAD, n)
    users = tuple(f"made-up user {1 + i // n_each}" for i in range(n))
    models = []
    for _ in range(n_shadows + 1):
        inside = rng.permutation(np.arange(n_users) < n_users // 2)
        members = np.repeat(inside, n_each)
        logits = rng.normal(0, _NOISE, (n, len(_CLASSES)))
        logits[np.arange(n), labels] += ease + _GAIN * members
        shares = np.exp(logits - logits.max(1, keepdims=True))
        models.append(Outputs(shares / shares.sum(1, keepdims=True), labels, members, users))
    return OwnOutputs(models[0], Shadows.of(models[1:]), _CLASSES, (EXAMPLE_NOTE,))


@dataclass(frozen=True, eq=False)
class AttackedOutputs:
    """A classifier's outputs and the attacks' results on them.

    Attributes
    ----------
    record : dict
        The record of `leakscope membership --json`.
    outcomes : tuple of AttackOutcome
    labels : tuple of str (n,)
        The true class of each sample.
    confidences : float array (n,)
        The probability that the classifier gives it.
    members : bool array (n,)
    users : tuple of str (n,), empty where none are known
    texts : tuple of str (n,), empty where none are known
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
        """The users' names, sorted, as a user-level ranking orders them."""
        return tuple(sorted(set(self.users)))

    def samples_of(self, user: str) -> list[int]:
        """Return the sample numbers (row indices) of a user given by name."""
        return [i for i, name in enumerate(self.users) if name == user]


def attack_upload(file: MemoryFile, on_progress: OnProgress = no_progress) -> AttackedOutputs:
    """Read an uploaded table of probabilities and run all attacks that it allows.

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
    return _attack_outputs(own, texts, on_progress)


def attack_example(on_progress: OnProgress = no_progress) -> AttackedOutputs:
    """Run all attacks on simulated outputs and mark the results as simulated."""
    found = _attack_outputs(simulated_outputs(), (), on_progress)
    return replace(found, record={"simulated": True, **found.record}, is_simulated=True)


def _attack_outputs(
    own: OwnOutputs, texts: Sequence[str], on_progress: OnProgress
) -> AttackedOutputs:
    """Run all attacks on a classifier's outputs, read or simulated, and collect the results."""
    left = 1 - _SHARE_OF_READING

    def report_attack(done: float, attack: str) -> None:
        """Report the attacks' progress, scaled to the share that is left after reading."""
        on_progress(_SHARE_OF_READING + left * done, f"Attack: {attack}")

    outcomes = evaluate(
        own.target, own.shadows, is_calibrated=True, is_checked=True, on_progress=report_attack
    )
    target = own.target
    return AttackedOutputs(
        record=attack_report(own, outcomes, PRIORS, 0),
        outcomes=tuple(outcomes),
        labels=tuple(own.classes[label] for label in target.labels.tolist()),
        confidences=confidence(target.probabilities, target.labels),
        members=target.members,
        users=target.users or (),
        texts=tuple(texts),
    )
