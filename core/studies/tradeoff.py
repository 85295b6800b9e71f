"""What each defence costs and what it saves: utility against leakage.

Every defence at every strength is measured under several seeds, in two cells: how much attackers
who know the defence read (`tradeoff_attack`), and what its vectors are still good for
(`tradeoff_use`). The texts of a cell are read from the files that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.attacks.inversion.shipped import shipped_digest, shipped_held_out
from core.encoders import load_encoder
from core.errors import InvalidInputError, similar
from core.protocols import Encoder
from core.specs import EncoderSpec, setting
from core.studies.apart import near_setting
from core.studies.cell_attacks import settings_for
from core.studies.defence_grid import GRID, chosen_defences
from core.studies.named_texts import check_names
from core.studies.rows import Cell, Row
from core.studies.tradeoff_attack import ATTACKERS, attack_scores
from core.studies.tradeoff_summary import markdown
from core.studies.tradeoff_texts import auxiliary_documents, auxiliary_texts, digest, draw_texts
from core.studies.tradeoff_use import contents_of, use_scores
from core.training.record import hardware

__all__ = ["USUAL", "TradeoffStudy", "markdown", "measure"]

USUAL: dict[str, Any] = {"vocabulary_size": 20_000, "epochs": 12, "hidden": 512,
                         "substitutions": 0}  # fmt: skip
"""Settings of a classifier that is trained anew, where none ships for the encoder."""


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy:
    """Every defence: the usefulness that it leaves, and the words that the strongest reads."""

    tasks: tuple[str, ...] = setting(
        (), "what vectors are used for: NAME=FILE of texts with a `label`", holds="labelled"
    )
    pairs: tuple[str, ...] = setting(
        (), "the same, of scored pairs: NAME=FILE like the STS benchmark", holds="pairs"
    )
    searches: tuple[str, ...] = setting(
        (),
        "the same, of texts to be found: NAME=FILE, or NAME=FILE:COLUMN=VALUE, of question1 and "
        "question2",
        holds="searches",
    )
    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(spec.name for spec in GRID)),
        "defences by name, at all strengths, or one as NAME:SETTING=VALUE",
    )
    attackers: tuple[str, ...] = setting(ATTACKERS, "who attacks each defence, knowing it")
    attack: str = setting("probe_mlc", "the classifier that reads, tuned on each defence")
    auxiliary: str = setting(
        "",
        "texts that the attacker has and, apart from these, targets: a file that holds the "
        "sentences held out from the weights that ship; without one, bundled sentences, and the "
        "attackers are trained anew",
        holds="corpus",
    )
    n_auxiliary: int = setting(20_000, "sentences to train the attackers on", low=20)
    n_targets: int = setting(300, "sentences under attack", low=1)
    near: float = near_setting()
    n_train: int = setting(0, "texts of each task to train on at most; 0 for all", low=0)
    n_test: int = setting(0, "texts, or pairs, of each task to test on at most; 0 for all", low=0)
    n_searched: int = setting(2000, "texts to be found among as many others", low=2)
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of the attackers that are trained anew", flag="set"
    )

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each defence at each strength under each seed, twice.

        Raises
        ------
        InvalidInputError
            No such defence or attacker, two tasks of one name, or a file that cannot be read.
        """
        defences = chosen_defences(self.defences)
        check_names([*self.tasks, *self.pairs, *self.searches])
        parts = [self._attacked(), self._used()]
        return [
            {**part, "defence": spec.name, "defence_settings": dict(spec.settings), "seed": seed}
            for seed in self.seeds
            for part in parts
            if part["part"] == "attack" or part["tasks"] or part["pairs"] or part["searches"]
            for spec in defences
        ]

    def _shared(self, part: str) -> Cell:
        return {"study": "tradeoff", "part": part, "encoder": self.encoder,
                "encoder_precision": self.precision}  # fmt: skip

    def _attacked(self) -> Cell:
        if self.attack != "probe_mlc":
            raise InvalidInputError(
                f"--attack must be of probe_mlc here, which can be tuned, got {self.attack!r}."
            )
        for name in self.attackers:
            if name not in ATTACKERS:
                raise InvalidInputError(
                    f"--attackers must be of {', '.join(ATTACKERS)}, got {name!r}."
                    + similar(name, ATTACKERS)
                )
        ships = EncoderSpec(name=self.encoder)
        return {**self._shared("attack"), "attack": self.attack,
                "attackers": list(self.attackers), "auxiliary": self.auxiliary,
                "contents": _auxiliary_digest(self.auxiliary),
                "start": shipped_digest(ships, self.attack) if self.auxiliary else "",
                "settings": USUAL | settings_for(self.attack, self.attack_settings),
                "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets,
                "near": self.near}  # fmt: skip

    def _used(self) -> Cell:
        told = (self.tasks, self.pairs, self.searches)
        return {**self._shared("use"), "tasks": list(self.tasks), "pairs": list(self.pairs),
                "searches": list(self.searches), "contents": contents_of(*told),
                "n_train": self.n_train, "n_test": self.n_test,
                "n_searched": self.n_searched}  # fmt: skip


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a defence at one strength under one seed: usefulness, or what leaks.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun, or too few.
    """
    encoder = _opened(cell["encoder"], cell["encoder_precision"])
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "machine": _machine(encoder),
    }
    if cell["part"] == "use":
        _check(contents_of(cell["tasks"], cell["pairs"], cell["searches"]) == cell["contents"])
        scores, told = use_scores(cell, encoder)
        return [Row(scores=scores, facts=facts | told)]
    _check(_auxiliary_digest(cell["auxiliary"]) == cell["contents"])
    texts = draw_texts(
        auxiliary_texts(cell["auxiliary"]),
        cell["n_auxiliary"],
        cell["n_targets"],
        cell["seed"],
        held_out=shipped_held_out(encoder) if cell["start"] else None,
        documents=auxiliary_documents(cell["auxiliary"]),
        near=cell["near"],
    )
    scores, told = attack_scores(cell, encoder, texts)
    return [Row(scores=scores, facts=facts | told | texts.facts)]


def _check(is_same: bool) -> None:
    if not is_same:
        raise InvalidInputError(
            "The files of the tasks, or the attacker's sentences, hold other texts than where the "
            "study was begun. Copy the same files to every machine, or start the study again."
        )


def _auxiliary_digest(reference: str) -> str:
    texts, documents = auxiliary_texts(reference), auxiliary_documents(reference)
    return digest((*texts, *(documents[text] for text in texts if text in documents)))


@lru_cache(maxsize=1)
def _opened(name: str, precision: str) -> Encoder:
    return load_encoder(EncoderSpec(name=name, precision=precision))


def _machine(encoder: Encoder) -> str:
    """Return on what a cell is measured."""
    found = hardware(encoder)
    is_gpu = str(found["device"]).startswith("cuda")
    return str(found["chip"]) if is_gpu else f"{found['n_cpus']} {found['chip']} cores"
