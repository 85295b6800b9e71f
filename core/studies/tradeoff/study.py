"""The trade-off study: utility against leakage of each defence.

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

from leakscope.core.defences.trained.registry import is_of_model, is_of_network
from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.named_texts import parse_named_texts
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.timing import N_TIMED, compare_milliseconds, milliseconds_per_text
from leakscope.core.studies.tradeoff.attack import attack_scores
from leakscope.core.studies.tradeoff.attribute import inferred_scores
from leakscope.core.studies.tradeoff.captions import POSTERIOR
from leakscope.core.studies.tradeoff.cells import check_parts, part_entries, trained_defence_entries
from leakscope.core.studies.tradeoff.defence_grid import chosen_defences
from leakscope.core.studies.tradeoff.guards import Guard, check_unchanged, draw_word_texts, guard_of
from leakscope.core.studies.tradeoff.members import HeadUse, head_use_scores, member_scores
from leakscope.core.studies.tradeoff.network import network_use_scores
from leakscope.core.studies.tradeoff.settings import TradeoffSettings
from leakscope.core.studies.tradeoff.summary import markdown as markdown
from leakscope.core.studies.tradeoff.texts import auxiliary_digest
from leakscope.core.studies.tradeoff.use import contents_of, use_scores
from leakscope.core.training.record import hardware

PARTS = ("attack", POSTERIOR, "use", "attribute", "membership", "time")
"""The parts of a defence that are measured, each in a cell."""

Found = tuple[dict[str, Score], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy(TradeoffSettings):
    """The trade-off study: utility and the strongest attacker's score for each defence."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table of the attribute must have."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return one cell per seed, part and setting of a defence.

        Raises
        ------
        InvalidInputError
            No such defence or attacker, two tasks of one name, a file that cannot be read, or one
            that is missing for a defence.
        """
        defences = chosen_defences(self.defences)
        parse_named_texts([*self.tasks, *self.pairs, *self.searches])
        check_parts(self, defences)
        parts = [part_entries(self, spec) for spec in defences]
        told = [{"defence": s.name, "defence_settings": dict(s.settings)} for s in defences]
        return [
            {
                **own[part],
                **told[i],
                "seed": seed,
                **trained_defence_entries(self, defences[i], seed),
            }
            for seed in self.seeds
            for part in PARTS
            for i, own in enumerate(parts)
            if part in own
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure one part of a defence at one strength under one seed.

    Raises
    ------
    InvalidInputError
        A file has changed since the study was started, or too few.
    DivergedError
        The training of the defence diverged.
    """
    encoder = _open_encoder(cell["encoder"], cell["encoder_precision"])
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "machine": _describe_machine(encoder),
    }
    guard = guard_of(cell, encoder, folder)
    if cell["part"] == "use":
        scores, told = _measure_use(cell, encoder, guard, folder)
    elif cell["part"] == "time":
        scores, told = {}, _measure_time(cell, encoder, guard)
    elif cell["part"] == "attribute":
        scores, told = inferred_scores(cell, encoder, guard)
    elif cell["part"] == "membership":
        scores, told = _measure_membership(cell, encoder, guard, folder)
    else:
        scores, told = _measure_word_attacks(cell, encoder, guard)
    return [Row(scores=scores, facts=facts | told | guard.facts)]


def _measure_use(cell: Cell, encoder: Encoder, guard: Guard, folder: Path) -> Found:
    """Measure utility on the tasks, training time and time per text."""
    check_unchanged(contents_of(cell["tasks"], cell["pairs"], cell["searches"]) == cell["contents"])
    minutes = guard.training_minutes
    if is_of_model(cell["defence"]):
        scores, told, heads = head_use_scores(cell, encoder)
        minutes = round(heads.seconds / 60 / max(len(heads.heads), 1), 5)
        timed = _head_answers(encoder, heads)
    elif is_of_network(cell["defence"]):
        checkpoint = folder / "training" / cell_key(cell)
        scores, told, networks = network_use_scores(cell, encoder, checkpoint)
        minutes, timed = networks.minutes, networks.answer
        shutil.rmtree(checkpoint, ignore_errors=True)
    else:
        scores, told = use_scores(cell, encoder, guard.over(encoder))
        timed = guard.protect(encoder).encode
    cost = {
        "training_minutes": minutes,
        "milliseconds_a_text": milliseconds_per_text(timed),
        "n_timed": N_TIMED,
    }
    return scores, told | cost


def _measure_time(cell: Cell, encoder: Encoder, guard: Guard) -> dict[str, Any]:
    """Measure the time per text with and without the defence, without caches."""
    behind, alone = compare_milliseconds(
        guard.protect(encoder).encode, encoder.encode, cell["rounds"]
    )
    return {"milliseconds_a_text": behind, "milliseconds_alone": alone, "n_timed": N_TIMED}


def _head_answers(encoder: Encoder, heads: HeadUse) -> Any:
    """Return a function that encodes texts and classifies them by the first head."""
    return lambda texts: heads.encode(encoder.encode(texts))


def _measure_word_attacks(cell: Cell, encoder: Encoder, guard: Guard) -> Found:
    """Measure the attackers on words."""
    check_unchanged(auxiliary_digest(cell["auxiliary"]) == cell["contents"])
    texts = draw_word_texts(cell, encoder)
    scores, told = attack_scores(cell, encoder, texts, guard)
    return scores, told | texts.facts


def _measure_membership(cell: Cell, encoder: Encoder, guard: Guard, folder: Path) -> Found:
    """Measure membership attacks on a classifier's training texts."""
    checkpoint = folder / "training" / cell_key(cell)
    found = member_scores(cell, guard.over(encoder), checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return found


@lru_cache(maxsize=1)
def _open_encoder(name: str, precision: str) -> Encoder:
    """Load the encoder of a cell, once per process."""
    return load_encoder(EncoderSpec(name=name, precision=precision))


def _describe_machine(encoder: Encoder) -> str:
    """Describe the hardware that a cell is measured on."""
    found = hardware(encoder)
    is_gpu = str(found["device"]).startswith("cuda")
    return str(found["chip"]) if is_gpu else f"{found['n_cpus']} {found['chip']} cores"
