"""Which candidate of a list is in a text: what a defence saves against an attacker with a list.

The attacker holds the list (names of customers, telephone numbers, IBANs), knows the encoder, the
defence and the ways in which a candidate is put into a text. Two classifiers learn from the
attacker's own texts, into which the candidates are put one after the other, as the defence
releases their vectors; then they choose for each target. The words of a text that nobody has on a
list are the trade-off's subject (`core.studies.tradeoff`), whose texts and defences these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.answers import Answers, ranks_of
from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from core.defences.registry import entry_of
from core.encoders import load_encoder
from core.errors import InvalidInputError, similar
from core.protocols import Encoder
from core.results import Score
from core.specs import DefenceSpec, EncoderSpec, setting
from core.studies.apart import near_setting
from core.studies.defence_grid import (
    GRID,
    chosen_defences,
    is_of_model,
    is_of_network,
    trained_stage,
)
from core.studies.listed_summary import listed_measure, markdown
from core.studies.listed_texts import KINDS, MOST_CANDIDATES, Filled, candidates_of, fill
from core.studies.rows import Cell, Row
from core.studies.tradeoff_guards import Guard, check_same, drawn_texts
from core.studies.tradeoff_texts import AttackersTexts, auxiliary_digest
from core.units import units_of

__all__ = ["ATTACKERS", "ListedStudy", "listed_scores", "markdown", "measure"]

ATTACKERS = ("linear", "discriminant")
"""Who chooses among the candidates, learning from defended vectors: of `ATTRIBUTE_ATTACKS`."""


@dataclass(frozen=True, kw_only=True)
class ListedStudy:
    """Each defence against an attacker who holds a list, by what is on the list."""

    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(s.name for s in GRID if entry_of(s.name).acts_on == "vector")),
        "defences that need no training by name, at all strengths, or one as NAME:SETTING=VALUE",
    )
    kinds: tuple[str, ...] = setting(tuple(KINDS), "what is on the list", choices=tuple(KINDS))
    attackers: tuple[str, ...] = setting(
        ATTACKERS, "who chooses among the candidates", choices=ATTACKERS
    )
    n_candidates: int = setting(40, "candidates on the list", low=2, high=MOST_CANDIDATES)
    n_copies: int = setting(
        2, "copies of each text that the attacker learns from, with another candidate in each",
        low=1, high=MOST_CANDIDATES,
    )  # fmt: skip
    auxiliary: str = setting(
        "",
        "texts that the attacker has and, apart from these, targets, a file; bundled sentences "
        "without one",
        holds="corpus",
    )
    n_auxiliary: int = setting(4000, "texts that the attacker learns from", low=20)
    n_targets: int = setting(300, "texts under attack", low=20)
    near: float = near_setting()
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each defence at each strength, kind by kind.

        Raises
        ------
        InvalidInputError
            No such defence, one that is trained, or more copies than candidates.
        """
        defences = chosen_defences(self.defences)
        for spec in defences:
            _check_untrained(spec)
        if self.n_copies > self.n_candidates:
            raise InvalidInputError(
                f"--n-copies must be at most --n-candidates ({self.n_candidates}), as each copy of "
                f"a text has another candidate; got {self.n_copies}."
            )
        first, *others = self.attackers
        later = {name: ATTRIBUTE_ATTACKS[name].version for name in others
                 if ATTRIBUTE_ATTACKS[name].version != 1}  # fmt: skip
        shared = {"study": "listed", "encoder": self.encoder, "encoder_precision": self.precision,
                  "attackers": list(self.attackers), "attribute_attack": first,
                  **({"attacker_versions": later} if later else {}),
                  "n_candidates": self.n_candidates, "n_copies": self.n_copies,
                  "auxiliary": self.auxiliary, "contents": auxiliary_digest(self.auxiliary),
                  "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets,
                  "near": self.near}  # fmt: skip
        return [
            {**shared, "kind": kind, "defence": spec.name, "defence_settings": dict(spec.settings),
             "seed": seed}
            for seed in self.seeds
            for kind in self.kinds
            for spec in defences
        ]  # fmt: skip


def _check_untrained(spec: DefenceSpec) -> None:
    """Raise InvalidInputError where a defence is trained, or protects no vectors."""
    if trained_stage(spec.name) or is_of_model(spec.name) or is_of_network(spec.name):
        untrained = dict.fromkeys(each.name for each in GRID)
        raise InvalidInputError(
            f"--defences: {spec.name} is trained, or protects the training of a model, and was not "
            f"attacked with a list. Choose defences that need no training, such as "
            f"{', '.join(untrained)}." + similar(spec.name, untrained)
        )


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a defence at one strength against an attacker with a list of one kind.

    Raises
    ------
    InvalidInputError
        The file holds other texts than where the study was begun, or too few.
    """
    check_same(auxiliary_digest(cell["auxiliary"]) == cell["contents"])
    encoder = _opened(cell["encoder"], cell["encoder_precision"])
    # No weights that ship are used: targets are of other documents than the attacker's texts.
    texts = drawn_texts({**cell, "start": ""}, encoder)
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "n_vectors": len(texts.known) * cell["n_copies"],
        **texts.facts,
    }
    return [Row(scores=listed_scores(cell, Guard(cell).over(encoder), texts), facts=facts)]


def listed_scores(cell: Cell, protected: Encoder, texts: AttackersTexts) -> dict[str, Score]:
    """Return the share of targets whose candidate each attacker ranks first, in per cent.

    Chance is that of always naming the same candidate. Intervals are over distinct targets, or
    over their documents where they come from some.
    """
    seed, n_candidates = cell["seed"], cell["n_candidates"]
    candidates = candidates_of(cell["kind"], n_candidates, seed)
    known = fill(texts.known, candidates, cell["kind"], cell["n_copies"], (seed, 8))
    targets = fill(texts.targets, candidates, cell["kind"], 1, (seed, 9))
    # One call for all copies, and another for the targets: each vector has noise of its own.
    learned, attacked = protected.encode(known.texts), protected.encode(targets.texts)
    units = units_of(targets.carriers, texts.documents)
    return {
        listed_measure(name): _score(
            _ranked(name, (known, learned), (targets, attacked), cell), targets.labels, units, cell
        )
        for name in cell["attackers"]
    }


def _ranked(
    name: str, known: tuple[Filled, Any], targets: tuple[Filled, Any], cell: Cell
) -> NDArray[np.float32]:
    """Return the score of each candidate for each target, by an attacker who learned from known."""
    (own, learned), (under_attack, attacked) = known, targets
    attack = make_attribute_attack(name)
    attack.fit(own.texts, own.labels, learned, n_labels=cell["n_candidates"], seed=cell["seed"])
    return attack.scores(under_attack.texts, attacked)


def _score(
    scores: NDArray[np.float32], truth: NDArray[np.int64], units: Sequence[Any], cell: Cell
) -> Score:
    found = Answers(ranks_of(scores, truth), truth, units).top(1, cell["seed"]).in_percent()
    return replace(found, chance=100 / cell["n_candidates"])


@lru_cache(maxsize=1)
def _opened(name: str, precision: str) -> Encoder:
    return load_encoder(EncoderSpec(name=name, precision=precision))
