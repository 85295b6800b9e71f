"""Membership inference against a classifier on defended vectors.

The head and the shadow models use the same defended vectors: the attacker has the stored vector of
the text in question, and may train on vectors of that defence. A head that is trained with noise is
a separate defence, which leaves vectors unchanged.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.targets.private import PrivateHeads
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell
from leakscope.core.studies.tradeoff.captions import attacker_facts
from leakscope.core.studies.tradeoff.guards import check_unchanged
from leakscope.core.studies.tradeoff.summary import MEMBERSHIP, change_measure, utility_measure
from leakscope.core.studies.tradeoff.use import (
    contents_of,
    facts_of,
    open_tasks,
    sizes_of,
    undefended,
)
from leakscope.core.studies.training.private_training import (
    attack_first_head,
    draw_training_batch,
    privacy_facts,
)
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.tasks.outcomes import Hits, Outcome
from leakscope.core.training.private_heads import HeadSettings, TrainedHead, fit_head


def member_scores(
    cell: Cell, protected: Encoder, checkpoint: Path
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return 100 × AUC of each membership attack on the classifier's training texts, and facts.

    Raises
    ------
    InvalidInputError
        The task's file has changed since the study was started.
    """
    check_unchanged(contents_of((cell["task"],), ()) == cell["contents"])
    (task,) = open_tasks((cell["task"],), ())
    assert isinstance(task, LabelledTask)
    known, _ = task.parts(seed=cell["seed"])
    lesson = draw_training_batch(task.texts, _classes(task), known, cell)
    kind = PrivateHeads(**cell["classifier_settings"])
    kind.fit_vectors(lesson, protected.encode(lesson.texts), checkpoint_dir=str(checkpoint))
    found = attack_first_head(kind, lesson, cell["attacks"])
    scores = {f"{MEMBERSHIP}: {each.plan.attack}": _in_percent(each.auc) for each in found}
    facts = {
        "n_members": int(lesson.trained[0].sum()),
        "control_aucs": {each.plan.attack: each.control.value for each in found},
        "attackers_told": attacker_facts(cell["attacks"], len(lesson.texts) // 2),
        **privacy_facts(kind.privacy_[0], "attacked_"),
    }
    return scores, facts


def _classes(task: LabelledTask) -> NDArray[np.int64]:
    """Return the class of each text of a task as a number."""
    return np.unique(np.array(task.labels), return_inverse=True)[1].astype(np.int64)


def _in_percent(score: Score) -> Score:
    """Convert a score from a share to per cent."""
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)


class HeadUse:
    """Trains a noisy classifier head per task, and measures its accuracy and training time.

    Attributes
    ----------
    seconds : float
        Of the training of all heads.
    heads : list of TrainedHead
    """

    def __init__(self, cell: Cell, encoder: Encoder) -> None:
        self.cell, self.own = cell, CachedEncoder(encoder)
        self.seconds, self.heads = 0.0, list[TrainedHead]()

    def outcome(self, task: LabelledTask) -> Hits:
        """Train a head on a task's training texts; return which test texts it gets right."""
        sizes = sizes_of(task, self.cell)
        known, held = task.parts(**sizes)
        ids, vectors = _classes(task), self.own.encode(task.texts)
        settings = HeadSettings(**self.cell["classifier_settings"])
        begun = time.perf_counter()
        head = fit_head(vectors[known], ids[known], int(ids.max()) + 1, settings, sizes["seed"])
        self.seconds += time.perf_counter() - begun
        self.heads.append(head)
        chance = 100 * float(np.bincount(ids[held]).max()) / len(held)
        return Hits(
            head.probabilities(vectors[held]).argmax(1) == ids[held], chance, task.units(held)
        )

    def encode(self, vectors: Vectors) -> Vectors:
        """Return the first head's probabilities for vectors, to measure its time."""
        return self.heads[0].probabilities(vectors) if self.heads else vectors


def head_use_scores(
    cell: Cell, encoder: Encoder
) -> tuple[dict[str, Score], dict[str, Any], HeadUse]:
    """Return the accuracy of a noisy head on each task, with paired changes, facts and heads.

    Changes are relative to the usual classifier on the same texts: the cost of private training
    includes that of another kind of classifier.
    """
    use = HeadUse(cell, encoder)
    scores: dict[str, Score] = {}
    tasks = open_tasks(cell["tasks"], cell["pairs"], cell["searches"])
    for task in tasks:
        usual = undefended(task, use.own, **sizes_of(task, cell))
        found: Outcome = use.outcome(task) if isinstance(task, LabelledTask) else usual
        scores[utility_measure(task.name, task.measure)] = found.score()
        scores[change_measure(task.name, task.measure)] = found.change_from(usual, cell["seed"])
    facts = {
        **facts_of(tasks, cell),
        "as_without": [task.name for task in tasks if not isinstance(task, LabelledTask)],
        **(privacy_facts(use.heads[0].privacy) if use.heads else {}),
    }
    return scores, facts, use
