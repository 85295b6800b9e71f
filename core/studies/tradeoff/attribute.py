"""Attribute inference behind a defence, by attackers trained on protected texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope.core.attacks.attributes.answers import Answers, label_ranks
from leakscope.core.attacks.attributes.words import WordsAttack
from leakscope.core.protocols import Encoder
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.attack import released_texts
from leakscope.core.studies.tradeoff.captions import attacker_facts
from leakscope.core.studies.tradeoff.guards import Guard, attribute_texts
from leakscope.core.studies.tradeoff.summary import ATTRIBUTE
from leakscope.core.studies.training.adversarial_attack import attribute_scores
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.units import units_of

READER = "tokens"
"""The attacker that infers the attribute from released words, if tokens are released."""


def inferred_scores(
    cell: Cell, encoder: Encoder, guard: Guard
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return each attacker's top-1 accuracy on the attribute, in per cent, and facts.

    Each attacker learns from protected known texts, which may share groups but no text with the
    targets. If a text or its tokens are released, one attacker uses these.

    Raises
    ------
    InvalidInputError
        The file has changed since the study was started, or too few.
    """
    sides = attribute_texts(cell)
    fresh = [name for name in cell["attackers"] if name != READER]
    found = attribute_scores({**cell, "attackers": fresh}, guard.over(encoder), sides)
    scores = {f"{ATTRIBUTE}: {name}": own["top1"] for name, (own, _) in found.items()}
    if READER in cell["attackers"]:
        scores[f"{ATTRIBUTE}: {READER}"] = _words_accuracy(cell, encoder, sides)
    facts = {
        "attribute": NamedTexts.of(cell["attributes"]).name,
        "n_near_duplicates": sides.n_near_duplicates,
        "n_groups": len(set(sides.target_groups)) if cell["group"] else 0,
        "attackers_told": attacker_facts(cell["attackers"], len(sides.known)),
    }
    return scores, facts


def _words_accuracy(cell: Cell, encoder: Encoder, sides: Sides) -> Score:
    """Return the accuracy of a linear classifier on the words of released texts."""
    places = {name: i for i, name in enumerate(sides.names)}
    labels, truth = (
        np.array([places[label] for label in each], np.int64)
        for each in (sides.known_labels, sides.target_labels)
    )
    both = released_texts(cell, encoder, [*sides.known, *sides.targets])
    known, held = both[: len(sides.known)], both[len(sides.known) :]
    attack = WordsAttack().fit(known, labels, n_labels=len(places), seed=cell["seed"])
    ranks = label_ranks(attack.scores(held), truth)
    units = units_of(sides.targets, sides.target_groups)
    score = Answers(ranks, truth, units).top(1, cell["seed"])
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)
