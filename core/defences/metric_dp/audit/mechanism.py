"""The audit of a d_χ mechanism: all tests, corrected for their number.

A mechanism is run as its users run it, `protect(encoder).encode(texts)`, on a probe that shows
what was done. Where noise is added to vectors, the noise is compared with its law, in 32 dimensions
and in as many as the encoder has, and the numbers are tested as they are released (`pairs`).
Where tokens come out, their frequencies are. The guarantee itself is bounded for a pair of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.audit import noise_law
from leakscope.core.defences.metric_dp.audit.pairs import (
    AuditResult,
    audit_pair,
    bound_odds_of_vectors,
    grid_test,
)
from leakscope.core.defences.metric_dp.noise import check_eta
from leakscope.core.defences.registry import make_defence
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Defence, OnProgress, Vectors, no_progress
from leakscope.core.specs import DefenceSpec


class ProbeEncoder:
    """Encodes a text of `length` tokens as its concatenated token vectors.

    The tokens are `t0`, `t1`, …; no text is cut, so every mechanism runs on it as on any other
    white-box encoder, through `protect` and `encode` alone.

    Parameters
    ----------
    table : float32 array (V, n)
        The token vectors.
    length : int
        Tokens that every text has.
    """

    n_layers = 1
    special_token_ids: Sequence[int] = ()

    def __init__(self, table: NDArray[np.float32], length: int) -> None:
        self.table, self.length = np.ascontiguousarray(table, np.float32), length
        self.name, self.fingerprint = "probe", f"probe-{table.shape}-{length}"
        self.dimension = length * self.table.shape[1]
        self.tokens: Sequence[str] = [f"t{i}" for i in range(len(table))]
        self.token_vectors = torch.from_numpy(self.table)

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Parse each text's words `t<i>` to their token ids i."""
        return [[int(word[1:]) for word in text.split()] for text in texts]

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Return the text of token ids, such as `t3 t7`."""
        return " ".join(f"t{i}" for i in token_ids)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Concatenate the token vectors of each text, (texts, length·n)."""
        return self.table[np.array(self.token_ids(texts))].reshape(len(texts), -1)

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Return the same vectors as `encode` for any layer: there is only one."""
        return self.encode(texts, on_progress)

    def embed_token_vectors(self, vectors: torch.Tensor, layer: int | None = None) -> torch.Tensor:
        """Concatenate each text's token vectors: (texts, length, n) to (texts, length·n)."""
        return vectors.reshape(len(vectors), -1)

    def tokens_in(self, vectors: Vectors) -> NDArray[np.int64]:
        """Look up the token ids of texts, (texts, length), from their noiseless vectors."""
        rows = np.asarray(vectors, np.float32).reshape(-1, self.table.shape[1])
        known = {row.tobytes(): i for i, row in enumerate(self.table)}
        found = [known[row.tobytes()] for row in np.ascontiguousarray(rows)]
        return np.array(found, np.int64).reshape(-1, self.length)


def token_texts(ids: NDArray[np.int64]) -> list[str]:
    """Return a probe text such as `t3 t7` for each row of token ids."""
    return [" ".join(f"t{i}" for i in row) for row in ids]


CHOICE = "choice"
"""The kind of mechanisms that choose a token; see also `mechanism.KINDS`."""

_ALWAYS = (
    "Other settings, and inputs other than those of the probe.",
    "Whether the random stream can be predicted: only its statistics are tested.",
    "Side channels: the number of word pieces, running time, memory, errors.",
    "Several releases of one text: their odds multiply.",
    "Code that recognises the audit and behaves differently outside it.",
)

_OF_NUMBERS = (
    "Errors of η below about 0.7 %, at 384 dimensions.",
    "Norms cut off beyond their 99.5 % quantile.",
    "The odds of events rarer than about 1 in 4 releases, and of inputs farther apart than 1/η.",
    "Draws that are reused after more than 1,100 calls.",
    "Dependent norms within a call of many texts, except those of neighbours.",
    "Dependence among three or more draws that no pair shows.",
    "Dimensions other than 32 and the given one; noise drawn on a GPU or by threads.",
    "The sampler's own discreteness, about 2^-30.",
)

_OF_TEXT = (
    "The noise itself: the audit sees only the returned tokens, in 4 dimensions.",
    "Noise that is wrong by a few per cent, or correlated beyond neighbours and successive calls.",
    "Draws that are reused later than in the next call.",
    "The vocabulary of an encoder: the probe has four groups of 49 tokens.",
)

_OF_CHOICES = (
    "The vocabulary of an encoder: the probe has 24 tokens in 3 dimensions.",
    "Errors of ε of a few per cent, and outcomes rarer than 1 in 1,000.",
    "Draws that are reused later than in the next call, or correlated beyond neighbours and "
    "successive calls.",
)


def list_untested(kind: str) -> tuple[str, ...]:
    """Return sentences on what the audit of a kind of mechanism leaves untested.

    Parameters
    ----------
    kind : str
        Of `mechanism.KINDS`, or CHOICE.
    """
    own = {"text": _OF_TEXT, CHOICE: _OF_CHOICES}.get(kind, _OF_NUMBERS)
    return (*own, *_ALWAYS)


VERSIONS = {"text": 1, "choice": 1, "tokens": 2, "vector": 2}
"""Of the tests, by kind of mechanism. Raise it where a test changes, and it is measured again."""

ALPHA = 0.01
"""Probability that a correct mechanism is refuted by any of the tests (Holm)."""

KINDS = ("text", "tokens", "vector")
"""What a mechanism acts on, as in its entry; for `text`, only outputs are visible."""

MakeDefence = Callable[[int | None], Defence]
"""Builds the mechanism from a seed, or from None as for release, with unseeded noise."""

N_CALLS, N_PLACES, LENGTH = 25, 160, 8
"""Calls, tokens (or texts) a call, and tokens a text."""

DIMENSION = 384
"""Of an encoder's vectors, where none is given: that of all-MiniLM-L6-v2."""

PROMISE = "promise: "
"""What the names of tests of the guarantee itself begin with. All others test the law of the noise,
from which the guarantee follows: what they refute may still keep it, without a proof."""

_FEW, N_TOKENS = 32, 24
"""Dimensions and tokens of the probe on which the law's shape is tested: the fewer the dimensions,
the more informative a draw is."""

_N_SINGLE_CALLS, _N_BATCHES, _BATCH = 1_100, 5, 160
"""In the encoder's own dimension, with texts of one token: calls of one text, calls of many texts,
and texts per such call."""

_N_RUNS, _NEAR = 400, 1.0
"""Runs of each of two inputs whose odds are bounded, and their distance in units of 1/η."""

_MOST_ETA = 1e6
"""For numbers: beyond it the step of the grid is no longer small beside the noise."""

_LAW_DRAWS = 200_000


@dataclass(frozen=True)
class Audit:
    """Result of an audit: p-values, rejected tests, bounds on the odds, untested parts.

    Attributes
    ----------
    p_values : dict
        Of each test, not corrected.
    refuted_by : tuple of str
        The tests that refute the mechanism after Holm's correction, at `alpha` in all.
    n_draws : int
        Draws of noise under test.
    bounds : dict of AuditResult
        The odds of two inputs, by the name of their test.
    untested : tuple of str
        What the audit leaves out, a sentence each.
    """

    p_values: dict[str, float]
    refuted_by: tuple[str, ...]
    alpha: float
    n_draws: int
    bounds: dict[str, AuditResult] = field(default_factory=dict)
    untested: tuple[str, ...] = ()

    @property
    def is_refuted(self) -> bool:
        """Whether any test contradicts the mechanism's specification."""
        return bool(self.refuted_by)

    @property
    def is_promise_refuted(self) -> bool:
        """Whether the measured odds of two inputs exceed the guarantee's bound."""
        return any(name.startswith(PROMISE) for name in self.refuted_by)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit's result as a JSON-able dict."""
        return {
            "is_refuted": self.is_refuted,
            "is_promise_refuted": self.is_promise_refuted,
            "refuted_by": list(self.refuted_by),
            "alpha": self.alpha,
            "correction": "Holm",
            "n_draws": self.n_draws,
            "p_values": self.p_values,
            "log_odds": {
                name: {
                    "at_least": bound.lower_bound if np.isfinite(bound.lower_bound) else None,
                    "promised": bound.promised,
                    "n_runs": bound.n_runs,
                    "seen_in": bound.view,
                }
                for name, bound in self.bounds.items()
            },
            "not_tested": list(self.untested),
        }


def defence_factory(name: str, eta: float) -> MakeDefence:
    """Return a function of a seed that builds a named d_χ mechanism at η."""

    def make(seed: int | None) -> Defence:
        return make_defence(DefenceSpec.of(name, {"eta": eta, "seed": seed}))

    return make


Sample = NDArray[Any]
"""Noise (calls, places, n), or tokens that came out (calls, places)."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The probe encoder and inputs of an audit, the same for every source of noise."""

    encoder: ProbeEncoder
    ids: NDArray[np.int64]
    """Tokens that go in, (texts, tokens a text)."""
    kind: str
    eta: float


def make_plan(kind: str, eta: float, seed: int) -> Plan:
    """Build the plan of an audit: a probe encoder and the tokens that go in, scaled to η.

    Distances scale with 1/η, so every η is tested alike.

    Raises
    ------
    InvalidInputError
        No such kind, no such η, or an η at which float32 has no room for the distances, or the
        grid of released numbers none for the noise.
    """
    if kind not in KINDS:
        raise InvalidInputError(f"A mechanism acts on {', '.join(KINDS)}; got {kind!r}.")
    most = 1e12 if kind == "text" else _MOST_ETA
    if not 1e-12 <= check_eta(eta) <= most:
        raise InvalidInputError(f"An audit takes an eta from 1e-12 to {most:g}, got {eta:g}.")
    rng = np.random.default_rng([seed, 1])
    length = 1 if kind == "vector" else LENGTH
    if kind == "text":
        stars = noise_law.Stars.at(eta)
        table, inputs = stars.table, rng.choice(stars.centres, N_PLACES)
    else:
        table = (rng.standard_normal((N_TOKENS, _FEW)) * np.sqrt(_FEW) / eta).astype("f4")
        inputs = rng.integers(N_TOKENS, size=N_PLACES)
    return Plan(ProbeEncoder(table, length), inputs.reshape(-1, length), kind, eta)


def run_mechanism(
    asked: Plan, make: MakeDefence, seed: int | None, n_calls: int = N_CALLS
) -> Sample:
    """Build a mechanism and run it on a plan's inputs; return its noise, or its output tokens."""
    probe, texts = asked.encoder, token_texts(asked.ids)
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
    dimension: int = DIMENSION,
    elsewhere: Callable[[Plan], tuple[Sample, Sample]] | None = None,
    on_progress: OnProgress = no_progress,
) -> Audit:
    """Run a d_χ mechanism at η, test its noise or outputs, and correct for the number of tests.

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
    dimension : int
        Of the vectors of the encoder that a mechanism which releases numbers is used on.
    elsewhere : callable, optional
        Given what to ask, returns what two other processes drew for release.

    Raises
    ------
    InvalidInputError
        See `make_plan`; or alpha is no probability, or the dimension is not 2 to 10,000.
    """
    check_alpha(alpha)
    if not 2 <= dimension <= 10_000:
        raise InvalidInputError(f"dimension must be 2 to 10,000, got {dimension!r}.")
    asked = make_plan(kind, eta, seed)
    on_progress(0.1, "Drawing noise")
    main = run_mechanism(asked, make, seed)
    if not np.isfinite(main).all():
        tests = {"outputs: all finite": 0.0}
        return Audit(tests, holm_rejected(tests, alpha), alpha, len(main), {}, list_untested(kind))
    on_progress(0.4, "Testing it")
    tests, n_draws, bounds = _own_tests(asked, main, seed), N_CALLS * N_PLACES, {}
    if kind == "text":
        bounds = _bound_odds(asked, make, seed)
    else:
        released, bounds, n_more = _released_tests(make, kind, eta, seed, alpha, dimension)
        tests, n_draws = tests | released, n_draws + n_more
    tests |= {name: bound.p_value for name, bound in bounds.items()}
    on_progress(0.6, "Drawing noise as for release")
    fresh = [run_mechanism(asked, make, None, n_calls=5) for _ in range(2)]
    tests |= _twin_tests(asked, fresh[0], fresh[1], "instances")
    if elsewhere is not None:
        on_progress(0.7, "Drawing noise in other processes")
        tests |= _twin_tests(asked, *elsewhere(asked), "processes")
    on_progress(1.0, f"{len(tests)} tests")
    return Audit(tests, holm_rejected(tests, alpha), alpha, n_draws, bounds, list_untested(kind))


def check_alpha(alpha: float) -> None:
    """Raise InvalidInputError unless alpha lies between 0 and 1."""
    if not 0 < alpha < 1:
        raise InvalidInputError(f"alpha must lie between 0 and 1, got {alpha!r}.")


def _own_tests(asked: Plan, main: Sample, seed: int) -> dict[str, float]:
    """Test one instance's noise or output tokens against their law; return p-values by name."""
    if asked.kind != "text":
        inputs = asked.encoder.table[asked.ids.ravel()].astype(np.float64)
        return {**noise_law.law_tests(main, inputs, asked.eta), **noise_law.link_tests(main)}
    stars = noise_law.Stars.at(asked.eta)
    return noise_law.output_tests(stars, asked.ids.ravel(), main, _reference_counts(seed))


@lru_cache(maxsize=256)
def _reference_counts(seed: int) -> NDArray[np.int64]:
    """Simulate how often a correct mechanism turns a star's centre into each token of the star."""
    return noise_law.Stars.at(1.0).simulate_counts(_LAW_DRAWS, np.random.default_rng([seed, 2]))


def _twin_tests(asked: Plan, one: Sample, other: Sample, what: str) -> dict[str, float]:
    """Test two sources' outputs for the same inputs for independence; return p-values by name."""
    if asked.kind == "text":
        return noise_law.twin_output_tests(noise_law.Stars.at(asked.eta), one, other, what)
    return noise_law.twin_tests(one, other, what)


def _released_tests(
    make: MakeDefence, kind: str, eta: float, seed: int, alpha: float, dimension: int
) -> tuple[dict[str, float], dict[str, AuditResult], int]:
    """Run a mechanism on vectors of `dimension` and test the numbers that it releases.

    One instance is called as users call it: with one text again and again, then with many.

    Returns
    -------
    tuple
        p-values, the odds of two inputs both ways, and the number of draws.
    """
    rng = np.random.default_rng([seed, 4])
    table = rng.standard_normal((N_TOKENS + 2, dimension)) * np.sqrt(dimension) / eta
    table[:N_TOKENS] *= np.geomspace(0.05, 1, N_TOKENS)[:, None]
    way = rng.standard_normal(dimension)
    table[-1] = table[-2] + way * (_NEAR / eta / np.linalg.norm(way))
    probe = ProbeEncoder(table.astype(np.float32), length=1)
    single = rng.integers(N_TOKENS, size=(_N_SINGLE_CALLS, 1))
    many = rng.integers(N_TOKENS, size=(_BATCH, 1))
    protected = make(seed + 2).protect(probe)
    calls = [*([text] for text in token_texts(single)), *[token_texts(many)] * _N_BATCHES]
    exact = probe.table.astype(np.float64)

    def released(calls: list[list[str]]) -> NDArray[np.float64]:
        return np.concatenate([protected.encode(texts) for texts in calls]).astype(np.float64)

    def run(token: int) -> Callable[[int], NDArray[np.float64]]:
        return lambda n: released([token_texts(np.full((n, 1), token))])

    outputs = released(calls)
    inputs = exact[np.concatenate([single, *[many] * _N_BATCHES]).ravel()]
    name = f", {dimension} dimensions"
    if not np.isfinite(outputs).all():
        return {f"outputs: all finite{name}": 0.0}, {}, len(outputs)
    noise = outputs - inputs
    law = noise_law.law_tests(noise[None], inputs, eta) | noise_law.sequence_tests(noise)
    tests = {f"{test}{name}": p for test, p in law.items()}
    tests[f"outputs: one grid for all inputs{name}"] = grid_test(outputs)
    x, other = N_TOKENS, N_TOKENS + 1
    found = bound_odds_of_vectors(
        run(x), run(other), exact[x], exact[other], eta, n_runs=_N_RUNS, alpha=alpha
    )
    names = (f"{PROMISE}x against x'", f"{PROMISE}x' against x")
    bounds = {f"{each}{name}": bound for each, bound in zip(names, found, strict=True)}
    return tests, bounds, len(outputs)


def _bound_odds(asked: Plan, make: MakeDefence, seed: int) -> dict[str, AuditResult]:
    """Run a mechanism on a star's centre and a neighbour; audit their odds, by name."""
    run = token_sampler(asked, make(seed + 1))
    found = audit_pair(run(0), run(1), noise_law.RING, n_runs=N_CALLS * N_PLACES)
    return {f"{PROMISE}exp(η·d) for two near tokens": found}


def token_sampler(
    asked: Plan, defence: Defence
) -> Callable[[int], Callable[[int], noise_law.Tokens]]:
    """Return a function from a token to a sampler, which draws n replacements of that token."""
    protected = defence.protect(asked.encoder)

    def sample(token: int, n: int) -> noise_law.Tokens:
        texts = token_texts(np.full((n // LENGTH, LENGTH), token))
        return asked.encoder.tokens_in(protected.encode(texts)).ravel()

    return lambda token: partial(sample, token)


def holm_rejected(tests: dict[str, float], alpha: float) -> tuple[str, ...]:
    """Return the names of the tests that Holm's step-down rejects at level alpha."""
    found = []
    for rank, name in enumerate(sorted(tests, key=tests.__getitem__)):
        if tests[name] > alpha / (len(tests) - rank):
            break
        found.append(name)
    return tuple(found)
