"""Tests of the mechanisms that choose a token: by their outputs, against chances counted out.

Each output is turned into where it stands in the distribution of its input, evenly at random
within its own chance: under the law these numbers are independent and uniform, whatever the input,
so that one kind of test serves all mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.defences.metric_dp.audit.choice_laws import (
    LAWS,
    N_FREQUENT,
    PROMISES,
    Chances,
    distance,
    sets_by_hand,
)
from core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    LENGTH,
    N_CALLS,
    N_PLACES,
    PROMISE,
    Audit,
    MakeDefence,
    Plan,
    Sample,
    check_alpha,
    draw,
    refuting,
)
from core.defences.metric_dp.audit.pairs import AuditResult, audit_pair
from core.defences.metric_dp.audit.probe import ProbeEncoder, texts_of
from core.defences.metric_dp.audit.untested import CHOICE, untested_of
from core.defences.registry import make_defence
from core.errors import InvalidInputError
from core.protocols import Defence, OnProgress, no_progress
from core.specs import DefenceSpec
from core.store import digest_of

__all__ = ["CHOICES", "ChoicePlan", "audit_choice", "choice_plan", "choice_tests", "shipped_choice"]

CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "text_to_text_ranked": ("eta", {"c": 0.5}),
    "santext": ("epsilon", {}),
    "santext_plus": ("epsilon", {"p": 0.3, "sensitive": 0.8}),
    "custext": ("epsilon", {"k": 6}),
    "tem": ("epsilon", {"beta": 0.8}),
}
"""The mechanisms; what their strength is called, and settings under which a small vocabulary shows
all that they do: under TEM's β here half of the vocabulary lies beyond γ. What is multiplied by η
there is stated in units of 1/η."""

N_TOKENS, DIMENSION, N_INPUTS = 24, 3, 8
_LEAST, _MOST = 1e-3, 1e6
_SPREAD = 1.6
"""Of the vocabulary, in units of 1/ε: near tokens are confused often, far ones at times."""
_QUARTERS = 4
_FEWEST = 5


class _WordyProbe(ProbeEncoder):
    """Takes any word that is no token for one of the first: those are then the frequent ones."""

    def __init__(self, table: NDArray[np.float32], length: int) -> None:
        super().__init__(table, length)
        self.fingerprint = f"probe-{digest_of({'table': self.table}, {})[:16]}-{length}"

    def token_ids(self, texts: Any, *, is_whole: bool = False) -> list[list[int]]:
        return [[self._token(word) for word in text.split()] for text in texts]

    def _token(self, word: str) -> int:
        is_token = word[:1] == "t" and word[1:].isdecimal() and int(word[1:]) < len(self.table)
        return int(word[1:]) if is_token else len(word) % N_FREQUENT


@dataclass(frozen=True, eq=False)
class ChoicePlan(Plan):
    """What is asked of a mechanism that chooses tokens.

    Attributes
    ----------
    chances : float64 array (V, V)
        Of each output for each input.
    pair : tuple of int
        Two tokens that the promise is of.
    promised : float
        The most that the logarithm of a ratio of their chances may be.
    """

    chances: Chances
    pair: tuple[int, int]
    promised: float


def settings_at(name: str, strength: float) -> dict[str, Any]:
    """Return the settings under which a mechanism is audited."""
    strong, settings = CHOICES[name]
    scaled = {k: v / strength if k == "c" else v for k, v in settings.items()}
    return {strong: strength, **scaled}


def shipped_choice(name: str, strength: float) -> MakeDefence:
    """Return what makes a mechanism of this project at an ε, or η."""

    def make(seed: int | None) -> Defence:
        return make_defence(DefenceSpec.of(name, settings_at(name, strength) | {"seed": seed}))

    return make


@lru_cache(maxsize=64)
def choice_plan(name: str, strength: float, seed: int) -> ChoicePlan:
    """Lay out a vocabulary in units of 1/ε, inputs and the law.

    Raises
    ------
    InvalidInputError
        The ε (or η) is none, or one at which an audit would see nothing.
    """
    if not _LEAST <= strength <= _MOST:
        raise InvalidInputError(
            f"An audit of {name} takes an {CHOICES[name][0]} from {_LEAST:g} to {_MOST:g}, "
            f"got {strength!r}."
        )
    rng = np.random.default_rng([seed, 3])
    points = rng.standard_normal((N_TOKENS, DIMENSION)) * _SPREAD / strength
    table = points.astype(np.float32)
    exact, settings = table.astype(np.float64), settings_at(name, strength)
    pair = _near_pair(name, exact, settings)
    others = [i for i in range(N_TOKENS) if i not in pair][: N_INPUTS - 2]
    inputs = rng.permutation(np.resize([*pair, *others], N_PLACES))
    return ChoicePlan(
        _WordyProbe(table, LENGTH),
        inputs.reshape(-1, LENGTH),
        "text",
        strength,
        LAWS[name](exact, strength, settings),
        pair,
        PROMISES[name](exact, strength, settings, *pair),
    )


def _near_pair(name: str, table: NDArray[np.float64], settings: dict[str, Any]) -> tuple[int, int]:
    """Return the nearest two tokens that share a set and are both sensitive, where that counts."""
    groups = [list(range(N_FREQUENT, len(table)))]
    if name == "custext":
        groups = sets_by_hand(table, settings["k"])
    pairs = [(x, y) for group in groups for x in group for y in group if x < y]
    return min(pairs, key=lambda pair: distance(table, *pair))


def audit_choice(
    make: MakeDefence,
    asked: ChoicePlan,
    *,
    seed: int = 0,
    alpha: float = ALPHA,
    elsewhere: Callable[[Plan], tuple[Sample, Sample]] | None = None,
    on_progress: OnProgress = no_progress,
) -> Audit:
    """Test a mechanism that chooses tokens; the parameters are those of `audit`.

    Raises
    ------
    InvalidInputError
        alpha is no probability.
    """
    check_alpha(alpha)
    rng = np.random.default_rng([seed, 4])
    on_progress(0.1, "Drawing tokens")
    tests = choice_tests(asked, draw(asked, make, seed), rng)
    on_progress(0.5, "Testing the promise")
    bounds = _bounded(asked, make, seed)
    tests |= {name: bound.p_value for name, bound in bounds.items()}
    on_progress(0.7, "Drawing as for release")
    fresh = (draw(asked, make, None, n_calls=5), draw(asked, make, None, n_calls=5))
    tests |= _twins(asked, fresh, "instances", rng)
    if elsewhere is not None:
        on_progress(0.8, "Drawing in other processes")
        tests |= _twins(asked, elsewhere(asked), "processes", rng)
    on_progress(1.0, f"{len(tests)} tests")
    left_out = untested_of(CHOICE)
    return Audit(tests, refuting(tests, alpha), alpha, N_CALLS * N_PLACES, bounds, left_out)


def choice_tests(asked: ChoicePlan, found: Sample, rng: np.random.Generator) -> dict[str, float]:
    """Test outputs (calls, places) against the chances of their inputs."""
    inputs = np.broadcast_to(asked.ids.ravel(), found.shape)
    if (asked.chances[inputs, found] <= 0).any():
        return {"outputs: none that cannot come": 0.0}
    where = _places_in_law(asked, found, rng)
    quarter = _quarters(where)
    return {
        "outputs: as often as the law says": _as_the_law_says(asked.chances, inputs, found),
        "outputs: an input returns as often": _own_returns(asked.chances, inputs, found),
        "outputs: the law as a whole": float(stats.kstest(where.ravel(), "uniform").pvalue),
        "outputs: the same from every input": _independent(inputs, quarter),
        "within a call": _independent(quarter[:, :-1], quarter[:, 1:]),
        "between calls": _independent(quarter[:-1], quarter[1:]),
    }


def _places_in_law(
    asked: ChoicePlan, found: Sample, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return where outputs stand in the distribution of their input: uniform under the law."""
    inputs = np.broadcast_to(asked.ids.ravel(), found.shape)
    upper = np.cumsum(asked.chances, axis=1)[inputs, found]
    own = asked.chances[inputs, found]
    placed: NDArray[np.float64] = upper - rng.random(found.shape) * own
    return placed.clip(0, 1)


def _as_the_law_says(chances: Chances, inputs: Sample, found: Sample) -> float:
    """Return the p-value of χ² over all inputs; outputs too rare for it are put together."""
    statistic, freedom = 0.0, 0
    for token in np.unique(inputs):
        own = found[inputs == token]
        expected = chances[token] * len(own)
        counts = np.bincount(own, minlength=len(expected))
        order = np.argsort(expected)
        n_rare = int((expected[order].cumsum() < _FEWEST).sum()) + 1
        table = [
            np.array([c[order[:n_rare]].sum(), *c[order[n_rare:]]]) for c in (counts, expected)
        ]
        statistic += float(((table[0] - table[1]) ** 2 / table[1]).sum())
        freedom += len(table[0]) - 1
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


def _own_returns(chances: Chances, inputs: Sample, found: Sample) -> float:
    """Return the two-sided p-value of how often inputs come back, by the normal law."""
    own = chances[inputs, inputs]
    spread = np.sqrt((own * (1 - own)).sum())
    away = ((found == inputs) - own).sum() / spread if spread > 0 else 0.0
    return float(2 * stats.norm.sf(abs(away)))


def _twins(
    asked: ChoicePlan, twins: tuple[Sample, Sample], what: str, rng: np.random.Generator
) -> dict[str, float]:
    """Test that two sources answer independently in the same places."""
    one, other = (_quarters(_places_in_law(asked, each, rng)) for each in twins)
    return {f"between {what}": _independent(one, other)}


def _quarters(where: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((where * _QUARTERS).astype(np.int64), _QUARTERS - 1)


def _independent(one: Sample, other: Sample) -> float:
    table = stats.contingency.crosstab(one.ravel(), other.ravel()).count
    return float(stats.chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0


def _bounded(asked: ChoicePlan, make: MakeDefence, seed: int) -> dict[str, AuditResult]:
    """Bound the promise for two near tokens, both ways, by what comes out of either."""
    protected = make(seed + 1).protect(asked.encoder)

    def run(token: int) -> Callable[[int], NDArray[np.int64]]:
        def outcomes(n: int) -> NDArray[np.int64]:
            texts = texts_of(np.full((n // LENGTH, LENGTH), token))
            return asked.encoder.tokens_in(protected.encode(texts)).ravel()

        return outcomes

    x, other = asked.pair
    n_runs = N_CALLS * N_PLACES
    return {
        f"{PROMISE}{one} from {two}": audit_pair(run(a), run(b), asked.promised, n_runs=n_runs)
        for one, two, a, b in (("a token", "a near one", x, other), ("that", "the first", other, x))
    }
