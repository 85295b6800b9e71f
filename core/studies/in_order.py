"""Whether networks under noise stand in the paper's order and reach its goals, as intervals tell.

Two networks are held against each other on the same texts. Rows of former versions do not hold that
change: of theirs, one is above another where the intervals of the two share no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from core.defences.trained.under_noise.registry import OBJECTIVES
from core.results import Score
from core.studies.privacy_paper import OBJECTIVE_ORDER
from core.studies.rows import Row, mean_row_score

__all__ = [
    "ENOUGH",
    "TEXT",
    "TOKEN",
    "Held",
    "by_order",
    "change_from",
    "change_of",
    "changes_of",
    "goal_said",
    "nothing_learnt",
    "order_said",
]

TOKEN = "token_representation"
TEXT = "text_to_text"

ENOUGH = 50.0
"""Per cent of the lost accuracy that denoising was to win back."""

Held = tuple[Score, Score, Score | None]
"""Two accuracies, and the change from the second to the first on the same texts, where known."""

_MORE, _LESS = "more", "less"


def change_from(other: str) -> str:
    """Return what rows call the change from another network, tested on the same texts."""
    return f"change_from_{other}"


def change_of(rows: Sequence[Row], other: str) -> Score | None:
    """Return that change, as the mean over seeds; None where not every row has it."""
    measure = change_from(other)
    if not all(measure in row.scores for row in rows):
        return None
    return mean_row_score(rows, measure, is_same_sample=True)


def changes_of(rows: Sequence[Row]) -> dict[str, Score]:
    """Return the changes from other losses of pretraining, as far as rows have them."""
    found = {other: change_of(rows, other) for other in OBJECTIVE_ORDER}
    return {other: change for other, change in found.items() if change is not None}


def nothing_learnt(null: Score) -> str:
    """Return what is said of a network that guesses even without noise; empty of any other.

    Noise has nothing to take from it, and no mechanism is told from another by it.

    Examples
    --------
    >>> from core.results import Interval
    >>> nothing_learnt(Score(66.9, Interval(62.9, 70.9), 1429, 68.4))[:48]
    'Without noise it is not surely above guessing (6'
    >>> nothing_learnt(Score(76.4, Interval(72.9, 80.0), 868, 50.8))
    ''
    """
    if math.isnan(null.chance) or null.stands(null.chance) == _MORE:
        return ""
    return (
        f"Without noise it is not surely above guessing ({null.chance:.1f}) either: there is "
        "nothing that noise could take, and no mechanism is told from another by it."
    )


def by_order(pairs: Mapping[float, Held]) -> dict[str, list[float]]:
    """Return at which η the first of two is surely above the second, or below it."""
    stands = {eta: _stands(held) for eta, held in pairs.items()}
    return {
        "above": [eta for eta, how in stands.items() if how == _MORE],
        "not told apart": [eta for eta, how in stands.items() if how not in (_MORE, _LESS)],
        "below": [eta for eta, how in stands.items() if how == _LESS],
    }


def _stands(held: Held) -> str:
    one, two, change = held
    if change is not None:
        return change.stands()
    if not one.is_resolved_from(two):
        return "not told apart"
    return _MORE if one.value > two.value else _LESS


def order_said(accuracies: Mapping[str, Score], changes: Mapping[str, Mapping[str, Score]]) -> str:
    """Return how losses of pretraining stand to each other: the paper has denoising first.

    Parameters
    ----------
    accuracies : dict
        Of each loss.
    changes : dict
        Of each loss, its changes from others on the same texts, where rows have them.

    Returns
    -------
    str
        Empty of a single loss.
    """
    known = [name for name in reversed(OBJECTIVE_ORDER) if name in accuracies]
    if len(known) < 2:
        return ""
    pairs: dict[tuple[str, str], Held] = {
        (one, two): (accuracies[one], accuracies[two], changes.get(one, {}).get(two))
        for one, two in combinations(known, 2)
    }
    stands = {pair: _stands(held) for pair, held in pairs.items()}
    told = [_beside_said(*pair, pairs[pair][2], stands[pair]) for pair in pairs]
    neighbours = [stands[pair] for pair in pairwise(known)]
    if _LESS in stands.values():
        judged = "surely not in the order of the paper"
    elif all(how == _MORE for how in neighbours):
        judged = "surely in the order of the paper"
    else:
        judged = "whether in the order of the paper is not told"
    return f"{'; '.join(told)}: {judged}"


def _beside_said(one: str, two: str, change: Score | None, stands: str) -> str:
    """Return how a loss stands beside another, with the change where it is known."""
    points = "" if change is None else f" by {change.said()} points"
    return f"{OBJECTIVES[one].title} beside {OBJECTIVES[two].title}{points}: {stands}"


def goal_said(share: Score) -> str:
    """Return whether what is won back of what noise costs reaches the goal, as its ends tell.

    Examples
    --------
    >>> from core.results import Interval
    >>> goal_said(Score(60.0, Interval(45.0, 75.0), 100))
    'the goal of 50 % is neither surely met nor surely missed'
    """
    goal = f"the goal of {ENOUGH:.0f} %"
    if share.ci95.low >= ENOUGH:
        return f"{goal} is surely met"
    if share.ci95.high < ENOUGH:
        return f"{goal} is surely missed"
    return f"{goal} is neither surely met nor surely missed"
