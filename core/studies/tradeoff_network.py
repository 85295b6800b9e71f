"""What a network is worth that is fine-tuned on what users send under noise, as a point of all.

What its users release is what the mechanism releases by itself, and is attacked as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.defences.trained.constrained import ConstrainedClassifier
from core.durable import make_folder
from core.encoders.cache import CachedEncoder
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, no_progress
from core.results import Score
from core.store import storage_errors
from core.studies.rows import Cell
from core.studies.tradeoff_summary import change_measure, utility_measure
from core.studies.tradeoff_use import facts_of, open_tasks, sizes_of, undefended
from core.tasks.examples import Examples
from core.tasks.labelled import LabelledTask
from core.tasks.outcomes import Hits
from core.training.record import WorkClock

__all__ = ["NetworkUse", "network_use_scores"]


class NetworkUse:
    """Networks fine-tuned under noise, one a task, and what they took.

    Attributes
    ----------
    networks : list of ConstrainedClassifier
    """

    def __init__(self, cell: Cell, encoder: Encoder, checkpoint: Path) -> None:
        self.cell, self.checkpoint = cell, checkpoint
        self._opened = require_white_box(encoder, "A network under noise")
        self._seconds: list[float] = []
        self.networks: list[ConstrainedClassifier] = []

    @property
    def minutes(self) -> float:
        """Of the training of one, as a mean over the tasks."""
        return round(sum(self._seconds) / 60 / max(len(self._seconds), 1), 5)

    def outcome(self, task: LabelledTask) -> Hits:
        """Return on which test texts, sent under noise too, the network is right."""
        settings = self.cell["defence_settings"]
        known, held = task.parts(**sizes_of(task, self.cell))
        examples = Examples(task.name, task.texts, (), task.labels, task.splits)
        network = ConstrainedClassifier(
            mechanism=settings["sends"], eta=settings["eta"], reader=settings["network"],
            encoder=self.cell["encoder"], seed=self.cell["seed"], **self.cell["reader_settings"],
        )  # fmt: skip
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
        """Return what the first network answers for texts, so that it can be timed."""
        given = Examples("timed", tuple(texts), (), ("",) * len(texts))
        return self.networks[0].predict(self._opened, given, np.arange(len(texts)))


def network_use_scores(
    cell: Cell, encoder: Encoder, checkpoint: Path
) -> tuple[dict[str, Score], dict[str, Any], NetworkUse]:
    """Return the accuracy of a network on each task, trained and tested under noise.

    It is held against the usual classifier of undefended vectors on the same texts, as every
    defence is: what noise costs is told with what another kind of classifier gains.
    """
    use, own = NetworkUse(cell, encoder, checkpoint), CachedEncoder(encoder)
    scores: dict[str, Score] = {}
    tasks = open_tasks(cell["tasks"], ())
    for task in tasks:
        assert isinstance(task, LabelledTask)
        usual, found = undefended(task, own, **sizes_of(task, cell)), use.outcome(task)
        scores[utility_measure(task.name, task.measure)] = found.score()
        scores[change_measure(task.name, task.measure)] = found.change_from(usual, cell["seed"])
    return scores, facts_of(tasks, cell), use
