"""The study of networks under noise, and what noise costs them (Qu et al. 2021, Tables 4, 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.constrained import default_rate
from leakscope.core.defences.trained.under_noise.registry import READERS, RELEASES
from leakscope.core.defences.trained.under_noise.user_side import MECHANISMS
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.studies.named_texts import parse_named_texts
from leakscope.core.studies.training.privacy_paper import MATCHED, paper_eta
from leakscope.core.studies.training.privacy_tables import (
    TEXT,
    TOKEN,
    change_from,
    constrained_markdown,
)
from leakscope.core.studies.training.tuned_networks import (
    examples_of,
    load_or_tune,
    same_without_noise,
    without_constraint,
)

markdown = constrained_markdown


@dataclass(frozen=True, kw_only=True)
class ConstrainedStudy:
    """Settings of the study: networks fine-tuned under noise, by task, mechanism and η."""

    tasks: tuple[str, ...] = setting(
        REQUIRED, "texts, or pairs of texts, with a `label`: NAME=FILE", holds="examples"
    )
    readers: tuple[str, ...] = setting(tuple(READERS), "networks to train", choices=tuple(READERS))
    mechanisms: tuple[str, ...] = setting(MECHANISMS, "what users send", choices=MECHANISMS)
    etas: tuple[float, ...] = setting(
        tuple(MATCHED), "privacy parameters, in 1/distance", low=1e-6, high=1e6
    )
    releases: tuple[str, ...] = setting(
        ("once",),
        "noisy copies of each training text: `once`, which the guarantee covers, or `every_epoch` "
        "as in the paper, where the odds multiply",
        choices=RELEASES,
    )
    encoder: str = setting("minilm", "encoder with the users' word embeddings, which is fine-tuned")
    n_train: int = setting(0, "maximum training texts of each task; 0 for all", low=0)
    n_test: int = setting(0, "maximum test texts of each task; 0 for all", low=0)
    epochs: int = setting(0, "passes over the texts; 0 for the network's default", low=0, high=1000)
    batch_size: int = setting(32, "texts per step", low=1, high=4096, paper="Q21")
    max_length: int = setting(128, "maximum word pieces of a text", low=5, high=512, paper="Q21")
    seeds: tuple[int, ...] = setting((0, 1, 2), "random seeds, one run each", low=0)
    compares: bool = setting(True, "also train the same networks without noise, and compare")

    def cells(self) -> list[Cell]:
        """Return one cell per mechanism, η, task, network and seed, noiseless ones first."""
        return [
            {
                **task,
                **self.tuning(reader, mechanism, releases),
                "defence": mechanism,
                "defence_settings": {} if eta is None else {"eta": eta},
                **self._reference_entry(mechanism),
                **({} if self.compares else {"compares": False}),
                "seed": seed,
            }
            for mechanism, eta in self._constraints()
            for releases in (self.releases if mechanism != "none" else self.releases[:1])
            for task in self.texts("constrained")
            for reader in self.readers
            if mechanism != "sequence_representation" or READERS[reader].is_pretrained
            for seed in self.seeds
        ]

    def _constraints(self) -> Iterator[tuple[str, float | None]]:
        """Yield each mechanism with each η as a pair; `none` has no η."""
        for mechanism in (each for each in MECHANISMS if each in self.mechanisms):
            if mechanism == "none":
                yield mechanism, None
                continue
            for eta in self.etas:
                yield mechanism, eta

    def _reference_entry(self, mechanism: str) -> Cell:
        """Return the cell entry of the mechanism to compare with at the same η, if there is one."""
        is_held = mechanism == TEXT and TOKEN in self.mechanisms
        return {"beside": {TOKEN: DEFENCES[TOKEN].version}} if is_held else {}

    def texts(self, study: str) -> Iterator[Cell]:
        """Yield the cell entries of each task, with a digest of its examples."""
        for task in parse_named_texts(self.tasks):
            yield {
                "study": study,
                "task": task.name,
                "texts": task.place,
                "content": content_of(task.name, task.place),
                "encoder": self.encoder,
                "n_train": self.n_train,
                "n_test": self.n_test,
            }

    def tuning(self, reader: str, mechanism: str, releases: str) -> Cell:
        """Return the cell entries of a network and its training behind a mechanism."""
        settings: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "max_length": self.max_length,
            "learning_rate": default_rate(mechanism, reader),
            "warm_up": 0.1,
        }
        if releases == "once" and mechanism != "none":
            settings["releases"] = releases  # cells of earlier versions released every epoch
        return {"reader": reader, "reader_settings": settings}


def content_of(name: str, place: str) -> str:
    """Return a digest of a task's examples, read from its file."""
    return examples_of(name, place).digest


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Fine-tune a cell's network under noise; return a row of its accuracy and paired changes.

    `change` is relative to the network that is fine-tuned as a whole without a constraint, as in
    the paper; `change_by_noise` is relative to the cell's network trained without noise. Text to
    text is also compared with token representation if both are measured.
    """
    found = load_or_tune(cell, folder)
    scores = {"accuracy": found.hits.score()}
    if cell["defence"] != "none" and cell.get("compares", True):
        best = load_or_tune(without_constraint(cell), folder).hits
        same = load_or_tune(same_without_noise(cell), folder).hits
        scores |= {
            "null_accuracy": best.score(),
            "change": found.hits.change_from(best),
            "noiseless_accuracy": same.score(),
            "change_by_noise": found.hits.change_from(same),
        }
    for other in cell.get("beside", ()):
        beside = load_or_tune({**cell, "defence": other}, folder)
        scores[change_from(other)] = found.hits.change_from(beside.hits)
    facts = {
        "n": len(found.hits.right),
        "n_train": found.n_train,
        "minutes": round(found.minutes, 2),
        **eta_facts(cell),
    }
    return [Row(scores=scores, facts=facts)]


def eta_facts(cell: Cell) -> dict[str, Any]:
    """Return a cell's η and the paper's matching η as facts; None if there is none."""
    eta = cell["defence_settings"].get("eta")
    return {"eta": eta, "paper_eta": None if eta is None else paper_eta(eta)}
