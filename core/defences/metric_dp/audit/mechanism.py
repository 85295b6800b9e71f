"""All tests on one mechanism, corrected for their number.

A mechanism is run as anybody runs it, `protect(encoder).encode(texts)`, on a probe that shows what
was done. Where noise is added to vectors it is seen, and held against its law. Where tokens come
out, their frequencies are, and the promise itself is bounded for a pair of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.audit import noise_law, outputs
from core.defences.metric_dp.audit.pairs import audit_pair
from core.defences.metric_dp.audit.probe import ProbeEncoder, texts_of
from core.defences.metric_dp.noise import check_eta
from core.defences.registry import make_defence
from core.errors import InvalidInputError
from core.protocols import Defence, OnProgress, no_progress
from core.specs import DefenceSpec

__all__ = [
    "ALPHA",
    "KINDS",
    "VERSION",
    "Audit",
    "MakeDefence",
    "Plan",
    "Sample",
    "audit",
    "check_alpha",
    "draw",
    "plan",
    "refuting",
    "shipped",
]

VERSION = 1
"""Raise it where a test changes: what was measured with other tests is then measured anew."""

ALPHA = 0.01
"""Chance that a mechanism which does what it says is refuted by any of the tests (Holm)."""

KINDS = ("text", "tokens", "vector")
"""What a mechanism acts on, as its entry says: of `text`, outputs alone are seen."""

MakeDefence = Callable[[int | None], Defence]
"""Makes the mechanism from a seed; from None as for release, with noise of its own."""

N_CALLS, N_PLACES, LENGTH = 25, 160, 8
"""Calls, tokens (or texts) a call, and tokens a text."""

DIMENSION, N_TOKENS = 32, 24
"""Of the probe on which noise is seen."""

_LAW_DRAWS = 200_000


@dataclass(frozen=True)
class Audit:
    """What the tests found.

    Attributes
    ----------
    p_values : dict
        Of each test, not corrected.
    refuted_by : tuple of str
        The tests that refute the mechanism after Holm's correction, at `alpha` in all.
    n_draws : int
        Draws of noise under test.
    """

    p_values: dict[str, float]
    refuted_by: tuple[str, ...]
    alpha: float
    n_draws: int

    @property
    def is_refuted(self) -> bool:
        """Whether any test contradicts what the mechanism says of itself."""
        return bool(self.refuted_by)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "is_refuted": self.is_refuted,
            "refuted_by": list(self.refuted_by),
            "alpha": self.alpha,
            "correction": "Holm",
            "n_draws": self.n_draws,
            "p_values": self.p_values,
        }


def shipped(name: str, eta: float) -> MakeDefence:
    """Return what makes a mechanism of this project at η."""

    def make(seed: int | None) -> Defence:
        return make_defence(DefenceSpec.of(name, {"eta": eta, "seed": seed}))

    return make


Sample = NDArray[Any]
"""Noise (calls, places, n), or tokens that came out (calls, places)."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked of a mechanism, the same for every source of noise."""

    encoder: ProbeEncoder
    ids: NDArray[np.int64]
    """Tokens that go in, (texts, tokens a text)."""
    kind: str
    eta: float


def plan(kind: str, eta: float, seed: int) -> Plan:
    """Lay out tokens and texts; the distances are in units of 1/η, so every η is tested alike.

    Raises
    ------
    InvalidInputError
        No such kind, no such η, or an η at which float32 has no room for the distances.
    """
    if kind not in KINDS:
        raise InvalidInputError(f"A mechanism acts on {', '.join(KINDS)}; got {kind!r}.")
    if not 1e-12 <= check_eta(eta) <= 1e12:
        raise InvalidInputError(f"An audit takes an eta from 1e-12 to 1e12, got {eta:g}.")
    rng = np.random.default_rng([seed, 1])
    length = 1 if kind == "vector" else LENGTH
    if kind == "text":
        stars = outputs.Stars.at(eta)
        table, inputs = stars.table, rng.choice(stars.centres, N_PLACES)
    else:
        table = (rng.standard_normal((N_TOKENS, DIMENSION)) * np.sqrt(DIMENSION) / eta).astype("f4")
        inputs = rng.integers(N_TOKENS, size=N_PLACES)
    return Plan(ProbeEncoder(table, length), inputs.reshape(-1, length), kind, eta)


def draw(asked: Plan, make: MakeDefence, seed: int | None, n_calls: int = N_CALLS) -> Sample:
    """Run a mechanism, newly made, and return its noise, or the tokens that came out."""
    probe, texts = asked.encoder, texts_of(asked.ids)
    protected = make(seed).protect(probe)
    found = np.stack([protected.encode(texts) for _ in range(n_calls)])
    if asked.kind == "text":
        return np.stack([probe.tokens_in(call) for call in found]).reshape(n_calls, -1)
    noise = found.astype(np.float64) - probe.encode(texts)
    return noise.reshape(n_calls, N_PLACES, -1)


def audit(
    make: MakeDefence,
    kind: str,
    eta: float,
    *,
    seed: int = 0,
    alpha: float = ALPHA,
    elsewhere: Callable[[Plan], tuple[Sample, Sample]] | None = None,
    on_progress: OnProgress = no_progress,
) -> Audit:
    """Test a mechanism at η.

    Parameters
    ----------
    make : callable
        Makes the mechanism from a seed, or for release.
    kind : str
        What it acts on, of KINDS.
    seed : int
        Of what goes in, of the law's draws and of the noise; noise for release has none, and is
        tested besides.
    alpha : float
        Chance that a true mechanism is refuted, over all tests.
    elsewhere : callable, optional
        Given what to ask, returns what two other processes drew for release.

    Raises
    ------
    InvalidInputError
        See `plan`; or alpha is no probability.
    """
    check_alpha(alpha)
    asked = plan(kind, eta, seed)
    on_progress(0.1, "Drawing noise")
    main = draw(asked, make, seed)
    on_progress(0.4, "Testing it")
    tests = _own_tests(asked, main, seed)
    if kind == "text":
        tests |= _bounded(asked, make, seed)
    on_progress(0.6, "Drawing noise as for release")
    fresh = [draw(asked, make, None, n_calls=5) for _ in range(2)]
    tests |= _twins(asked, fresh[0], fresh[1], "instances")
    if elsewhere is not None:
        on_progress(0.7, "Drawing noise in other processes")
        tests |= _twins(asked, *elsewhere(asked), "processes")
    on_progress(1.0, f"{len(tests)} tests")
    return Audit(tests, refuting(tests, alpha), alpha, N_CALLS * N_PLACES)


def check_alpha(alpha: float) -> None:
    """Raise InvalidInputError where alpha is no probability."""
    if not 0 < alpha < 1:
        raise InvalidInputError(f"alpha must lie between 0 and 1, got {alpha!r}.")


def _own_tests(asked: Plan, main: Sample, seed: int) -> dict[str, float]:
    if asked.kind != "text":
        inputs = asked.encoder.table[asked.ids.ravel()].astype(np.float64)
        return {**noise_law.law_tests(main, inputs, asked.eta), **noise_law.link_tests(main)}
    stars = outputs.Stars.at(asked.eta)
    return outputs.output_tests(stars, asked.ids.ravel(), main, _law(seed))


@lru_cache(maxsize=256)
def _law(seed: int) -> NDArray[np.int64]:
    """Return what the law makes of a centre, in units of 1/η: the same at every η."""
    return outputs.Stars.at(1.0).law(_LAW_DRAWS, np.random.default_rng([seed, 2]))


def _twins(asked: Plan, one: Sample, other: Sample, what: str) -> dict[str, float]:
    if asked.kind == "text":
        return outputs.twin_output_tests(outputs.Stars.at(asked.eta), one, other, what)
    return noise_law.twin_tests(one, other, what)


def _bounded(asked: Plan, make: MakeDefence, seed: int) -> dict[str, float]:
    """Bound exp(η·d) for a centre and its neighbour on the ring, by what comes out of either."""
    protected = make(seed + 1).protect(asked.encoder)

    def run(token: int) -> Callable[[int], NDArray[np.int64]]:
        def outcomes(n: int) -> NDArray[np.int64]:
            texts = texts_of(np.full((n // LENGTH, LENGTH), token))
            return asked.encoder.tokens_in(protected.encode(texts)).ravel()

        return outcomes

    n_runs = N_CALLS * N_PLACES
    found = audit_pair(run(0), run(1), outputs.RING, n_runs=n_runs)
    return {"promise: exp(η·d) for two near tokens": found.p_value}


def refuting(tests: dict[str, float], alpha: float) -> tuple[str, ...]:
    """Return the tests that refute, by Holm's step-down: at most alpha to err in any."""
    found = []
    for rank, name in enumerate(sorted(tests, key=tests.__getitem__)):
        if tests[name] > alpha / (len(tests) - rank):
            break
        found.append(name)
    return tuple(found)
