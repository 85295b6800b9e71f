"""Audits of mechanisms by name, and of those that sample a token against exact probabilities.

Each output is converted to its position in the cumulative distribution of its input, uniformly at
random within its own probability. If the mechanism is correct, these numbers are independent and
uniform, whatever the input, so that the same tests serve all mechanisms.

`python -m leakscope.core.defences.metric_dp.audit.choices NAME ETA SEED` writes what a new process
draws for release, as `.npy`.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leakscope.core.assets import ROOT
from leakscope.core.defences.metric_dp.audit.choice_laws import (
    LAWS,
    N_FREQUENT,
    PROMISES,
    Chances,
    distance,
    reference_sets,
)
from leakscope.core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    CHOICE,
    DIMENSION,
    LENGTH,
    N_CALLS,
    N_PLACES,
    PROMISE,
    Audit,
    MakeDefence,
    Plan,
    ProbeEncoder,
    Sample,
    audit,
    check_alpha,
    defence_factory,
    holm_rejected,
    list_untested,
    make_plan,
    run_mechanism,
    token_sampler,
)
from leakscope.core.defences.metric_dp.audit.noise_law import chi_square_test
from leakscope.core.defences.metric_dp.audit.pairs import AuditResult, audit_pair
from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.protocols import Defence, OnProgress, no_progress
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import digest_of

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

_N_TOKENS, _N_DIMENSIONS, _N_INPUTS = 24, 3, 8
_LEAST, _MOST = 1e-3, 1e6
_SPREAD = 1.6
"""Of the vocabulary, in units of 1/ε: near tokens are confused often, far ones at times."""
_QUARTERS = 4
_FEWEST = 5


class _FrequentWordsProbe(ProbeEncoder):
    """A probe encoder that maps unknown words to the first tokens, so that those are frequent."""

    def __init__(self, table: NDArray[np.float32], length: int) -> None:
        super().__init__(table, length)
        self.fingerprint = f"probe-{digest_of({'table': self.table}, {})[:16]}-{length}"

    def token_ids(self, texts: Any, *, is_whole: bool = False) -> list[list[int]]:
        """Return the token ids of each text's words; unknown words become the first tokens."""
        return [[self._token(word) for word in text.split()] for text in texts]

    def _token(self, word: str) -> int:
        """Return the number i of a word `t<i>`; for any other word, one of the first tokens."""
        is_token = word[:1] == "t" and word[1:].isdecimal() and int(word[1:]) < len(self.table)
        return int(word[1:]) if is_token else len(word) % N_FREQUENT


@dataclass(frozen=True, eq=False)
class ChoicePlan(Plan):
    """The inputs, exact probabilities and bound for auditing a mechanism that samples tokens.

    Attributes
    ----------
    chances : float64 array (V, V)
        Of each output for each input.
    pair : tuple of int
        Two tokens that the guarantee is of.
    promised : float
        The most that the logarithm of a ratio of their chances may be.
    """

    chances: Chances
    pair: tuple[int, int]
    promised: float


def settings_at(name: str, strength: float) -> dict[str, Any]:
    """Return the settings, by name, with which a mechanism is audited at an ε or η."""
    strong, settings = CHOICES[name]
    scaled = {k: v / strength if k == "c" else v for k, v in settings.items()}
    return {strong: strength, **scaled}


def choice_factory(name: str, strength: float) -> MakeDefence:
    """Return a function of a seed that builds a named token-sampling mechanism at its ε or η."""

    def make(seed: int | None) -> Defence:
        return make_defence(DefenceSpec.of(name, settings_at(name, strength) | {"seed": seed}))

    return make


@lru_cache(maxsize=64)
def choice_plan(name: str, strength: float, seed: int) -> ChoicePlan:
    """Build the audit plan of a token-sampling mechanism: probe, inputs, exact probabilities.

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
    points = rng.standard_normal((_N_TOKENS, _N_DIMENSIONS)) * _SPREAD / strength
    table = points.astype(np.float32)
    exact, settings = table.astype(np.float64), settings_at(name, strength)
    pair = _find_near_pair(name, exact, settings)
    others = [i for i in range(_N_TOKENS) if i not in pair][: _N_INPUTS - 2]
    inputs = rng.permutation(np.resize([*pair, *others], N_PLACES))
    return ChoicePlan(
        _FrequentWordsProbe(table, LENGTH),
        inputs.reshape(-1, LENGTH),
        "text",
        strength,
        LAWS[name](exact, strength, settings),
        pair,
        PROMISES[name](exact, strength, settings, *pair),
    )


def _find_near_pair(
    name: str, table: NDArray[np.float64], settings: dict[str, Any]
) -> tuple[int, int]:
    """Return the nearest two tokens of a table that the mechanism's guarantee covers."""
    groups = [list(range(N_FREQUENT, len(table)))]
    if name == "custext":
        groups = reference_sets(table, settings["k"])
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
    """Audit a token-sampling mechanism: draw outputs, test their distribution, bound the odds.

    Raises
    ------
    InvalidInputError
        alpha is no probability.
    """
    check_alpha(alpha)
    rng = np.random.default_rng([seed, 4])
    on_progress(0.1, "Drawing tokens")
    tests = choice_tests(asked, run_mechanism(asked, make, seed), rng)
    on_progress(0.5, "Testing the guarantee")
    bounds = _bound_odds(asked, make, seed)
    tests |= {name: bound.p_value for name, bound in bounds.items()}
    on_progress(0.7, "Drawing as for release")
    fresh = [run_mechanism(asked, make, None, n_calls=5) for _ in range(2)]
    tests |= _twin_tests(asked, fresh, "instances", rng)
    if elsewhere is not None:
        on_progress(0.8, "Drawing in other processes")
        tests |= _twin_tests(asked, elsewhere(asked), "processes", rng)
    on_progress(1.0, f"{len(tests)} tests")
    untested = list_untested(CHOICE)
    return Audit(tests, holm_rejected(tests, alpha), alpha, N_CALLS * N_PLACES, bounds, untested)


def choice_tests(asked: ChoicePlan, found: Sample, rng: np.random.Generator) -> dict[str, float]:
    """Test output tokens (calls, places) against their exact law; return p-values by name."""
    inputs = np.broadcast_to(asked.ids.ravel(), found.shape)
    if (asked.chances[inputs, found] <= 0).any():
        return {"outputs: none that cannot come": 0.0}
    where = _draw_positions(asked, found, rng)
    quarter = _quarters(where)
    return {
        "outputs: as often as the law says": _count_test(asked.chances, inputs, found),
        "outputs: an input returns as often": _self_return_test(asked.chances, inputs, found),
        "outputs: the law as a whole": float(stats.kstest(where.ravel(), "uniform").pvalue),
        "outputs: the same from every input": _independence_test(inputs, quarter),
        "within a call": _independence_test(quarter[:, :-1], quarter[:, 1:]),
        "between calls": _independence_test(quarter[:-1], quarter[1:]),
    }


def _draw_positions(
    asked: ChoicePlan, found: Sample, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw each output's random position in its input's distribution; uniform if correct."""
    inputs = np.broadcast_to(asked.ids.ravel(), found.shape)
    upper = np.cumsum(asked.chances, axis=1)[inputs, found]
    own = asked.chances[inputs, found]
    placed: NDArray[np.float64] = upper - rng.random(found.shape) * own
    return placed.clip(0, 1)


def _count_test(chances: Chances, inputs: Sample, found: Sample) -> float:
    """Return the χ² p-value of how often each token came out, over all inputs; pools rare ones."""
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


def _self_return_test(chances: Chances, inputs: Sample, found: Sample) -> float:
    """Return the two-sided p-value of how many inputs came out unchanged."""
    own = chances[inputs, inputs]
    spread = np.sqrt((own * (1 - own)).sum())
    away = ((found == inputs) - own).sum() / spread if spread > 0 else 0.0
    return float(2 * stats.norm.sf(abs(away)))


def _twin_tests(
    asked: ChoicePlan, twins: Sequence[Sample], what: str, rng: np.random.Generator
) -> dict[str, float]:
    """Test two sources' outputs for the same inputs for independence; return p-values by name."""
    one, other = (_quarters(_draw_positions(asked, each, rng)) for each in twins)
    return {f"between {what}": _independence_test(one, other)}


def _quarters(where: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the quarter, 0 to 3, in which each position of [0, 1] lies."""
    return np.minimum((where * _QUARTERS).astype(np.int64), _QUARTERS - 1)


def _independence_test(one: Sample, other: Sample) -> float:
    """Return the χ² p-value of independence of two arrays of categories."""
    return chi_square_test(stats.contingency.crosstab(one.ravel(), other.ravel()).count)


def _bound_odds(asked: ChoicePlan, make: MakeDefence, seed: int) -> dict[str, AuditResult]:
    """Run a mechanism on two near tokens and audit their odds in both directions, by name."""
    run = token_sampler(asked, make(seed + 1))
    x, other = asked.pair
    n_runs = N_CALLS * N_PLACES
    return {
        f"{PROMISE}{one} from {two}": audit_pair(run(a), run(b), asked.promised, n_runs=n_runs)
        for one, two, a, b in (("a token", "a near one", x, other), ("that", "the first", other, x))
    }


_PROCESS_CALLS = 5
"""Calls of each process."""

_MOST_SECONDS = 300


def audit_named(
    name: str,
    strength: float,
    *,
    seed: int = 0,
    alpha: float = ALPHA,
    dimension: int = DIMENSION,
    has_processes: bool = False,
    on_progress: OnProgress = no_progress,
) -> Audit:
    """Build the registered mechanism of a name at its ε or η, and audit it.

    Parameters
    ----------
    dimension : int
        Of the encoder's vectors, for mechanisms that release numbers.
    has_processes : bool
        Whether two other processes draw as well, which takes seconds.

    Raises
    ------
    InvalidInputError
        No such ε or η or dimension, or alpha is no probability.
    CoreError
        Another process could not be run.
    """
    options: dict[str, Any] = {"seed": seed, "alpha": alpha, "on_progress": on_progress}
    if has_processes:
        options["elsewhere"] = partial(draw_in_processes, name, seed)
    if name in CHOICES:
        return audit_choice(
            choice_factory(name, strength), choice_plan(name, strength, seed), **options
        )
    make, kind = defence_factory(name, strength), DEFENCES[name].acts_on
    return audit(make, kind, strength, dimension=dimension, **options)


def draw_in_processes(name: str, seed: int, asked: Plan) -> tuple[Sample, Sample]:
    """Run a mechanism without a seed in two new processes on a plan; return both outputs.

    Parameters
    ----------
    name : str
        A mechanism of the registry.
    seed : int
        Of what goes in; the noise has none.

    Raises
    ------
    CoreError
        A process could not be run.
    """
    command = [sys.executable, "-m", __name__, name, repr(asked.eta), str(seed)]
    pipe = subprocess.PIPE
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(2):
            running.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT))
        outputs = [process.communicate(timeout=_MOST_SECONDS) for process in running]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _process_error(str(error)) from error
    finally:
        for process in running:
            process.kill()
    for process, (_, errors) in zip(running, outputs, strict=True):
        if process.returncode:
            raise _process_error(errors.decode(errors="replace")[-200:])
    one, other = (np.load(io.BytesIO(out), allow_pickle=False) for out, _ in outputs)
    return one, other


def _process_error(reason: str) -> CoreError:
    """Build the error for a process that failed."""
    return CoreError(f"Noise could not be drawn in other processes ({reason}). Audit without them.")


def main(name: str, eta: str, seed: str) -> None:
    """Run a mechanism without a seed; write its noise or tokens to standard output as `.npy`."""
    if name in CHOICES:
        asked: Plan = choice_plan(name, float(eta), int(seed))
        make = choice_factory(name, asked.eta)
    else:
        asked = make_plan(DEFENCES[name].acts_on, float(eta), int(seed))
        make = defence_factory(name, asked.eta)
    np.save(sys.stdout.buffer, run_mechanism(asked, make, None, n_calls=_PROCESS_CALLS))


if __name__ == "__main__":
    main(*sys.argv[1:])
