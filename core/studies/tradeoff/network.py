"""Utility of a network that is fine-tuned on noisy texts, as a trade-off point.

Only the mechanism on its input releases something, so leakage is that of the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.defences.trained.constrained import ConstrainedClassifier
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, no_progress
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import make_folder
from leakscope.core.studies.tradeoff.summary import change_measure, utility_measure
from leakscope.core.studies.tradeoff.use import facts_of, open_tasks, sizes_of, undefended
from leakscope.core.tasks.examples import Examples
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.tasks.outcomes import Hits
from leakscope.core.training.record import WorkClock


class NetworkUse:
    """Fine-tunes a network under noise per task, and measures its accuracy and training time.

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
        """The mean training time per task, in minutes."""
        return round(sum(self._seconds) / 60 / max(len(self._seconds), 1), 5)

    def outcome(self, task: LabelledTask) -> Hits:
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
        """Return the first network's predictions for texts, to measure its time."""
        given = Examples("timed", tuple(texts), (), ("",) * len(texts))
        return self.networks[0].predict(self._opened, given, np.arange(len(texts)))


def network_use_scores(
    cell: Cell, encoder: Encoder, checkpoint: Path
) -> tuple[dict[str, Score], dict[str, Any], NetworkUse]:
    """Return the accuracy of a network on each task under noise, with changes, facts and networks.

    Changes are relative to the usual classifier of undefended vectors on the same texts, as for
    every defence: the cost of noise includes the gain from another kind of classifier.
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
