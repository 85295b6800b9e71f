"""What classifiers are worth that only ever see noise (Qu et al. 2021, Tables 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.defences.registry import DEFENCES
from core.defences.trained.constrained import usual_rate
from core.defences.trained.under_noise.registry import READERS, RELEASES
from core.defences.trained.under_noise.user_side import MECHANISMS
from core.specs import REQUIRED, setting
from core.studies.in_order import TEXT, TOKEN, change_from
from core.studies.named_texts import check_names
from core.studies.privacy_paper import MATCHED, paper_eta
from core.studies.privacy_tables import constrained_markdown as markdown
from core.studies.rows import Cell, Row
from core.studies.tuned_networks import (
    examples_of,
    same_without_noise,
    tuned_for,
    without_noise,
)

__all__ = ["ConstrainedStudy", "markdown", "measure"]


@dataclass(frozen=True, kw_only=True)
class ConstrainedStudy:
    """Tasks × networks × mechanisms × η: fine-tuned and tested under noise."""

    tasks: tuple[str, ...] = setting(
        REQUIRED, "texts, or pairs of texts, with a `label`: NAME=FILE", holds="examples"
    )
    readers: tuple[str, ...] = setting(
        tuple(READERS), "networks that are trained", choices=tuple(READERS)
    )
    mechanisms: tuple[str, ...] = setting(MECHANISMS, "what users send", choices=MECHANISMS)
    etas: tuple[float, ...] = setting(
        tuple(MATCHED), "privacy parameters, in 1/distance", low=1e-6, high=1e6
    )
    releases: tuple[str, ...] = setting(
        ("once",),
        "noisy copies of each training text: one, as a guarantee covers it, or a fresh one in "
        "every epoch, as in the paper, whose odds compose",
        choices=RELEASES,
    )
    encoder: str = setting("minilm", "whose word embeddings users have, and what is fine-tuned")
    n_train: int = setting(0, "texts of each task to train on at most; 0 for all", low=0)
    n_test: int = setting(0, "texts of each task to test on at most; 0 for all", low=0)
    epochs: int = setting(0, "passes over the texts; 0: each network's own", low=0, high=1000)
    batch_size: int = setting(32, "texts of a step", low=1, high=4096, paper="Q21")
    max_length: int = setting(128, "word pieces that are read", low=5, high=512, paper="Q21")
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)
    compares: bool = setting(True, "train the same networks without noise too, and compare")

    def cells(self) -> list[Cell]:
        """Return what is to be measured; without noise first, which all else is held against."""
        return [
            {**task, **self.tuning(reader, mechanism, releases), "defence": mechanism,
             "defence_settings": {} if eta is None else {"eta": eta},
             **self._beside(mechanism), **({} if self.compares else {"compares": False}),
             "seed": seed}
            for mechanism, eta in self._constraints()
            for releases in (self.releases if mechanism != "none" else self.releases[:1])
            for task in self.texts("constrained")
            for reader in self.readers
            if mechanism != "sequence_representation" or READERS[reader].is_pretrained
            for seed in self.seeds
        ]  # fmt: skip

    def _constraints(self) -> Iterator[tuple[str, float | None]]:
        for mechanism in (each for each in MECHANISMS if each in self.mechanisms):
            if mechanism == "none":
                yield mechanism, None
                continue
            for eta in self.etas:
                yield mechanism, eta

    def _beside(self, mechanism: str) -> Cell:
        """Return what a mechanism is held against at the same η, with the version of its code."""
        is_held = mechanism == TEXT and TOKEN in self.mechanisms
        return {"beside": {TOKEN: DEFENCES[TOKEN].version}} if is_held else {}

    def texts(self, study: str) -> Iterator[Cell]:
        """Yield what a cell tells of each task."""
        for task in check_names(self.tasks):
            yield {"study": study, "task": task.name, "texts": task.place,
                   "content": content_of(task.name, task.place), "encoder": self.encoder,
                   "n_train": self.n_train, "n_test": self.n_test}  # fmt: skip

    def tuning(self, reader: str, mechanism: str, releases: str) -> Cell:
        """Return what a cell tells of a network and of how it is trained behind a mechanism."""
        settings: dict[str, Any] = {
            "epochs": self.epochs, "batch_size": self.batch_size, "max_length": self.max_length,
            "learning_rate": usual_rate(mechanism, reader), "warm_up": 0.1,
        }  # fmt: skip
        if releases == "once" and mechanism != "none":
            settings["releases"] = releases  # cells of earlier versions released every epoch
        return {"reader": reader, "reader_settings": settings}


def content_of(name: str, place: str) -> str:
    """Return what identifies the examples of a task."""
    return examples_of(name, place).digest


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Fine-tune a network under noise, and hold it against others on the same texts.

    `change` is beside the reader that is fine-tuned as a whole without a constraint, as the paper
    has it; `change_by_noise` beside the network of the cell itself, trained without noise. Text to
    text is also held against token representation, where both are measured.
    """
    found = tuned_for(cell, folder)
    scores = {"accuracy": found.hits.score()}
    if cell["defence"] != "none" and cell.get("compares", True):
        best = tuned_for(without_noise(cell), folder).hits
        same = tuned_for(same_without_noise(cell), folder).hits
        scores |= {
            "null_accuracy": best.score(),
            "change": found.hits.change_from(best),
            "noiseless_accuracy": same.score(),
            "change_by_noise": found.hits.change_from(same),
        }
    for other in cell.get("beside", ()):
        beside = tuned_for({**cell, "defence": other}, folder)
        scores[change_from(other)] = found.hits.change_from(beside.hits)
    facts = {"n": len(found.hits.right), "n_train": found.n_train,
             "minutes": round(found.minutes, 2), **theirs(cell)}  # fmt: skip
    return [Row(scores=scores, facts=facts)]


def theirs(cell: Cell) -> dict[str, Any]:
    """Return the η of the paper that stands beside a cell's, as a fact; None where none does."""
    eta = cell["defence_settings"].get("eta")
    return {"eta": eta, "paper_eta": None if eta is None else paper_eta(eta)}
