"""Compare networks under noise with the paper's order and goals, judged by intervals.

Two networks are compared on the same texts. If a seed lacks that change because the other
network's training diverged, the two differ if their intervals do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, pairwise

from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable
from leakscope.core.studies.training.privacy_paper import OBJECTIVE_ORDER

TOKEN = "token_representation"
TEXT = "text_to_text"

ENOUGH = 50.0
"""The goal: the percentage of the lost accuracy that denoising should recover."""

Held = tuple[Score, Score, Score | None]
"""Two accuracies, and the paired change from the second to the first if known."""

_MORE, _LESS = "more", "less"


def change_from(other: str) -> str:
    """Return a row's measure of the change from another network on the same texts."""
    return f"change_from_{other}"


def change_of(rows: ResultTable, other: str) -> Score | None:
    """Return the mean change from another network over seeds; None unless every row has it."""
    measure = change_from(other)
    if len(rows.having(measure)) < len(rows):
        return None
    return rows.mean(measure, is_same_sample=True)


def changes_of(rows: ResultTable) -> dict[str, Score]:
    """Return the changes from other pretraining losses, where every row has them."""
    found = {other: change_of(rows, other) for other in OBJECTIVE_ORDER}
    return {other: change for other, change in found.items() if change is not None}


def describe_at_chance(null: Score) -> str:
    """Return a caveat if a network is at chance even without noise; "" otherwise.

    Noise cannot lower its accuracy, so it cannot distinguish mechanisms.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_at_chance(Score(66.9, Interval(62.9, 70.9), 1429, 68.4))[:52]
    'Without noise, this network is not significantly abo'
    >>> describe_at_chance(Score(76.4, Interval(72.9, 80.0), 868, 50.8))
    ''
    """
    if math.isnan(null.chance) or null.direction(null.chance) == _MORE:
        return ""
    return (
        "Without noise, this network is not significantly above guessing "
        f"({null.chance:.1f}) either. Noise has no accuracy to take, so the mechanisms cannot be "
        "compared here."
    )


def group_by_order(pairs: Mapping[float, Held]) -> dict[str, list[float]]:
    """Group the η by whether the first accuracy is significantly above or below the second."""
    stands = {eta: _order(held) for eta, held in pairs.items()}
    return {
        "above": [eta for eta, how in stands.items() if how == _MORE],
        "not significantly different": [
            eta for eta, how in stands.items() if how not in (_MORE, _LESS)
        ],
        "below": [eta for eta, how in stands.items() if how == _LESS],
    }


def _order(held: Held) -> str:
    """Compare two accuracies: "more", "less" or "not significantly different"."""
    one, two, change = held
    if change is not None:
        return change.direction()
    if not one.is_resolved_from(two):
        return "not significantly different"
    return _MORE if one.value > two.value else _LESS


def describe_order(
    accuracies: Mapping[str, Score], changes: Mapping[str, Mapping[str, Score]]
) -> str:
    """Describe how the pretraining losses compare, and whether the paper's order is confirmed.

    The paper ranks denoising first.

    Parameters
    ----------
    accuracies : dict
        Of each loss.
    changes : dict
        Of each loss, its changes from other losses on the same texts, if recorded.

    Returns
    -------
    str
        Without a full stop; empty for a single loss.
    """
    known = [name for name in reversed(OBJECTIVE_ORDER) if name in accuracies]
    if len(known) < 2:
        return ""
    pairs: dict[tuple[str, str], Held] = {
        (one, two): (accuracies[one], accuracies[two], changes.get(one, {}).get(two))
        for one, two in combinations(known, 2)
    }
    stands = {pair: _order(held) for pair, held in pairs.items()}
    told = [_describe_pair(*pair, pairs[pair][2], stands[pair]) for pair in pairs]
    neighbours = [stands[pair] for pair in pairwise(known)]
    if _LESS in stands.values():
        judged = "contradicted"
    elif all(how == _MORE for how in neighbours):
        judged = "confirmed"
    else:
        judged = "neither confirmed nor contradicted"
    return f"{'; '.join(told)}. The paper's order is {judged}"


def _describe_pair(one: str, two: str, change: Score | None, stands: str) -> str:
    """Describe how one loss compares with another, with the change in points if known."""
    compared = {_MORE: "significantly better than", _LESS: "significantly worse than"}
    points = ""
    if change is not None:
        value, interval = change.parts()
        points = f" ({value} points, 95 % CI {interval})"
    return (
        f"{OBJECTIVES[one].title} is {compared.get(stands, 'not significantly different from')} "
        f"{OBJECTIVES[two].title}{points}"
    )


def describe_goal(share: Score) -> str:
    """Describe whether the recovered share of accuracy reaches the goal, by its interval.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_goal(Score(60.0, Interval(45.0, 75.0), 100))
    'the goal of 50 % is neither significantly met nor missed'
    """
    goal = f"the goal of {ENOUGH:.0f} %"
    if share.ci95.low >= ENOUGH:
        return f"{goal} is significantly met"
    if share.ci95.high < ENOUGH:
        return f"{goal} is significantly missed"
    return f"{goal} is neither significantly met nor missed"
