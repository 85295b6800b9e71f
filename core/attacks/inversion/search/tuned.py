"""Adapt a trained re-embedding search to another classifier or to changed vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakscope.core.attacks.fitted import bind
from leakscope.core.attacks.inversion.augmentation import substitute_words
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.search.attack import SearchAttack
from leakscope.core.attacks.inversion.search.correction import CorrectionPlan, Corrections
from leakscope.core.protocols import Encoder, OnProgress, no_progress, part_progress
from leakscope.core.specs import setting_values


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """How many texts and epochs the adaptation uses; fewer than the first training.

    Attributes
    ----------
    n_corrected : int
        Auxiliary texts, with words exchanged, to train the correctors on.
    epochs : int
        At most, of a corrector.
    n_mapped : int
        Auxiliary texts to learn the map from word lists to sentences.
    n_calibration : int
        Texts that nothing was trained on, to learn the judgement from.
    """

    n_corrected: int = 2000
    epochs: int = 2
    learning_rate: float = 3e-4
    n_mapped: int = 2000
    n_calibration: int = 200
    seed: int = 0


def tune_search(
    search: SearchAttack,
    base: ProbeMLCAttack,
    encoders: tuple[Encoder, Encoder],
    texts: tuple[Sequence[str], Sequence[str]],
    plan: SearchPlan,
    on_progress: OnProgress = no_progress,
) -> SearchAttack:
    """Return a copy of a search with another classifier: its correctors, map and judges retrained.

    Correctors are fine-tuned from the existing ones; a search without any stays without.

    Parameters
    ----------
    base : ProbeMLCAttack
        The classifier to put underneath, of the same vocabulary.
    encoders : (queried, attacked)
        The encoder of the tried words, and that of the vectors under attack.
    texts : (known, held)
        Auxiliary texts, and others that neither classifier nor correctors were trained on.
    """
    queried, attacked = encoders
    known, held = texts
    tuned = SearchAttack(**setting_values(search))
    bind(tuned, queried, base.vocabulary_)
    tuned.base_ = base
    corrections = getattr(search, "corrections_", None)
    start = [] if corrections is None else corrections.correctors
    tuned.corrections_ = Corrections(base.model_, base.vocabulary_, tuned.size_factor)
    if start:
        changed = substitute_words(
            known[: plan.n_corrected], base.vocabulary_, seed=plan.seed + 101
        )
        training = CorrectionPlan(
            n_rounds=len(start),
            hidden=start[0].residual[0].out_features,
            epochs=plan.epochs,
            learning_rate=plan.learning_rate,
            seed=plan.seed,
        )
        report = part_progress(on_progress, 0.0, 0.5)
        vectors = attacked.encode(changed)
        tuned.corrections_.fit(queried, changed, vectors, training, start=start, on_progress=report)
    report = part_progress(on_progress, 0.5, 1.0)
    texts_of_judges = held[: plan.n_calibration], known[: plan.n_mapped]
    return tuned.fit_judgement(queried, *texts_of_judges, report, attacked=attacked)
