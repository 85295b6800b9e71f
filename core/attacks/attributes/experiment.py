"""Attacks on draws of labelled texts: each size and each seed a case, many of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.answers import Answers, ranks_of
from core.attacks.attributes.attack import AttributeAttack, probabilities
from core.attacks.attributes.discriminant import Discriminant, discriminant_of
from core.attacks.attributes.draw import Draw
from core.attacks.attributes.examples import Examples
from core.attacks.attributes.linear import LinearProbe, train_all
from core.attacks.attributes.majority import MajorityAttack
from core.attacks.attributes.program import Linear, Problem
from core.protocols import Encoder, OnProgress, no_progress

__all__ = ["Case", "Found", "Guess", "Shared", "answer_all", "likeliest", "share_vectors"]


@dataclass(frozen=True)
class Case:
    """One attack of a sweep.

    Attributes
    ----------
    seed : int
        Of the draw and of the training.
    source : str
        Where the labelled texts come from, as `Draw.known` tells it.
    n_labels, n_per_label : int
        |S| and N_s.
    is_shuffled : bool
        The control: labels are dealt out among the labelled texts by chance, so that there is
        nothing to learn.
    """

    seed: int
    source: str
    n_labels: int
    n_per_label: int
    is_shuffled: bool = False

    def training(self, drawn: Draw) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the labelled rows, and the number of each one's label."""
        rows, labels = drawn.training(self.source, self.n_labels, self.n_per_label)
        if self.is_shuffled:
            labels = np.random.default_rng([self.seed, 13]).permutation(labels)
        return rows, labels


@dataclass(frozen=True)
class Found:
    """What came of a case.

    Attributes
    ----------
    answers : Answers
        The rank of each target's label.
    said : ndarray of int64
        The likeliest label of each target.
    linear : Linear or None
        What a linear probe learned.
    """

    case: Case
    answers: Answers
    said: NDArray[np.int64]
    linear: Linear | None = None


@dataclass(frozen=True)
class Shared:
    """Vectors of all texts that any case needs, encoded once.

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
        """Return where the vectors of some rows stand."""
        found: NDArray[np.int64] = np.searchsorted(self.rows, rows)
        return found


def share_vectors(
    examples: Examples,
    draws: Mapping[int, Draw],
    encoder: Encoder,
    on_progress: OnProgress = no_progress,
) -> Shared:
    """Encode the labelled texts and the targets of all draws."""
    parts = [part.ravel() for d in draws.values() for part in (d.targets, *d.known.values())]
    rows = np.unique(np.concatenate(parts))
    return Shared(rows, encoder.encode([examples.texts[i] for i in rows], on_progress))


def answer_all(
    attack: AttributeAttack,
    cases: Sequence[Case],
    examples: Examples,
    draws: Mapping[int, Draw],
    shared: Shared | None = None,
    on_progress: OnProgress = no_progress,
) -> list[Found]:
    """Return what an attack finds in each case.

    The linear classifiers of all cases are trained over the vectors that they share, those that
    take steps together; other attacks one after the other.

    Parameters
    ----------
    attack : AttributeAttack
        Unfitted; its settings hold for every case.
    draws : mapping of int to Draw
        By seed, of the largest |S| and N_s that a case asks for.
    shared : Shared, optional
        For an attack that reads vectors.
    """
    if shared is not None and isinstance(attack, LinearProbe | Discriminant):
        return _together(attack, cases, draws, shared, on_progress)
    found = []
    for case in cases:
        found.append(_alone(attack, case, examples, draws[case.seed]))
        on_progress(len(found) / len(cases), f"{len(found)} of {len(cases)} cases")
    return found


def _alone(attack: AttributeAttack, case: Case, examples: Examples, drawn: Draw) -> Found:
    rows, labels = case.training(drawn)
    texts = [examples.texts[i] for i in rows]
    if isinstance(attack, MajorityAttack):  # as many texts of each label are labelled: those drawn
        labels = np.repeat(np.arange(case.n_labels), drawn.n_drawn[: case.n_labels])
        texts = [""] * len(labels)
    attack.fit(texts, labels, n_labels=case.n_labels, seed=case.seed)
    targets = drawn.targets[drawn.tested(case.n_labels)]
    return _found(case, attack.scores([examples.texts[i] for i in targets]), drawn)


def _together(
    probe: LinearProbe | Discriminant,
    cases: Sequence[Case],
    draws: Mapping[int, Draw],
    shared: Shared,
    on_progress: OnProgress,
) -> list[Found]:
    problems = []
    for case in cases:
        rows, labels = case.training(draws[case.seed])
        problems.append(Problem(shared.places(rows), labels, case.n_labels, case.seed))
    if isinstance(probe, Discriminant):
        fitted = [discriminant_of(shared.vectors, problem) for problem in problems]
    else:
        fitted = train_all(shared.vectors, problems, probe.recipe, on_progress=on_progress)
    found = []
    for case, linear in zip(cases, fitted, strict=True):
        drawn = draws[case.seed]
        targets = shared.places(drawn.targets[drawn.tested(case.n_labels)])
        found.append(_found(case, linear.scores(shared.vectors[targets]), drawn, linear))
    return found


def _found(
    case: Case, scores: NDArray[np.float32], drawn: Draw, linear: Linear | None = None
) -> Found:
    tested = drawn.tested(case.n_labels)
    truth = drawn.truth[tested]
    units = None if drawn.units is None else tuple(drawn.units[i] for i in tested)
    answers = Answers(ranks_of(scores, truth), truth, units)
    return Found(case, answers, scores.argmax(1).astype(np.int64), linear)


@dataclass(frozen=True)
class Guess:
    """A label with its probability."""

    label: str
    probability: float


def likeliest(
    linear: Linear, labels: Sequence[str], vector: NDArray[np.float32], k: int = 5
) -> tuple[Guess, ...]:
    """Return the k likeliest labels of one vector (d,), the likeliest first.

    The probabilities are the probe's own, of the labels that it was trained on: the true one may be
    none of them.
    """
    shares = probabilities(linear.scores(vector[None]))[0]
    order = np.argsort(-shares, kind="stable")[:k]
    return tuple(Guess(labels[i], float(shares[i])) for i in order)
