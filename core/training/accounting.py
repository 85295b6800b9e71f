"""What noisy steps cost in privacy: (ε, δ), told by two packages apart from each other."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from core.errors import InvalidInputError, MissingDependencyError, install

__all__ = ["DELTA", "GROUP", "LEAST_EPSILON", "MOST_EPSILON", "PUBLIC", "UNIT", "Accounts",
           "Privacy", "Promise", "accounts_of", "check_installed", "delta_warning", "epsilon_of",
           "epsilon_of_copies", "noise_for",
           "opacus_accountants"]  # fmt: skip

DELTA = 1e-5

LEAST_EPSILON = 0.01
MOST_EPSILON = 1000.0
"""Below nothing can be learned; above, e^ε is no promise that anybody would notice."""

_ORDERS = (*(1 + i / 10 for i in range(1, 100)), *range(12, 64),
           72, 96, 128, 192, 256, 384, 512, 1024)  # fmt: skip
"""Of Rényi's divergence: those of opacus, and larger ones, which a small ε needs."""

Steps = Sequence[tuple[float, float, int]]
"""Noise multiplier, rate of sampling and number of steps that had them."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What training is to keep to.

    Attributes
    ----------
    n_expected : float
        Samples there are on average, by which the rate of sampling is set: how many coins fell on
        one side is no business of the training.
    """

    epsilon: float
    n_expected: float
    delta: float = DELTA

    def check(self) -> None:
        """Raise InvalidInputError where no training can keep to it, or where it says nothing."""
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise InvalidInputError(
                f"epsilon must lie between {LEAST_EPSILON:g} and {MOST_EPSILON:g}, got "
                f"{self.epsilon!r}. Less leaves nothing to learn, and more promises nothing; usual "
                "values are 1 to 8."
            )
        if not 0 < self.delta * self.n_expected < 1:
            raise InvalidInputError(
                f"delta must lie between 0 and 1/n, {1 / max(self.n_expected, 1):.2g} for "
                f"{self.n_expected:g} samples, got {self.delta!r}: from 1/n on, a training that "
                "publishes a sample would keep to it. The usual value is 1e-5."
            )


UNIT = "a text, which is a row of the file"
"""What is put in or left out where ε compares two sets of training texts."""

PUBLIC = "The number of texts and the names of the classes are public: they are not protected."

GROUP = 10
"""Texts of one person, or phrases of one sentence, of which ε is told where no number is known."""

MOST_LEAKED = 0.1
"""Texts that a training may publish whole, on average, without breaking its δ: δ·n."""


def delta_warning(delta: float, n: float) -> str:
    """Return why δ is too great for n texts, in a sentence; empty where δ·n is at most 0.1.

    A training that publishes each text with probability δ keeps to (0, δ): δ·n texts on average.

    Examples
    --------
    >>> delta_warning(1e-5, 6_911)
    ''
    >>> delta_warning(1e-5, 66_983)[:36]
    'δ · n = 0.67 is above 0.1: a trainin'
    """
    if delta * n <= MOST_LEAKED:
        return ""
    return (
        f"δ · n = {delta * n:.2g} is above {MOST_LEAKED:g}: a training that publishes one text "
        f"with a chance of {delta * n:.0%} would keep to this δ. Use a δ of at most "
        f"{MOST_LEAKED / n:.1g} for {n:,.0f} texts."
    )


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What DP-SGD promises: (ε, δ) by the accountant of Rényi differential privacy.

    ε is of one text. Of k texts together, such as all of one person, see `of_copies`.
    """

    epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    n_steps: int

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Privacy:
        """Restore what `dataclasses.asdict` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is something else.
        """
        told = {name: float(stored[name]) for name in cls.__dataclass_fields__}
        return cls(**{**told, "n_steps": int(stored["n_steps"])})  # type: ignore[arg-type]

    def accounts(self) -> Accounts:
        """Return what both packages say of it.

        Raises
        ------
        MissingDependencyError
            One is not installed.
        """
        return accounts_of(self.noise_multiplier, self.sample_rate, self.n_steps, self.delta)

    def of_copies(self, n_copies: int) -> float:
        """Return the ε, at the same δ, of so many texts together: all of them or none.

        They may be the copies of one text, the texts of one person, or the phrases of a sentence.

        Raises
        ------
        MissingDependencyError
            dp-accounting is not installed.
        """
        return epsilon_of_copies(
            self.noise_multiplier, self.sample_rate, self.n_steps, n_copies, self.delta
        )


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """The ε of the same steps, thrice.

    Attributes
    ----------
    opacus, dp_accounting : float
        By Rényi differential privacy, of one package and of the other.
    tight : float
        By the distribution of the privacy loss, of dp-accounting: nearer to the truth, from above.
    """

    opacus: float
    dp_accounting: float
    tight: float


def accounts_of(noise: float, rate: float, n_steps: int, delta: float = DELTA) -> Accounts:
    """Return the ε of so many steps by the accountants of opacus and of dp-accounting.

    Implements Mironov, Talwar & Zhang (2019) for samples that are drawn each by itself with
    probability `rate`, neighbours being data with and without one sample; from Rényi's divergence
    to (ε, δ) after Balle et al. (2020). `tight` convolves the privacy loss (Doroshenko et al.
    2022), rounded upwards.

    Raises
    ------
    MissingDependencyError
        opacus or dp-accounting is not installed.
    """
    try:
        import dp_accounting
        from dp_accounting import pld, rdp
    except ImportError as error:
        raise _missing("dp-accounting") from error
    one = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    steps = dp_accounting.SelfComposedDpEvent(one, n_steps)
    renyi, tight = rdp.RdpAccountant(orders=list(_ORDERS)), pld.PLDAccountant()
    logger = logging.getLogger("absl")  # tells of orders that its series does not reach
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return Accounts(
            opacus=epsilon_of([(noise, rate, n_steps)], delta),
            dp_accounting=float(renyi.compose(steps).get_epsilon(delta)),
            tight=float(tight.compose(steps).get_epsilon(delta)),
        )
    finally:
        logger.setLevel(before)


def epsilon_of_copies(
    noise: float, rate: float, n_steps: int, n_copies: int, delta: float = DELTA
) -> float:
    """Return the ε of a group of samples, such as the copies of one text: all of them or none.

    Of m samples k ~ Binomial(m, q) are in a batch, and move the sum of the gradients k times as far
    as one does, at most. Implements the mixtures of Choquette-Choo et al. (2024), Corollary 4.7, by
    the distribution of the privacy loss: a step is told by N(k, σ²), k drawn, against N(0, σ²);
    with q = 1 that is noise of σ/m. It is not m times the ε of one sample: m·ε holds at a δ of
    δ·(e^{mε} − 1)/(e^ε − 1), which soon is 1 and more.
    Differs from the paper: beyond 64 samples k is rounded upwards to one of 65 numbers; and where
    one step alone may tell all, ε is that of all m in every batch, d²/2 + d·√(2 log 1/δ) with
    d = m·√T/σ (Bun & Steinke 2016): in the thousands, and more.

    Raises
    ------
    MissingDependencyError
        dp-accounting is not installed.
    """
    try:
        from dp_accounting.pld import privacy_loss_distribution
        from scipy.stats import binom
    except ImportError as error:
        raise _missing("dp-accounting") from error
    widest = n_copies**2 / (2 * noise**2) + 8 * n_copies / noise
    if widest > _WIDEST:
        distance = n_copies * math.sqrt(n_steps) / noise
        return distance**2 / 2 + distance * math.sqrt(-2 * math.log(delta))
    means = np.unique(np.ceil(np.linspace(0, n_copies, _MOST_MEANS + 1)))
    shares = np.diff(binom.cdf(means, n_copies, rate), prepend=0.0)
    loss = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        standard_deviation=noise, sensitivities=means[shares > 0],
        sampling_probs=shares[shares > 0] / shares.sum(),
        value_discretization_interval=max(1e-4, widest / 5_000),
    )  # fmt: skip
    return float(loss.self_compose(n_steps).get_epsilon_for_delta(delta))


_MOST_MEANS = 64
_WIDEST = 2_000.0
"""Of the privacy loss of a step; beyond, its distribution is too wide to be cut up finely."""


def epsilon_of(steps: Steps, delta: float = DELTA) -> float:
    """Return the ε that steps have cost by opacus's accountant; 0 where there was none."""
    accountant = opacus_accountants().RDPAccountant()
    accountant.history = [tuple(each) for each in steps]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta, alphas=list(_ORDERS)))


def noise_for(promise: Promise, rate: float, n_steps: int) -> float:
    """Return the least noise multiplier that keeps to a promise, its ε within 1 % below.

    Raises
    ------
    InvalidInputError
        The promise cannot be kept or says nothing.
    MissingDependencyError
        opacus is not installed.
    """
    promise.check()
    if not (0 < rate <= 1 and n_steps >= 1):
        raise InvalidInputError(
            f"The rate must lie in (0, 1] and there must be a step, got {rate!r} and {n_steps}."
        )
    find = opacus_accountants().utils.get_noise_multiplier
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sigma = float(
                find(target_epsilon=promise.epsilon, target_delta=promise.delta, sample_rate=rate,
                     steps=n_steps, accountant="rdp", alphas=list(_ORDERS),
                     epsilon_tolerance=min(0.01, promise.epsilon / 100))
            )  # fmt: skip
    except ValueError as error:
        raise InvalidInputError(
            f"No noise keeps {n_steps:,} steps to an epsilon of {promise.epsilon:g}. Make fewer "
            "steps, or raise epsilon."
        ) from error
    if not (math.isfinite(sigma) and sigma > 0):
        raise InvalidInputError(f"No noise was found for an epsilon of {promise.epsilon:g}.")
    return sigma


def check_installed() -> None:
    """Raise MissingDependencyError where a package is missing that counts ε, before the work."""
    opacus_accountants()
    if find_spec("dp_accounting") is None:
        raise _missing("dp-accounting")


def opacus_accountants() -> Any:
    """Return the accountants of opacus.

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    try:
        from opacus import accountants
    except ImportError as error:
        raise _missing("opacus") from error
    return accountants


def _missing(package: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"Training with differential privacy needs the `{package}` package: "
        f"{install('opacus', 'dp-accounting')}"
    )
