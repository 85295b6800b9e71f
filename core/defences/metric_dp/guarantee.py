"""Guarantees of d_χ-privacy at an η, in numbers and in words.

Implements Qu et al. (2021), Eq. 2: P[M(x) = y] ≤ exp(η·d(x, x'))·P[M(x') = y]. So an output can
shift the odds between x and x' by a factor of at most exp(η·d). For a text d is the sum over its
tokens (§3.1). Ordinary (local) differential privacy, Eq. 1, guarantees exp(ε) for *every* pair: η·d
plays the role of ε, but for one pair only.
Differs from the paper, which prints η without the distances and so without the guarantee.

A guarantee covers one release. After k releases of the same input under independent noise, the
odds are at most exp(k·η·d) (sequential composition).

All computations use the logarithm η·d, since the factor itself may overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from leakscope.core.defences.metric_dp.noise import check_eta
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import power_of_ten

COMPOSITION = (
    "The guarantee covers one release of one text. Each further release of the same text "
    "multiplies the odds: after k releases, they are raised to the power k. A text that occurs k "
    "times, in any rows, columns or files, counts as k releases."
)
"""The limits of a guarantee; shown wherever something is released."""

STRONG = 1.0
HARDLY = 10.0
"""ε up to which a guarantee counts as strong, and above which as practically void: tiers 1, 2 of
Ponomareva et al. ("How to DP-fy ML", doi:10.1613/jair.1.14649), stated for ordinary DP."""

_LN10 = math.log(10)
_TO_ONE = " to 1"
_UNLIMITED = "unlimited"


def format_odds(log_odds: float) -> str:
    """Format odds given by their natural logarithm, rounded up, such as `10³¹ to 1`.

    Examples
    --------
    >>> format_odds(0.0), format_odds(math.log(3.21)), format_odds(71.0), format_odds(math.inf)
    ('1 to 1', '3.3 to 1', '10³¹ to 1', 'unlimited')
    """
    if not math.isfinite(log_odds):
        return _UNLIMITED
    decades = log_odds / _LN10
    if decades >= 6:
        return f"{power_of_ten(math.ceil(decades - 1e-9))} to 1"
    odds = math.exp(log_odds)
    step = 10.0 ** (math.floor(decades + 1e-12) - 1)  # two digits are given
    rounded = math.ceil(odds / step - 1e-9) * step
    return f"{rounded:,.0f} to 1" if rounded >= 10 else f"{rounded:.2g} to 1"


def verdict(log_odds: float) -> str:
    """Return the verdict on odds given by their logarithm, such as `a strong guarantee`.

    Examples
    --------
    >>> verdict(0.7), verdict(8.0), verdict(71.0)
    ('a strong guarantee', 'a moderate guarantee', 'practically no guarantee')
    """
    if log_odds <= STRONG:
        return "a strong guarantee"
    return "a moderate guarantee" if log_odds <= HARDLY else "practically no guarantee"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Bound on how well a mechanism's output can distinguish two inputs.

    Attributes
    ----------
    what : str
        Both in words, such as `“insulin” and “aspirin”`.
    eta, distance : float
        η, in 1/distance, and the distance of the inputs. Infinity guarantees nothing.
    more : float
        What may be added to η·d, such as ln(1/p).
    releases : int
        Releases of the input, each with independent noise; from 1.
    """

    what: str
    eta: float
    distance: float
    more: float = 0.0
    releases: int = 1

    def __post_init__(self) -> None:
        """Raise InvalidInputError if η, the distance or the number of releases is invalid."""
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
        """The greatest possible odds, in words."""
        return format_odds(self.epsilon)

    @property
    def clause(self) -> str:
        """The bound as words that follow "whoever sees the output may tell apart".

        Examples
        --------
        >>> Guarantee("“insulin” and “aspirin”", 8.0, 0.95).clause
        '“insulin” and “aspirin” with odds of up to 2,000 to 1: a moderate guarantee'
        """
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        bound = "unlimited odds" if self.odds == _UNLIMITED else f"odds of up to {self.odds}"
        return f"{self.what} with {bound}{times}: {verdict(self.epsilon)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as a JSON-able dict, with ε because the odds may overflow."""
        return {
            "what": self.what,
            "distance": self.distance,
            "epsilon": self.epsilon,
            "odds": self.odds,
            "verdict": verdict(self.epsilon),
            "releases": self.releases,
        }


@dataclass(frozen=True, slots=True)
class Guarantees:
    """A mechanism's guarantees at an η: for near inputs, typical inputs and whole texts.

    Attributes
    ----------
    nearest, median : Guarantee
        For an input and its nearest neighbour; for two inputs at the median distance.
    whole : Guarantee or None
        For a text of several tokens and any other of as many tokens: the distances of its tokens
        to the farthest token each, added up. None where the inputs are texts themselves.
    widest : Guarantee
        For the farthest two inputs measured: the ε of ordinary differential privacy, which holds
        for all pairs, is no smaller.
    """

    nearest: Guarantee
    median: Guarantee
    whole: Guarantee | None
    widest: Guarantee
    is_of_texts: bool = False
    """Whether the inputs are texts' own vectors rather than tokens."""
    n_tokens: int = 0
    """Number of tokens of the text in `whole`."""
    pairs: tuple[str, str] = (
        "between nearest neighbours",
        "between two words a typical (median) distance apart",
    )
    """The inputs of `nearest` and `median`, in a few words."""
    symbol: str = "η"
    """Symbol of the mechanism's parameter."""
    also: str = ""
    """A sentence on what is not guaranteed, if any."""

    @property
    def releases(self) -> int:
        """The number of releases of the same input that the odds cover."""
        return self.nearest.releases

    def after(self, releases: int) -> Guarantees:
        """Return a copy with the guarantees that remain after several releases of the same input.

        Parameters
        ----------
        releases : int
            Releases with independent noise; from 1.

        Raises
        ------
        InvalidInputError
            Fewer than one.
        """
        by_name = {name: getattr(self, name) for name in _PAIRS}
        return replace(
            self,
            **{name: each and replace(each, releases=releases) for name, each in by_name.items()},
        )

    @property
    def headline(self) -> str:
        """One sentence with the bound for the nearest neighbour, which is the strongest."""
        at = f"At {self.symbol} = {self.nearest.eta:g}"
        return f"{at}, whoever sees the output may tell apart {self.nearest.clause}."

    @property
    def short_odds(self) -> str:
        """The odds in short form: nearest pair, pair at the median distance and whole text."""
        parts = [each.odds for each in (self.nearest, self.median, self.whole) if each is not None]
        cut = [odds.removesuffix(_TO_ONE) for odds in parts[:-1]]
        is_short = all(odds.endswith(_TO_ONE) for odds in parts)
        return " · ".join([*cut, parts[-1]] if is_short else parts)

    @property
    def nearest_odds(self) -> str:
        """The odds of the nearest pair and their verdict, to continue "odds of up to"."""
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        return f"{self.nearest.odds} {self.pairs[0]}{times}: {verdict(self.nearest.epsilon)}"

    @property
    def all_odds(self) -> str:
        """The odds of each kind of pair and the verdict on the nearest pair, as `nearest_odds`."""
        near, median = self.pairs
        parts = [f"{self.nearest.odds} {near}", f"{self.median.odds} {median}"]
        if self.whole is not None:
            parts.append(f"{self.whole.odds} for a whole sentence of {self.n_tokens} tokens")
        times = f" after {self.releases} releases" if self.releases > 1 else ""
        return f"{', '.join(parts)}{times}: {verdict(self.nearest.epsilon)}"

    @property
    def brief_with_caveat(self) -> str:
        """All odds and the verdict as the end of a sentence, and the caveat `also` if any."""
        return f"odds of at most {self.all_odds}.{f' {self.also}' if self.also else ''}"

    @property
    def others(self) -> str:
        """One sentence: the odds at the median distance, and of a whole text if there is one."""
        pair = self.pairs[1]
        parts = f"{pair[:1].upper()}{pair[1:]}, the odds are {_format_limit(self.median.odds)}"
        if self.whole is None:
            return f"{parts}."
        whole = _format_limit(self.whole.odds)
        return f"{parts}; for a whole sentence of {self.n_tokens} tokens, {whole}."

    @property
    def in_full(self) -> str:
        """All odds and what is not guaranteed, as one text."""
        return " ".join(filter(None, (self.headline, self.others, self.also)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """All guarantees, one sentence each, ending with the comparison with ordinary DP."""
        rest = [f"They may tell apart {self.median.clause}."]
        if self.whole is not None:
            rest.append(f"They may tell apart {self.whole.clause}.")
        if self.also:
            rest.append(self.also)
        return self.headline, *rest, COMPOSITION, self.comparison

    @property
    def comparison(self) -> str:
        """Sentences that compare the guarantee with ordinary differential privacy."""
        return (
            "Ordinary differential privacy names one ε for all pairs. Here it would be "
            f"{_format_epsilon(self.widest.epsilon)} or more (for {self.widest.what}). An ε of at "
            f"most {STRONG:g} counts as strong, an ε above {HARDLY:g} as practically no guarantee."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantees of each kind of pair as a JSON-able dict."""
        by_name = {name: getattr(self, name) for name in _PAIRS}
        return {name: promise and promise.to_dict() for name, promise in by_name.items()}


_PAIRS = ("nearest", "median", "whole", "widest")


def _format_limit(odds: str) -> str:
    """Format odds in words as a limit: `up to 10 to 1`, or `unlimited`."""
    return odds if odds == _UNLIMITED else f"up to {odds}"


def _format_epsilon(epsilon: float) -> str:
    """Format an ε in two digits, as a power of ten, or as `without bound`."""
    if not math.isfinite(epsilon):
        return "without bound"
    if epsilon >= 1e6:
        return power_of_ten(math.floor(math.log10(epsilon)))
    return f"{epsilon:,.0f}" if epsilon >= 10 else f"{epsilon:.2g}"
