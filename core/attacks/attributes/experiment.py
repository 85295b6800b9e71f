"""Run attribute attacks over a sweep: one case for each training size, source and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.answers import Answers, label_ranks
from leakscope.core.attacks.attributes.attack import AttributeAttack, probabilities
from leakscope.core.attacks.attributes.draw import Draw
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.linear import LinearAttack
from leakscope.core.attacks.attributes.program import Linear, Problem
from leakscope.core.attacks.attributes.words import MajorityAttack
from leakscope.core.protocols import Encoder, OnProgress, no_progress


@dataclass(frozen=True)
class Case:
    """One attack of a sweep: its seed, source of labelled texts and training size.

    Attributes
    ----------
    seed : int
        Of the draw and of the training.
    source : str
        Where the labelled texts come from: a key of `Draw.known`.
    n_labels, n_per_label : int
        |S| and N_s.
    is_shuffled : bool
        The control: labels are permuted among the labelled texts, so there is nothing to learn.
    """

    seed: int
    source: str
    n_labels: int
    n_per_label: int
    is_shuffled: bool = False

    def training(self, drawn: Draw) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the training texts' rows and labels; in the control, the labels are permuted."""
        rows, labels = drawn.training(self.source, self.n_labels, self.n_per_label)
        if self.is_shuffled:
            labels = np.random.default_rng([self.seed, 13]).permutation(labels)
        return rows, labels


@dataclass(frozen=True)
class CaseResult:
    """The result of one case: ranks, predicted labels and the fitted classifier.

    Attributes
    ----------
    answers : Answers
        The rank of each target's label.
    predicted : ndarray of int64
        The likeliest label of each target.
    linear : Linear or None
        What a linear probe learned.
    """

    case: Case
    answers: Answers
    predicted: NDArray[np.int64]
    linear: Linear | None = None


@dataclass(frozen=True)
class SharedVectors:
    """The vectors of all texts that any case of a sweep needs, encoded once.

    Attributes
    ----------
    rows : ndarray of int64
        Of the examples, ascending.
    vectors : array
        One a row, dense or sparse.
    """

    rows: NDArray[np.int64]
    vectors: Any

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in `vectors` of the given example rows."""
        found: NDArray[np.int64] = np.searchsorted(self.rows, rows)
        return found


def encode_draws(
    examples: Examples,
    draws: Mapping[int, Draw],
    encoder: Encoder,
    on_progress: OnProgress = no_progress,
) -> SharedVectors:
    """Encode the labelled texts and the targets of all draws, each distinct text once."""
    parts = [part.ravel() for d in draws.values() for part in (d.targets, *d.known.values())]
    rows = np.unique(np.concatenate(parts))
    return SharedVectors(rows, encoder.encode([examples.texts[i] for i in rows], on_progress))


def run_cases(
    attack: AttributeAttack,
    cases: Sequence[Case],
    examples: Examples,
    draws: Mapping[int, Draw],
    shared: SharedVectors | None = None,
    on_progress: OnProgress = no_progress,
) -> list[CaseResult]:
    """Fit and test an attack on every case of a sweep; return one result per case.

    Linear classifiers of all cases are trained together on shared vectors; other attacks run one
    after the other.

    Parameters
    ----------
    attack : AttributeAttack
        Unfitted; its settings hold for every case.
    draws : mapping of int to Draw
        By seed, with the largest |S| and N_s of any case.
    shared : SharedVectors, optional
        For an attack that reads vectors.
    """
    if shared is not None and isinstance(attack, LinearAttack):
        return _run_linear_cases(attack, cases, draws, shared, on_progress)
    found = []
    for case in cases:
        found.append(_run_case(attack, case, examples, draws[case.seed]))
        on_progress(len(found) / len(cases), f"{len(found)} of {len(cases)} cases")
    return found


def _run_case(attack: AttributeAttack, case: Case, examples: Examples, drawn: Draw) -> CaseResult:
    """Fit an attack on the texts of one case, score its targets and return the result."""
    rows, labels = case.training(drawn)
    texts = [examples.texts[i] for i in rows]
    if isinstance(attack, MajorityAttack):  # labelled texts are balanced: count the targets drawn
        labels = np.repeat(np.arange(case.n_labels), drawn.n_drawn[: case.n_labels])
        texts = [""] * len(labels)
    attack.fit(texts, labels, n_labels=case.n_labels, seed=case.seed)
    targets = drawn.targets[drawn.target_indices(case.n_labels)]
    return _build_result(case, attack.scores([examples.texts[i] for i in targets]), drawn)


def _run_linear_cases(
    attack: LinearAttack,
    cases: Sequence[Case],
    draws: Mapping[int, Draw],
    shared: SharedVectors,
    on_progress: OnProgress,
) -> list[CaseResult]:
    """Train the linear classifiers of all cases on shared vectors and test each one."""
    problems = []
    for case in cases:
        rows, labels = case.training(draws[case.seed])
        problems.append(Problem(shared.places(rows), labels, case.n_labels, case.seed))
    fitted = attack.fit_problems(shared.vectors, problems, on_progress)
    found = []
    for case, linear in zip(cases, fitted, strict=True):
        drawn = draws[case.seed]
        targets = shared.places(drawn.targets[drawn.target_indices(case.n_labels)])
        found.append(_build_result(case, linear.scores(shared.vectors[targets]), drawn, linear))
    return found


def _build_result(
    case: Case, scores: NDArray[np.float32], drawn: Draw, linear: Linear | None = None
) -> CaseResult:
    """Build a case's result from its targets' label scores: ranks and predicted labels."""
    tested = drawn.target_indices(case.n_labels)
    truth = drawn.truth[tested]
    units = None if drawn.units is None else tuple(drawn.units[i] for i in tested)
    answers = Answers(label_ranks(scores, truth), truth, units)
    return CaseResult(case, answers, scores.argmax(1).astype(np.int64), linear)


@dataclass(frozen=True)
class Guess:
    """A predicted label with its probability."""

    label: str
    probability: float


def top_labels(
    linear: Linear, labels: Sequence[str], vector: NDArray[np.float32], k: int = 5
) -> tuple[Guess, ...]:
    """Return a classifier's k likeliest labels of one vector (d,), the likeliest first.

    The probabilities are the probe's, over its training labels; the true label may not be one of
    them.
    """
    shares = probabilities(linear.scores(vector[None]))[0]
    order = np.argsort(-shares, kind="stable")[:k]
    return tuple(Guess(labels[i], float(shares[i])) for i in order)
