"""What each defence costs and what it saves: utility against leakage.

Every defence at every strength is measured under several seeds, in two cells or more: how much
attackers who know the defence read of the words (`tradeoff_attack`), and what its vectors are still
good for (`tradeoff_use`); where files for it are given, what attackers infer of an attribute, and
whose texts a classifier on the vectors was trained on (`tradeoff_members`). The texts of a cell are
read from the files that it names. A defence that is trained is the same in all of its cells.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.encoders import load_encoder
from core.protocols import Encoder
from core.results import Score
from core.specs import EncoderSpec
from core.studies.defence_grid import chosen_defences, is_of_model, is_of_network
from core.studies.named_texts import check_names
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key
from core.studies.timing import N_TIMED, milliseconds_a_text, milliseconds_in_turn
from core.studies.tradeoff_attack import attack_scores
from core.studies.tradeoff_attribute import inferred_scores
from core.studies.tradeoff_cells import USUAL, check_parts, parts_of, trained_part
from core.studies.tradeoff_guards import Guard, check_same, drawn_texts, guard_of
from core.studies.tradeoff_members import HeadUse, head_use_scores, member_scores
from core.studies.tradeoff_network import network_use_scores
from core.studies.tradeoff_said import POSTERIOR
from core.studies.tradeoff_settings import TradeoffSettings
from core.studies.tradeoff_summary import markdown
from core.studies.tradeoff_texts import auxiliary_digest
from core.studies.tradeoff_use import contents_of, use_scores
from core.training.record import hardware

__all__ = ["USUAL", "TradeoffStudy", "markdown", "measure"]

PARTS = ("attack", POSTERIOR, "use", "attribute", "membership", "time")
"""What is measured of a defence, each a cell."""

Found = tuple[dict[str, Score], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy(TradeoffSettings):
    """Every defence: the usefulness that it leaves, and what the strongest attacker reads."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table of the attribute has to have."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each defence at each strength under each seed, by part.

        Raises
        ------
        InvalidInputError
            No such defence or attacker, two tasks of one name, a file that cannot be read, or one
            that is missing for a defence.
        """
        defences = chosen_defences(self.defences)
        check_names([*self.tasks, *self.pairs, *self.searches])
        check_parts(self, defences)
        parts = [parts_of(self, spec) for spec in defences]
        told = [{"defence": s.name, "defence_settings": dict(s.settings)} for s in defences]
        return [
            {**own[part], **told[i], "seed": seed, **trained_part(self, defences[i], seed)}
            for seed in self.seeds
            for part in PARTS
            for i, own in enumerate(parts)
            if part in own
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a defence at one strength under one seed: usefulness, or what one kind leaks.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun, or too few.
    DivergedError
        The training of the defence ran away.
    """
    encoder = _opened(cell["encoder"], cell["encoder_precision"])
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "machine": _machine(encoder),
    }
    guard = guard_of(cell, encoder, folder)
    if cell["part"] == "use":
        scores, told = _used(cell, encoder, guard, folder)
    elif cell["part"] == "time":
        scores, told = {}, _timed(cell, encoder, guard)
    elif cell["part"] == "attribute":
        scores, told = inferred_scores(cell, encoder, guard)
    elif cell["part"] == "membership":
        scores, told = _members(cell, encoder, guard, folder)
    else:
        scores, told = _attacked(cell, encoder, guard)
    return [Row(scores=scores, facts=facts | told | guard.facts)]


def _used(cell: Cell, encoder: Encoder, guard: Guard, folder: Path) -> Found:
    """Return what vectors are still good for, and what the defence costs in time."""
    check_same(contents_of(cell["tasks"], cell["pairs"], cell["searches"]) == cell["contents"])
    minutes = guard.training_minutes
    if is_of_model(cell["defence"]):
        scores, told, heads = head_use_scores(cell, encoder)
        minutes = round(heads.seconds / 60 / max(len(heads.heads), 1), 5)
        timed = _answering(encoder, heads)
    elif is_of_network(cell["defence"]):
        checkpoint = folder / "training" / cell_key(cell)
        scores, told, networks = network_use_scores(cell, encoder, checkpoint)
        minutes, timed = networks.minutes, networks.answer
        shutil.rmtree(checkpoint, ignore_errors=True)
    else:
        scores, told = use_scores(cell, encoder, guard.over(encoder))
        timed = guard.protect(encoder).encode
    cost = {"training_minutes": minutes, "milliseconds_a_text": milliseconds_a_text(timed),
            "n_timed": N_TIMED}  # fmt: skip
    return scores, told | cost


def _timed(cell: Cell, encoder: Encoder, guard: Guard) -> dict[str, Any]:
    """Return what a text takes behind the defence and without it, nothing remembered."""
    behind, alone = milliseconds_in_turn(
        guard.protect(encoder).encode, encoder.encode, cell["rounds"]
    )
    return {"milliseconds_a_text": behind, "milliseconds_alone": alone, "n_timed": N_TIMED}


def _answering(encoder: Encoder, heads: HeadUse) -> Any:
    return lambda texts: heads.encode(encoder.encode(texts))


def _attacked(cell: Cell, encoder: Encoder, guard: Guard) -> Found:
    """Return what attackers read of the words."""
    check_same(auxiliary_digest(cell["auxiliary"]) == cell["contents"])
    texts = drawn_texts(cell, encoder)
    scores, told = attack_scores(cell, encoder, texts, guard)
    return scores, told | texts.facts


def _members(cell: Cell, encoder: Encoder, guard: Guard, folder: Path) -> Found:
    """Return how well attacks tell a classifier's training texts from others."""
    checkpoint = folder / "training" / cell_key(cell)
    found = member_scores(cell, guard.over(encoder), checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return found


@lru_cache(maxsize=1)
def _opened(name: str, precision: str) -> Encoder:
    return load_encoder(EncoderSpec(name=name, precision=precision))


def _machine(encoder: Encoder) -> str:
    """Return on what a cell is measured."""
    found = hardware(encoder)
    is_gpu = str(found["device"]).startswith("cuda")
    return str(found["chip"]) if is_gpu else f"{found['n_cpus']} {found['chip']} cores"
