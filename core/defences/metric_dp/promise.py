"""What d_χ-privacy promises at an η, in numbers and in words.

Implements Qu et al. (2021), Eq. 2: P[M(x) = y] ≤ exp(η·d(x, x'))·P[M(x') = y]. So an output can
shift the odds between x and x' by a factor of at most exp(η·d). For a text d is the sum over its
tokens (§3.1). Ordinary (local) differential privacy, Eq. 1, promises exp(ε) for *every* pair: η·d
is what ε is there, but for one pair alone.
Differs from the paper: it prints η without the distances, and so without what is promised.

A guarantee is of one release. After k releases of the same input under independent noise the odds
are at most exp(k·η·d) (sequential composition).

The factor is never computed where it would overflow: all is done with its logarithm η·d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from core.defences.metric_dp.noise import check_eta
from core.errors import InvalidInputError

__all__ = ["COMPOSITION", "HARDLY", "STRONG", "Promise", "Promises", "odds_said", "verdict"]

COMPOSITION = (
    "This covers one release of one text. Each further release of the same text multiplies the "
    "odds: after k releases they are to the power k. A text that occurs k times, also in other "
    "rows, columns or files, counts as k releases."
)
"""What a guarantee does not say by itself: it stands where something is released."""

STRONG = 1.0
HARDLY = 10.0
"""ε up to which a promise counts as strong, and above which as weak to none: tiers 1 and 2 of
Ponomareva et al. ("How to DP-fy ML", doi:10.1613/jair.1.14649), stated for ordinary DP."""

_LN10 = math.log(10)
_TO_ONE = " to 1"


def odds_said(log_odds: float) -> str:
    """Return odds in words, rounded up, from their natural logarithm.

    Examples
    --------
    >>> odds_said(0.0), odds_said(math.log(3.21)), odds_said(71.0), odds_said(math.inf)
    ('1 to 1', '3.3 to 1', '10^31 to 1', 'any size')
    """
    if not math.isfinite(log_odds):
        return "any size"
    decades = log_odds / _LN10
    if decades >= 6:
        return f"10^{math.ceil(decades - 1e-9):,} to 1"
    odds = math.exp(log_odds)
    step = 10.0 ** (math.floor(decades + 1e-12) - 1)  # two digits are said
    rounded = math.ceil(odds / step - 1e-9) * step
    return f"{rounded:,.0f} to 1" if rounded >= 10 else f"{rounded:.2g} to 1"


def verdict(log_odds: float) -> str:
    """Return what a promise of these odds is worth, in a few words.

    Examples
    --------
    >>> verdict(0.7), verdict(8.0), verdict(71.0)
    ('a strong promise', 'a promise of some worth', 'almost no promise')
    """
    if log_odds <= STRONG:
        return "a strong promise"
    return "a promise of some worth" if log_odds <= HARDLY else "almost no promise"


@dataclass(frozen=True, slots=True)
class Promise:
    """What an output may tell of two inputs at most.

    Attributes
    ----------
    what : str
        The two in words, such as `“insulin” from “aspirin”`.
    eta, distance : float
        In 1/distance; between the two. An infinite distance promises nothing.
    more : float
        What may be added to η·d, such as ln(1/p).
    releases : int
        Of the input, each under noise of its own; from 1.
    """

    what: str
    eta: float
    distance: float
    more: float = 0.0
    releases: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no η, no distance or no number of releases."""
        check_eta(self.eta)
        if not self.distance >= 0:
            raise InvalidInputError(f"A distance must be at least 0, got {self.distance!r}.")
        if not self.releases >= 1:
            raise InvalidInputError(f"releases must be at least 1, got {self.releases!r}.")

    @property
    def epsilon(self) -> float:
        """k·(η·d + `more`): the logarithm of the odds, and ε in ordinary differential privacy."""
        return self.releases * (self.eta * self.distance + self.more)

    @property
    def odds(self) -> str:
        """The greatest odds, in words."""
        return odds_said(self.epsilon)

    @property
    def said(self) -> str:
        """The promise as a clause: what follows "the output can tell".

        Examples
        --------
        >>> Promise("“insulin” from “aspirin”", 75.0, 0.95).said
        '“insulin” from “aspirin” by odds of up to 10^31 to 1: almost no promise'
        """
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        return f"{self.what} by odds of up to {self.odds}{times}: {verdict(self.epsilon)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form; ε stands for the odds, which a float could not hold."""
        return {
            "what": self.what,
            "distance": self.distance,
            "epsilon": self.epsilon,
            "odds": self.odds,
            "verdict": verdict(self.epsilon),
            "releases": self.releases,
        }


@dataclass(frozen=True, slots=True)
class Promises:
    """What a mechanism promises at an η for near inputs, usual ones, and whole texts.

    Attributes
    ----------
    nearest, median : Promise
        For an input and its nearest neighbour; for two inputs at the median distance.
    whole : Promise or None
        For a text of several tokens and any other of as many tokens: the distances of its tokens
        to the farthest token each, added up. None where the inputs are texts themselves.
    widest : Promise
        For the farthest two that were looked at: what ordinary differential privacy would have to
        name for all pairs is no smaller.
    """

    nearest: Promise
    median: Promise
    whole: Promise | None
    widest: Promise
    is_of_texts: bool = False
    """Whether the inputs are texts' own vectors rather than tokens."""
    n_tokens: int = 0
    """Of the text that `whole` is about."""
    pairs: tuple[str, str] = ("between nearest neighbours", "between a median pair")
    """Whose odds `nearest` and `median` are, in a few words."""
    symbol: str = "η"
    """What the mechanism calls its parameter."""
    also: str = ""
    """A sentence on what is not promised, if any."""

    @property
    def releases(self) -> int:
        """How many releases of the same input the odds cover."""
        return self.nearest.releases

    def after(self, releases: int) -> Promises:
        """Return what remains of this after several releases of the same input.

        Parameters
        ----------
        releases : int
            Each under noise of its own; from 1.

        Raises
        ------
        InvalidInputError
            Fewer than one.
        """
        told = {name: getattr(self, name) for name in _PAIRS}
        return replace(
            self,
            **{name: each and replace(each, releases=releases) for name, each in told.items()},
        )

    @property
    def headline(self) -> str:
        """One sentence: the nearest neighbour, whose promise is the best that there is."""
        return f"At {self.symbol} = {self.nearest.eta:g} the output can tell {self.nearest.said}."

    @property
    def odds_in_turn(self) -> str:
        """The odds alone: of the nearest, of a median pair, of a whole text."""
        told = [each.odds for each in (self.nearest, self.median, self.whole) if each is not None]
        cut = [odds.removesuffix(_TO_ONE) for odds in told[:-1]]
        is_short = all(odds.endswith(_TO_ONE) for odds in told)
        return " · ".join([*cut, told[-1]] if is_short else told)

    @property
    def of_nearest(self) -> str:
        """The odds of the nearest alone, as a clause, and what they are worth."""
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        odds, near = self.nearest.odds, self.pairs[0]
        return f"odds of up to {odds} {near}{times}: {verdict(self.nearest.epsilon)}"

    @property
    def brief(self) -> str:
        """The odds with whose they are, as a clause, and what the best of them is worth."""
        near, median = self.pairs
        told = [f"{self.nearest.odds} {near}", f"{self.median.odds} {median}"]
        if self.whole is not None:
            told.append(f"{self.whole.odds} for a whole sentence of {self.n_tokens} tokens")
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        return f"odds of up to {', '.join(told)}{times}: {verdict(self.nearest.epsilon)}"

    @property
    def brief_and_also(self) -> str:
        """`brief` as the end of a sentence, and the sentence after it where there is one."""
        return f"{self.brief}.{f' {self.also}' if self.also else ''}"

    @property
    def others(self) -> str:
        """One sentence: the odds of a median pair, and of a whole text where there is one."""
        pair = self.pairs[1]
        told = f"{pair[:1].upper()}{pair[1:]} the odds are up to {self.median.odds}"
        if self.whole is None:
            return f"{told}."
        return f"{told}, for a whole sentence of {self.n_tokens} tokens up to {self.whole.odds}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is promised, a sentence each, the comparison last."""
        rest = [f"It can tell {self.median.said}."]
        if self.whole is not None:
            rest.append(f"It can tell {self.whole.said}.")
        if self.also:
            rest.append(self.also)
        return self.headline, *rest, COMPOSITION, self.comparison

    @property
    def comparison(self) -> str:
        """How this compares with ordinary differential privacy."""
        return (
            "Ordinary differential privacy names one ε for every pair; here it would be "
            f"{_number(self.widest.epsilon)} or more ({self.widest.what}). There "
            f"an ε of {STRONG:g} or less counts as strong, one above {HARDLY:g} as weak or none."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        told = {name: getattr(self, name) for name in _PAIRS}
        return {name: promise and promise.to_dict() for name, promise in told.items()}


_PAIRS = ("nearest", "median", "whole", "widest")


def _number(epsilon: float) -> str:
    if not math.isfinite(epsilon):
        return "without bound"
    if epsilon >= 1e6:
        return f"10^{math.floor(math.log10(epsilon))}"
    return f"{epsilon:,.0f}" if epsilon >= 10 else f"{epsilon:.2g}"
