"""Stability of single membership verdicts over draws, from verdicts stored in rows.

Members are drawn again with every seed. Of the units that are members in several draws, this
measures the share that is called a member in all of them: an attack can find as many members each
time, but different ones.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
from leakscope.core.intervals import bootstrap_interval, clopper_pearson
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row

VERDICTS = "verdicts"
"""The fact of a row that holds its verdicts."""

KEPT_RATES = (0.1, 0.01)
"""False-positive rates at whose thresholds verdicts are stored."""

MOST_KEPT = 2048
"""The most users or texts with stored verdicts; if more, the same random part in every draw."""


def pack_verdicts(
    outcome: AttackOutcome, names: Sequence[str], every: Sequence[str]
) -> dict[str, Any]:
    """Pack which units are members, and which an attack calls members, into bit strings.

    No text or name is stored: bits are in the order of the collection. Thresholds come from shadow
    models if these could be calibrated, else from the target itself.

    Parameters
    ----------
    names : sequence of str
        The unit of each score.
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
        """Pack the chosen units' bits as base64."""
        found = np.zeros(len(kept), dtype=bool)
        found[bits[chosen]] = True
        return base64.b64encode(np.packbits(found).tobytes()).decode()

    rates = [at for at in outcome.calibrated or outcome.at if at.fpr in KEPT_RATES and at.is_shown]
    scores = outcome.ranking.scores
    return {
        "n": len(kept),
        "thresholds_of": "shadows" if outcome.calibrated else "target",
        "members": packed(members),
        "called": {f"{at.fpr:g}": packed(members & (scores > at.threshold)) for at in rates},
    }


@dataclass(frozen=True)
class Stability:
    """How consistent membership verdicts are over draws.

    Attributes
    ----------
    always : Score
        Of the units that are members in two draws or more, the share always called a member then.
    agreement : Score
        Over pairs of draws, the share of equal verdicts on members of both; its chance level is
        that of random verdicts with the same frequencies.
    """

    always: Score
    agreement: Score


def stability(rows: Sequence[Row], rate: float) -> Stability | None:
    """Measure how consistent verdicts are over draws at one false-positive rate; None if too few.

    Parameters
    ----------
    rows : sequence of Row
        Of one attack on one collection, a draw each.

    Returns
    -------
    Stability or None
        None if no unit is a member in two draws with verdicts at that rate.
    """
    kept = [row.facts[VERDICTS] for row in rows if VERDICTS in row.facts]
    kept = [each for each in kept if f"{rate:g}" in each["called"]]
    if len(kept) < 2:
        return None
    members = np.array([_unpack_bits(each, each["members"]) for each in kept])
    called = np.array([_unpack_bits(each, each["called"][f"{rate:g}"]) for each in kept])
    often = members.sum(0) >= 2
    if not often.any():
        return None
    found, n = int((called | ~members).all(0)[often].sum()), int(often.sum())
    always = Score(found / n, clopper_pearson(found, n), n)
    return Stability(always, _agreement(members, called))


def _unpack_bits(verdicts: Mapping[str, Any], packed: str) -> NDArray[np.bool_]:
    """Unpack a base64 bit string of stored verdicts."""
    raw = np.frombuffer(base64.b64decode(packed), dtype=np.uint8)
    return np.unpackbits(raw, count=int(verdicts["n"])).astype(bool)


def _agreement(members: NDArray[np.bool_], called: NDArray[np.bool_]) -> Score:
    """Return the share of equal verdicts over pairs of draws, with interval and chance level."""
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
