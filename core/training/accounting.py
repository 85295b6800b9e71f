"""Privacy accounting of DP-SGD: (ε, δ) by opacus and by dp-accounting."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from leakscope.core.errors import InvalidInputError, MissingDependencyError, install

DELTA = 1e-5

LEAST_EPSILON = 0.01
MOST_EPSILON = 1000.0
"""Largest ε accepted: beyond it the guarantee is void; below LEAST_EPSILON nothing can be learned.
"""

_ORDERS = (
    *(1 + i / 10 for i in range(1, 100)),
    *range(12, 64),
    72,
    96,
    128,
    192,
    256,
    384,
    512,
    1024,
)
"""Rényi orders: those of opacus, and larger ones that a small ε needs."""

Steps = Sequence[tuple[float, float, int]]
"""Noise multiplier, sampling rate and number of steps of each phase."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The (ε, δ) that a training must satisfy.

    Attributes
    ----------
    n_expected : float
        Expected number of samples, which sets the sampling rate. The training must not learn the
        actual number.
    """

    epsilon: float
    n_expected: float
    delta: float = DELTA

    def check(self) -> None:
        """Raise InvalidInputError if the (ε, δ) are outside the range that training accepts."""
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise InvalidInputError(
                f"epsilon must lie between {LEAST_EPSILON:g} and {MOST_EPSILON:g}, got "
                f"{self.epsilon!r}. With less, nothing can be learned; with more, nothing is "
                "guaranteed. Usual values are 1 to 8."
            )
        if not 0 < self.delta * self.n_expected < 1:
            raise InvalidInputError(
                f"delta must lie between 0 and 1/n ({1 / max(self.n_expected, 1):.2g} for "
                f"{self.n_expected:g} samples), got {self.delta!r}. From 1/n on, a training that "
                "publishes a sample would satisfy it. The usual value is 1e-5."
            )


UNIT = "one text, which is one row of the file"
"""The unit of privacy: what is added or removed between neighbouring training sets."""

PUBLIC = "The number of texts and the class names are public; ε does not protect them."

GROUP = 10
"""Default group size for group privacy, such as the texts of one person."""

MOST_LEAKED = 0.1
"""Maximum δ·n: the expected number of texts that a training could publish within its δ."""


def delta_warning(delta: float, n: float) -> str:
    """Return a warning if δ is too large for n texts (δ·n > 0.1); "" otherwise.

    A training that publishes each text with probability δ satisfies (0, δ): δ·n texts on average.

    Examples
    --------
    >>> delta_warning(1e-5, 6_911)
    ''
    >>> delta_warning(1e-5, 66_983)[:36]
    'δ · n = 0.67 exceeds 0.1. A training'
    """
    if delta * n <= MOST_LEAKED:
        return ""
    return (
        f"δ · n = {delta * n:.2g} exceeds {MOST_LEAKED:g}. A training that publishes one text with "
        f"a probability of {delta * n:.0%} would satisfy this δ. Use a δ of at most "
        f"{MOST_LEAKED / n:.1g} for {n:,.0f} texts."
    )


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The (ε, δ) that DP-SGD spent, by the Rényi accountant, with its noise and sampling rate.

    ε holds for one text. For k texts together, such as all of one person, see `of_copies`.
    """

    epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    n_steps: int

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Privacy:
        """Build a Privacy from the dict that `dataclasses.asdict` made of one.

        Raises
        ------
        KeyError, TypeError, ValueError
            The data are something else.
        """
        told = {name: float(stored[name]) for name in cls.__dataclass_fields__}
        return cls(**{**told, "n_steps": int(stored["n_steps"])})  # type: ignore[arg-type]

    def epsilons(self) -> Epsilons:
        """Compute the ε again, with the accountants of opacus and dp-accounting.

        Raises
        ------
        MissingDependencyError
            A package is not installed.
        """
        return compute_epsilons(self.noise_multiplier, self.sample_rate, self.n_steps, self.delta)

    def of_copies(self, n_copies: int) -> float:
        """Compute the ε, at the same δ, of a group of n_copies texts added or removed together.

        They may be the copies of one text, the texts of one person, or the phrases of a sentence.

        Raises
        ------
        MissingDependencyError
            dp-accounting is not installed.
        """
        return group_epsilon(
            self.noise_multiplier, self.sample_rate, self.n_steps, n_copies, self.delta
        )


@dataclass(frozen=True, kw_only=True)
class Epsilons:
    """The ε of the same steps by three accountants.

    Attributes
    ----------
    opacus, dp_accounting : float
        By Rényi differential privacy, from each package.
    tight : float
        By the distribution of the privacy loss, from dp-accounting: a tighter upper bound.
    """

    opacus: float
    dp_accounting: float
    tight: float


def compute_epsilons(noise: float, rate: float, n_steps: int, delta: float = DELTA) -> Epsilons:
    """Compute the ε of n_steps DP-SGD steps with the accountants of opacus and dp-accounting.

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
        raise _missing_package_error("dp-accounting") from error
    one = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    steps = dp_accounting.SelfComposedDpEvent(one, n_steps)
    renyi, tight = rdp.RdpAccountant(orders=list(_ORDERS)), pld.PLDAccountant()
    logger = logging.getLogger("absl")  # warns of orders that its series does not reach
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return Epsilons(
            opacus=epsilon_spent([(noise, rate, n_steps)], delta),
            dp_accounting=float(renyi.compose(steps).get_epsilon(delta)),
            tight=float(tight.compose(steps).get_epsilon(delta)),
        )
    finally:
        logger.setLevel(before)


def group_epsilon(
    noise: float, rate: float, n_steps: int, n_copies: int, delta: float = DELTA
) -> float:
    """Compute the ε of a group of n_copies samples added or removed together (group privacy).

    Of m samples, k ~ Binomial(m, q) are in a batch. They move the sum of the gradients at most k
    times as far as one does. Implements the mixtures of Choquette-Choo et al. (2024), Corollary
    4.7, by the distribution of the privacy loss: a step is N(k, σ²), k drawn, against N(0, σ²);
    with q = 1 that is noise of σ/m. It is not m times the ε of one sample: m·ε holds at a δ of
    δ·(e^{mε} − 1)/(e^ε − 1), which soon exceeds 1.
    Differs from the paper: beyond 64 samples, k is rounded up to one of 65 numbers. Where a single
    step may reveal everything, ε is that of all m in every batch, d²/2 + d·√(2 log 1/δ) with
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
        raise _missing_package_error("dp-accounting") from error
    widest = n_copies**2 / (2 * noise**2) + 8 * n_copies / noise
    if widest > _WIDEST:
        distance = n_copies * math.sqrt(n_steps) / noise
        return distance**2 / 2 + distance * math.sqrt(-2 * math.log(delta))
    means = np.unique(np.ceil(np.linspace(0, n_copies, _MOST_MEANS + 1)))
    shares = np.diff(binom.cdf(means, n_copies, rate), prepend=0.0)
    loss = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        standard_deviation=noise,
        sensitivities=means[shares > 0],
        sampling_probs=shares[shares > 0] / shares.sum(),
        value_discretization_interval=max(1e-4, widest / 5_000),
    )
    return float(loss.self_compose(n_steps).get_epsilon_for_delta(delta))


_MOST_MEANS = 64
_WIDEST = 2_000.0
"""Maximum privacy loss of a step; beyond it the distribution is too wide to discretise."""


def epsilon_spent(steps: Steps, delta: float = DELTA) -> float:
    """Compute the ε that DP-SGD steps spent, with opacus's accountant; 0 without steps."""
    accountant = opacus_accountants().RDPAccountant()
    accountant.history = [tuple(each) for each in steps]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta, alphas=list(_ORDERS)))


def noise_multiplier_for(promise: Guarantee, rate: float, n_steps: int) -> float:
    """Compute the smallest noise multiplier with which n_steps satisfy a guarantee.

    Raises
    ------
    InvalidInputError
        The guarantee cannot be satisfied or is meaningless.
    MissingDependencyError
        opacus is not installed.
    """
    promise.check()
    if not (0 < rate <= 1 and n_steps >= 1):
        raise InvalidInputError(
            f"rate must lie in (0, 1], with at least one step, got {rate!r} and {n_steps}."
        )
    find = opacus_accountants().utils.get_noise_multiplier
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sigma = float(
                find(
                    target_epsilon=promise.epsilon,
                    target_delta=promise.delta,
                    sample_rate=rate,
                    steps=n_steps,
                    accountant="rdp",
                    alphas=list(_ORDERS),
                    epsilon_tolerance=min(0.01, promise.epsilon / 100),
                )
            )
    except ValueError as error:
        raise InvalidInputError(
            f"No amount of noise keeps {n_steps:,} steps within an epsilon of "
            f"{promise.epsilon:g}. Use fewer steps, or raise epsilon."
        ) from error
    if not (math.isfinite(sigma) and sigma > 0):
        raise InvalidInputError(
            f"No amount of noise was found for an epsilon of {promise.epsilon:g}."
        )
    return sigma


def check_installed() -> None:
    """Raise MissingDependencyError if opacus or dp-accounting is not installed."""
    opacus_accountants()
    if find_spec("dp_accounting") is None:
        raise _missing_package_error("dp-accounting")


def opacus_accountants() -> Any:
    """Import and return opacus's accountants module.

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    try:
        from opacus import accountants
    except ImportError as error:
        raise _missing_package_error("opacus") from error
    return accountants


def _missing_package_error(package: str) -> MissingDependencyError:
    """Build the error that names a missing package of private training."""
    return MissingDependencyError(
        f"Training with differential privacy needs the `{package}` package: "
        f"{install('opacus', 'dp-accounting')}"
    )
