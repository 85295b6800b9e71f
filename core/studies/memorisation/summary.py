"""Summary of the memorisation study, for the page and its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.membership.memorisation.exposure import (
    high_chance_exposure,
    mean_chance_exposure,
)
from leakscope.core.attacks.membership.memorisation.memorise import mean_over_seeds
from leakscope.core.attacks.membership.memorisation.one_run import gaussian_lower_bound
from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable
from leakscope.core.results.tables import read_rows

SHIPPED = RESULTS / "memorisation.json"
"""The shipped rows of `leakscope study memorisation`."""

_LARGE = 10**6


@dataclass(frozen=True)
class ChanceExposure:
    """The exposure of a canary that was never planted, among n possible values.

    Attributes
    ----------
    mean, high : float
        The mean in bits, and the value that one in twenty exceeds.
    most : float or None
        log₂|R|; None where |R| is not known yet.
    """

    mean: float
    high: float
    most: float | None = None


@dataclass(frozen=True)
class Planted:
    """The mean exposure of models with canaries planted n times, at their last epoch.

    Attributes
    ----------
    exposure, controls : Score
        Bits, over seeds: of planted canaries, and of canaries that were never planted.
    """

    model: str
    insertions: int
    exposure: Score
    controls: Score

    @property
    def is_above_chance(self) -> bool:
        """Whether the interval of the exposure lies above its mean by chance."""
        score = self.exposure
        return self.insertions > 0 and score.has_interval and score.ci95.low > score.chance


@dataclass(frozen=True)
class ModelAudit:
    """Audits of one kind of model: lower bounds of ε, and the accountant's ε.

    Attributes
    ----------
    access : str
        What the auditor sees: `texts`, the model at the end; `gradients`, every step.
    target : float
        The requested ε of the training; infinite without DP.
    accountant : float or None
        The ε that it spent; None without DP.
    bounds, shuffled : tuple of float
        The bound of each audit, and its control with re-randomised inclusion.
    most : float
        The largest ε that an audit of so many guesses could show.
    gaussian : tuple of float
        The larger bound of each audit, under the assumption that the training is a Gaussian
        mechanism; empty without DP.
    """

    access: str
    target: float
    accountant: float | None
    bounds: tuple[float, ...]
    shuffled: tuple[float, ...]
    most: float
    gaussian: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """The median bound over audits."""
        return median(self.bounds)

    @property
    def n_above(self) -> int:
        """How many bounds exceed the accountant's ε; at most one in twenty should."""
        ceiling = self.accountant
        return 0 if ceiling is None else sum(bound > ceiling for bound in self.bounds)


@dataclass(frozen=True)
class Memorisation:
    """The results of the memorisation study.

    Attributes
    ----------
    planted : tuple of Planted
        By model, in order of increasing insertions.
    audited : tuple of ModelAudit
        By access, in order of increasing ε, no guarantee last.
    n_values, n_texts, epochs : int
        |R|, sentences trained on, and passes over them.
    alpha : float
        Of the audits: each bound holds with probability 1 − alpha.
    """

    planted: tuple[Planted, ...]
    audited: tuple[ModelAudit, ...]
    n_values: int
    n_texts: int
    epochs: int
    law: ChanceExposure
    alpha: float
    provenances: tuple[Provenance | None, ...]


def load_memorisation(path: Path = SHIPPED) -> Memorisation:
    """Read rows of `leakscope study memorisation` from a file, and summarise them.

    Raises
    ------
    ArtifactError
        Missing, damaged, or without a measured exposure; the message names the file.
    """
    rows = read_rows(path, "memorisation").measured
    try:
        return _summarise(rows)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ArtifactError(
            f"{path} does not contain rows of `leakscope study memorisation`. Run the study again."
        ) from error


def _summarise(rows: ResultTable) -> Memorisation:
    """Average the study's rows: exposure after the last epoch by insertions, audits by ε."""
    planted, audited = rows.where(part="exposure"), rows.where(part="audit")
    first, last = planted[0], max(planted.column("epoch"))
    size = int(first["n_values"])
    return Memorisation(
        planted=_mean_exposures(planted.where(epoch=last)),
        audited=_group_audits(audited),
        n_values=size,
        n_texts=int(first["n_fitted_on"]),
        epochs=int(last),
        law=chance_exposure(size),
        alpha=float(audited[0]["alpha"]) if audited else 0.05,
        provenances=rows.provenances,
    )


def chance_exposure(size: int | None) -> ChanceExposure:
    """Return the exposure of canaries never planted, among `size` values (None: a large number).

    Examples
    --------
    >>> round(chance_exposure(None).mean, 2), chance_exposure(1024).most
    (1.44, 10.0)
    """
    if size is None:
        return ChanceExposure(mean_chance_exposure(_LARGE), high_chance_exposure(_LARGE))
    return ChanceExposure(mean_chance_exposure(size), high_chance_exposure(size), math.log2(size))


def _mean_exposures(rows: ResultTable) -> tuple[Planted, ...]:
    """Average exposures over seeds to a `Planted` per model and number of insertions."""
    most = math.log2(rows[0]["n_values"])

    def mean(same: ResultTable, measure: str) -> Score:
        """Return a measure's mean over seeds, with an interval of at most log₂|R|."""
        return mean_over_seeds([row.scores[measure] for row in same], most=most)

    return tuple(
        Planted(model, n, mean(same, "exposure"), mean(same, "control_exposure"))
        for (model, n), same in sorted(rows.group_by("model", "insertions").items())
    )


def _group_audits(rows: ResultTable) -> tuple[ModelAudit, ...]:
    """Group the rows of audits by access and ε to a `ModelAudit` each."""
    # 0 means no guarantee, which is the weakest.
    found = rows.group_by("access", lambda row: row["epsilon"] or math.inf)
    return tuple(
        ModelAudit(
            access,
            target,
            same[0]["accountant_epsilon"],
            tuple(same.values("epsilon_bound")),
            tuple(same.values("epsilon_bound_shuffled")),
            float(same[0]["most_epsilon"]),
            gaussian_bounds(same),
        )
        for (access, target), same in sorted(found.items())
    )


def gaussian_bounds(audits: ResultTable) -> tuple[float, ...]:
    """Compute each audit's lower bound of ε for a Gaussian mechanism; empty without DP.

    Empty without DP: such a training has no δ.
    """
    if audits[0]["accountant_epsilon"] is None:
        return ()
    return tuple(
        gaussian_lower_bound(r["n_right"], r["n_guesses"], r["n_canaries"], r["delta"], r["alpha"])
        for r in audits
    )
