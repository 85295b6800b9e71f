"""Are the same users called members in every draw? Single verdicts, kept by row and joined.

Members are drawn anew with every seed. Of those that are members in several draws it is told how
often they are called so in all of them: an attack can find as many each time, and others.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.evaluation import AttackOutcome
from core.intervals import bootstrap_interval, clopper_pearson
from core.results import Interval, Score
from core.studies.rows import Row

__all__ = ["KEPT_RATES", "MOST_KEPT", "VERDICTS", "Stability", "kept_verdicts", "stability"]

VERDICTS = "verdicts"
"""The fact of a row that holds its verdicts."""

KEPT_RATES = (0.1, 0.01)
"""False accusations at whose thresholds verdicts are kept."""

MOST_KEPT = 2048
"""Users, or texts, of a collection whose verdicts are kept: of more a part, the same every draw."""


def kept_verdicts(
    outcome: AttackOutcome, names: Sequence[str], every: Sequence[str]
) -> dict[str, Any]:
    """Return who of a collection is a member, and who of these is called one, as bits.

    Nothing of a text or a name is in it: bits stand in the order of the collection. Thresholds are
    those of shadow models where these could play the target, else of the target itself.

    Parameters
    ----------
    names : sequence of str
        What each score of the outcome is of.
    every : sequence of str
        All users, or texts, of the collection, each once, in an order that no draw changes.
    """
    kept = np.arange(len(every))
    if len(every) > MOST_KEPT:
        drawn = np.random.default_rng([len(every), 17]).permutation(len(every))
        kept = np.sort(drawn[:MOST_KEPT])
    place = {every[i]: bit for bit, i in enumerate(kept.tolist())}
    bits = np.array([place.get(name, -1) for name in names])
    members = outcome.ranking.members & (bits >= 0)

    def packed(chosen: NDArray[np.bool_]) -> str:
        found = np.zeros(len(kept), dtype=bool)
        found[bits[chosen]] = True
        return base64.b64encode(np.packbits(found).tobytes()).decode()

    rates = [at for at in outcome.calibrated or outcome.at
             if at.fpr in KEPT_RATES and at.is_shown]  # fmt: skip
    scores = outcome.ranking.scores
    return {
        "n": len(kept),
        "thresholds_of": "shadows" if outcome.calibrated else "target",
        "members": packed(members),
        "called": {f"{at.fpr:g}": packed(members & (scores > at.threshold)) for at in rates},
    }


@dataclass(frozen=True)
class Stability:
    """How far verdicts on members are the same in every draw.

    Attributes
    ----------
    always : Score
        Of the members of two draws or more, the share that is called so whenever it is one.
    agreement : Score
        Of pairs of draws, the share of verdicts on those who are members in both that is the same;
        its chance is that of verdicts by lot that are as often yes in each draw.
    """

    always: Score
    agreement: Score


def stability(rows: Sequence[Row], rate: float) -> Stability | None:
    """Return how stable the verdicts of an attack are at a rate of false accusations.

    Parameters
    ----------
    rows : sequence of Row
        Of one attack on one collection, a draw each.

    Returns
    -------
    Stability or None
        None where nobody is a member in two draws with verdicts at that rate.
    """
    kept = [row.facts[VERDICTS] for row in rows if VERDICTS in row.facts]
    kept = [each for each in kept if f"{rate:g}" in each["called"]]
    if len(kept) < 2:
        return None
    members = np.array([_bits(each, each["members"]) for each in kept])
    called = np.array([_bits(each, each["called"][f"{rate:g}"]) for each in kept])
    often = members.sum(0) >= 2
    if not often.any():
        return None
    found, n = int((called | ~members).all(0)[often].sum()), int(often.sum())
    always = Score(found / n, clopper_pearson(found, n), n)
    return Stability(always, _agreement(members, called))


def _bits(verdicts: Mapping[str, Any], packed: str) -> NDArray[np.bool_]:
    raw = np.frombuffer(base64.b64decode(packed), dtype=np.uint8)
    return np.unpackbits(raw, count=int(verdicts["n"])).astype(bool)


def _agreement(members: NDArray[np.bool_], called: NDArray[np.bool_]) -> Score:
    """Return the share of equal verdicts over pairs of draws; who is judged is drawn anew."""
    same, who, by_lot = [], [], []
    for one, other in combinations(range(len(members)), 2):
        both = np.flatnonzero(members[one] & members[other])
        if len(both):
            first, second = called[one][both], called[other][both]
            yes, also = first.mean(), second.mean()
            same.append(first == second)
            who.append(both)
            by_lot += [yes * also + (1 - yes) * (1 - also)] * len(both)
    values, whose = np.concatenate(same).astype(np.float64), np.concatenate(who)
    ends = bootstrap_interval(values, groups=whose.tolist())
    kept = Interval(max(0.0, ends.low), min(1.0, ends.high))
    return Score(float(values.mean()), kept, len(values), float(np.mean(by_lot)))
