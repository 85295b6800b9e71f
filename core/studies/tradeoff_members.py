"""What a classifier on defended vectors tells of the texts that it was trained on.

The head and the shadow models stand on the same defended vectors: whoever attacks has the vector of
the text in question as it was stored, and may train on vectors of that defence. A head that is
trained with noise is a defence of its own; the vectors that it stands on stay as they are.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.targets.private import PrivateHeads
from core.encoders.cache import CachedEncoder
from core.protocols import Encoder, Vectors
from core.results import Interval, Score
from core.studies.private_training import accounted, attacked_heads, drawn_lesson
from core.studies.rows import Cell
from core.studies.tradeoff_guards import check_same
from core.studies.tradeoff_said import attackers_told
from core.studies.tradeoff_summary import MEMBERSHIP, change_measure, utility_measure
from core.studies.tradeoff_use import contents_of, facts_of, open_tasks, sizes_of, undefended
from core.tasks.labelled import LabelledTask
from core.tasks.outcomes import Hits, Outcome
from core.training.private_heads import HeadSettings, TrainedHead, fit_head

__all__ = ["HeadUse", "head_use_scores", "member_scores"]


def member_scores(
    cell: Cell, protected: Encoder, checkpoint: Path
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return 100 × the AUC of each attack on the head's training texts; chance is 50.

    Raises
    ------
    InvalidInputError
        The task's file holds other texts than where the study was begun.
    """
    check_same(contents_of((cell["task"],), ()) == cell["contents"])
    (task,) = open_tasks((cell["task"],), ())
    assert isinstance(task, LabelledTask)
    known, _ = task.parts(seed=cell["seed"])
    lesson = drawn_lesson(task.texts, _classes(task), known, cell)
    kind = PrivateHeads(**cell["classifier_settings"])
    kind.fit_vectors(lesson, protected.encode(lesson.texts), checkpoint_dir=str(checkpoint))
    found = attacked_heads(kind, lesson, cell["attacks"])
    scores = {f"{MEMBERSHIP}: {each.plan.attack}": _hundredfold(each.auc) for each in found}
    facts = {
        "n_members": int(lesson.trained[0].sum()),
        "control_aucs": {each.plan.attack: each.control.value for each in found},
        "attackers_told": attackers_told(cell["attacks"], len(lesson.texts) // 2),
        **accounted(kind.privacy_[0], "attacked_"),
    }
    return scores, facts


def _classes(task: LabelledTask) -> NDArray[np.int64]:
    return np.unique(np.array(task.labels), return_inverse=True)[1].astype(np.int64)


def _hundredfold(score: Score) -> Score:
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)


class HeadUse:
    """What heads trained with noise are good for, and what they took.

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
        """Return on which test texts a head trained on all training texts is right."""
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
        """Return what the first head answers for vectors, so that it can be timed."""
        return self.heads[0].probabilities(vectors) if self.heads else vectors


def head_use_scores(
    cell: Cell, encoder: Encoder
) -> tuple[dict[str, Score], dict[str, Any], HeadUse]:
    """Return the accuracy of a head trained with noise on each task; all else is as without.

    It is held against the usual classifier on the same texts: what private training costs
    includes what another kind of classifier costs.
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
        **(accounted(use.heads[0].privacy) if use.heads else {}),
    }
    return scores, facts, use
