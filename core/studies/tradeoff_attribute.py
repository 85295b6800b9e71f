"""What is inferred of an attribute of texts behind a defence, by attackers trained after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.attacks.attributes.answers import Answers, ranks_of
from core.attacks.attributes.words import WordsAttack
from core.protocols import Encoder
from core.results import Interval, Score
from core.studies.adversarial_attack import attribute_scores
from core.studies.adversarial_texts import Sides
from core.studies.named_texts import NamedTexts
from core.studies.rows import Cell
from core.studies.tradeoff_attack import released_texts
from core.studies.tradeoff_guards import Guard, sides_of
from core.studies.tradeoff_said import attackers_told
from core.studies.tradeoff_summary import ATTRIBUTE
from core.units import units_of

__all__ = ["READER", "inferred_scores"]

READER = "tokens"
"""Who reads the attribute off the words of what is released, where tokens are."""


def inferred_scores(
    cell: Cell, encoder: Encoder, guard: Guard
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return how often each attacker names the attribute first, in per cent, beside the prior.

    Each learns from what the defence makes of known texts, whose groups may be those of targets
    and whose texts are not. Where a text or its tokens are released, one reads these.

    Raises
    ------
    InvalidInputError
        The file holds other texts than where the study was begun, or too few.
    """
    sides = sides_of(cell)
    fresh = [name for name in cell["attackers"] if name != READER]
    found = attribute_scores({**cell, "attackers": fresh}, guard.over(encoder), sides)
    scores = {f"{ATTRIBUTE}: {name}": own["top1"] for name, (own, _) in found.items()}
    if READER in cell["attackers"]:
        scores[f"{ATTRIBUTE}: {READER}"] = _read_off(cell, encoder, sides)
    facts = {
        "attribute": NamedTexts.of(cell["attributes"]).name,
        "n_near_duplicates": sides.n_near_duplicates,
        "n_groups": len(set(sides.target_groups)) if cell["group"] else 0,
        "attackers_told": attackers_told(cell["attackers"], len(sides.known)),
    }
    return scores, facts


def _read_off(cell: Cell, encoder: Encoder, sides: Sides) -> Score:
    """Return what a linear classifier on the words of released texts names first."""
    places = {name: i for i, name in enumerate(sides.names)}
    labels, truth = (
        np.array([places[label] for label in each], np.int64)
        for each in (sides.known_labels, sides.target_labels)
    )
    both = released_texts(cell, encoder, [*sides.known, *sides.targets])
    known, held = both[: len(sides.known)], both[len(sides.known) :]
    attack = WordsAttack().fit(known, labels, n_labels=len(places), seed=cell["seed"])
    ranks = ranks_of(attack.scores(held), truth)
    units = units_of(sides.targets, sides.target_groups)
    score = Answers(ranks, truth, units).top(1, cell["seed"])
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)
