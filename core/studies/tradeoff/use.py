"""Utility behind each kind of defence, compared with no defence, and membership inference.

A defence of vectors is measured by the tasks' usual classifiers. A head that is trained with noise
leaves vectors unchanged, and a network under noise reads what a mechanism releases: each is
trained per task, and compared with the usual classifier of undefended vectors on the same texts, so
that its cost includes that of another kind of classifier.

In membership inference, the head and the shadow models use the same defended vectors: the attacker
has the stored vector of the text in question, and may train on vectors of that defence.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.classifiers.targets.private import PrivateHeads
from leakscope.core.defences.trained.constrained import ConstrainedClassifier
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import make_folder
from leakscope.core.studies.named_texts import contents_of, open_tasks
from leakscope.core.studies.tradeoff.summary import MEMBERSHIP, change_measure, utility_measure
from leakscope.core.studies.tradeoff.tables import attacker_facts
from leakscope.core.studies.tradeoff.trained_defences import check_unchanged
from leakscope.core.studies.training.private_training import (
    attack_first_head,
    class_numbers,
    draw_training_batch,
    head_hits,
    privacy_facts,
)
from leakscope.core.tasks.examples import Examples
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.tasks.outcomes import Hits, Outcome, Task
from leakscope.core.tasks.searches import LabelSearchTask, SearchTask
from leakscope.core.training.private_heads import HeadSettings, TrainedHead, fit_head
from leakscope.core.training.record import WorkClock

Found = tuple[dict[str, Score], dict[str, Any]]
"""Scores by measure, and facts of a row."""


def use_scores(cell: Cell, encoder: Encoder, protected: Encoder) -> Found:
    """Measure the tasks behind a defence; return scores, paired changes from none, and facts.

    Both are trained and tested on the same texts, and the difference is taken text by text. Tasks
    of the same texts share one release: no text is put through the defence twice.
    """
    released = _OneRelease(protected)
    tasks = open_tasks(cell["tasks"], cell["pairs"], cell["searches"])
    return _compare(cell, encoder, tasks, lambda t: t.outcome(released, **sizes_of(t, cell)))


def _compare(
    cell: Cell, encoder: Encoder, tasks: Sequence[Task], outcome: Callable[[Any], Any]
) -> Found:
    """Measure tasks by `outcome` and without a defence; return scores, paired changes and facts."""
    own = CachedEncoder(encoder)
    scores: dict[str, Score] = {}
    for task in tasks:
        found, usual = outcome(task), undefended(task, own, **sizes_of(task, cell))
        scores[utility_measure(task.name, task.measure)] = found.score()
        scores[change_measure(task.name, task.measure)] = found.change_from(usual, cell["seed"])
    label_searches = [task.name for task in tasks if isinstance(task, LabelSearchTask)]
    return scores, {
        **({"label_searches": label_searches} if label_searches else {}),
        "same_texts": [task.name for task in tasks if task.has_official_split],
        "task_near_duplicates": {
            task.name: task.n_near_duplicates(**sizes_of(task, cell))
            for task in tasks
            if isinstance(task, LabelledTask | LabelSearchTask)
        },
    }


class _OneRelease:
    """A protected encoder that releases each list of texts only once."""

    def __init__(self, protected: Encoder) -> None:
        """Wrap a protected encoder, with an empty memory of releases."""
        self._protected = protected
        self._released: dict[bytes, Vectors] = {}
        self.name, self.dimension = protected.name, protected.dimension
        self.fingerprint = protected.fingerprint

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode texts; for the same list again, return its first release from memory."""
        key = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        if key not in self._released:
            self._released[key] = self._protected.encode(texts, on_progress)
        return self._released[key]


def sizes_of(task: Task, cell: Cell) -> dict[str, int]:
    """Return a task's numbers of training and test texts, and the seed, as keyword arguments."""
    n_test = cell["n_test"]
    if isinstance(task, SearchTask):
        n_test = min(cell["n_searched"], len(task.queries))
    return {"n_train": cell["n_train"], "n_test": n_test, "seed": cell["seed"]}


_OUTCOMES: dict[tuple[Any, ...], Outcome] = {}
"""Outcomes without a defence in this process: the baseline of every defence."""


def undefended(task: Task, own: Encoder, **sizes: int) -> Any:
    """Measure a task without a defence, once per process, and return its outcome."""
    place = (own.fingerprint, getattr(own, "precision", ""), task, *sizes.values())
    if place not in _OUTCOMES:
        if len(_OUTCOMES) > 100:
            _OUTCOMES.clear()
        _OUTCOMES[place] = task.outcome(own, **sizes)
    return _OUTCOMES[place]


class HeadUse:
    """Trains a noisy classifier head per labelled task; measures its accuracy and training time.

    Attributes
    ----------
    heads : list of TrainedHead
    """

    def __init__(self, cell: Cell, encoder: Encoder) -> None:
        """Prepare to train heads on the vectors of a cell's tasks; nothing is trained yet."""
        self.cell, self.encoder, self.own = cell, encoder, CachedEncoder(encoder)
        self._seconds, self.heads = 0.0, list[TrainedHead]()

    @property
    def minutes(self) -> float:
        """The mean training time per task, in minutes."""
        return round(self._seconds / 60 / max(len(self.heads), 1), 5)

    def scores(self) -> Found:
        """Train a noisy head on each labelled task; return scores, paired changes and facts."""
        tasks = open_tasks(self.cell["tasks"], self.cell["pairs"], self.cell["searches"])
        scores, facts = _compare(self.cell, self.encoder, tasks, self._outcome)
        facts["as_without"] = [t.name for t in tasks if not isinstance(t, LabelledTask)]
        return scores, facts | (privacy_facts(self.heads[0].privacy) if self.heads else {})

    def _outcome(self, task: Task) -> Outcome:
        """Train a head on a task's training texts; return which test texts it gets right."""
        sizes = sizes_of(task, self.cell)
        if not isinstance(task, LabelledTask):
            found: Outcome = undefended(task, self.own, **sizes)
            return found
        known, held = task.parts(**sizes)
        ids, vectors = class_numbers(task), self.own.encode(task.texts)
        settings = HeadSettings(**self.cell["classifier_settings"])
        begun = time.perf_counter()
        head = fit_head(vectors[known], ids[known], int(ids.max()) + 1, settings, sizes["seed"])
        self._seconds += time.perf_counter() - begun
        self.heads.append(head)
        return head_hits(head, task, vectors, ids, held)

    def answer(self, texts: Sequence[str]) -> Vectors:
        """Encode texts and classify them by the first head, to measure its time."""
        vectors = self.encoder.encode(texts)
        return self.heads[0].probabilities(vectors) if self.heads else vectors


class NetworkUse:
    """Fine-tunes a network under noise per task, and measures its accuracy and training time.

    Attributes
    ----------
    networks : list of ConstrainedClassifier
    """

    def __init__(self, cell: Cell, encoder: Encoder, checkpoint: Path) -> None:
        """Prepare to fine-tune networks on tasks; raise unless the encoder is white-box."""
        self.cell, self.encoder, self.checkpoint = cell, encoder, checkpoint
        self._opened = require_white_box(encoder, "A network under noise")
        self._seconds: list[float] = []
        self.networks: list[ConstrainedClassifier] = []

    @property
    def minutes(self) -> float:
        """The mean training time per task, in minutes."""
        return round(sum(self._seconds) / 60 / max(len(self._seconds), 1), 5)

    def scores(self) -> Found:
        """Fine-tune a network under noise on each task; return accuracies, changes and facts."""
        return _compare(self.cell, self.encoder, open_tasks(self.cell["tasks"], ()), self._outcome)

    def _outcome(self, task: LabelledTask) -> Hits:
        """Fine-tune a network on a task; return which noisy test texts it classifies correctly."""
        settings = self.cell["defence_settings"]
        known, held = task.parts(**sizes_of(task, self.cell))
        examples = Examples(task.name, task.texts, (), task.labels, task.splits)
        network = ConstrainedClassifier(
            mechanism=settings["sends"],
            eta=settings["eta"],
            reader=settings["network"],
            encoder=self.cell["encoder"],
            seed=self.cell["seed"],
            **self.cell["reader_settings"],
        )
        place = self.checkpoint / str(len(self.networks))
        with storage_errors(place):
            make_folder(place)
        clock = WorkClock(place / "clock.json", {"task": task.name}, no_progress)
        network.fit(self._opened, examples, known, checkpoint_dir=place, on_progress=clock.report)
        self._seconds.append(clock.seconds)
        self.networks.append(network)
        right = network.predict(self._opened, examples, held) == examples.class_ids[held]
        counts = np.bincount(examples.class_ids[held])
        return Hits(right, 100 * float(counts.max()) / len(held), task.units(held))

    def answer(self, texts: Sequence[str]) -> Any:
        """Predict classes of texts by the first network, to measure its time."""
        given = Examples("timed", tuple(texts), (), ("",) * len(texts))
        return self.networks[0].predict(self._opened, given, np.arange(len(texts)))


def member_scores(cell: Cell, protected: Encoder, checkpoint: Path) -> Found:
    """Train a classifier and its shadows; return each membership attack's 100 × AUC, and facts.

    Raises
    ------
    InvalidInputError
        The task's file has changed since the study was started.
    """
    check_unchanged(contents_of((cell["task"],), ()) == cell["contents"])
    (task,) = open_tasks((cell["task"],), ())
    assert isinstance(task, LabelledTask)
    known, _ = task.parts(seed=cell["seed"])
    batch = draw_training_batch(task.texts, class_numbers(task), known, cell)
    kind = PrivateHeads(**cell["classifier_settings"])
    kind.fit_vectors(batch, protected.encode(batch.texts), checkpoint_dir=str(checkpoint))
    found = attack_first_head(kind, batch, cell["attacks"])
    scores = {f"{MEMBERSHIP}: {each.plan.attack}": each.auc.in_percent() for each in found}
    facts = {
        "n_members": int(batch.trained[0].sum()),
        "control_aucs": {each.plan.attack: each.control.value for each in found},
        "attackers_told": attacker_facts(cell["attacks"], len(batch.texts) // 2),
        **privacy_facts(kind.privacy_[0], "attacked_"),
    }
    return scores, facts
