"""What was measured of planted canaries, as the page and its figures read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from core.assets import ASSETS
from core.attacks.membership.memorisation.exposure import high_of_chance, mean_of_chance
from core.attacks.membership.memorisation.memorise import over_seeds
from core.errors import ArtifactError
from core.results import Score
from core.studies.provenance import Provenance
from core.studies.rows import Row
from core.studies.tables import read_rows

__all__ = ["SHIPPED", "Audited", "Law", "Memorisation", "Planted", "law_of",
           "load_memorisation"]  # fmt: skip

SHIPPED = ASSETS / "memorisation" / "rows.json"
"""What `python -m core study memorisation` wrote, where it comes with the project."""

_LARGE = 10**6


@dataclass(frozen=True)
class Law:
    """What a canary that was planted nowhere reaches, of this many values.

    Attributes
    ----------
    mean, high : float
        Bits on average, and what one in twenty exceeds.
    most : float or None
        log₂|R|; None where |R| is not known yet.
    """

    mean: float
    high: float
    most: float | None = None


@dataclass(frozen=True)
class Planted:
    """Models trained with canaries planted so many times, at their last epoch.

    Attributes
    ----------
    exposure, controls : Score
        Bits, over seeds: of what was planted, and of canaries that were planted nowhere.
    """

    model: str
    insertions: int
    exposure: Score
    controls: Score

    @property
    def stands_out(self) -> bool:
        """Whether all of the interval lies above what chance gives on average."""
        score = self.exposure
        return self.insertions > 0 and score.has_interval and score.ci95.low > score.chance


@dataclass(frozen=True)
class Audited:
    """Audits of one kind: lower bounds of ε, beside that of the accountant.

    Attributes
    ----------
    access : str
        What the auditor sees: `texts`, the model at the end; `gradients`, every step.
    target : float
        The ε that the training was to keep to; infinite where it promised nothing.
    accountant : float or None
        The ε that it kept to; None where the model was trained without a promise.
    bounds, shuffled : tuple of float
        An audit each, and its control with coins tossed anew.
    most : float
        The largest ε that an audit of so many guesses could show.
    """

    access: str
    target: float
    accountant: float | None
    bounds: tuple[float, ...]
    shuffled: tuple[float, ...]
    most: float

    @property
    def median(self) -> float:
        """The bound of the audit in the middle."""
        return median(self.bounds)

    @property
    def n_above(self) -> int:
        """How many bounds lie above the accountant's ε, which none should but one in twenty."""
        ceiling = self.accountant
        return 0 if ceiling is None else sum(bound > ceiling for bound in self.bounds)


@dataclass(frozen=True)
class Memorisation:
    """What the study of memorisation measured.

    Attributes
    ----------
    planted : tuple of Planted
        By model, insertions growing.
    audited : tuple of Audited
        By access, ε growing, no promise last.
    n_values, n_texts, epochs : int
        |R|, sentences trained on, and passes over them.
    alpha : float
        Of the audits: each bound holds with probability 1 − alpha.
    """

    planted: tuple[Planted, ...]
    audited: tuple[Audited, ...]
    n_values: int
    n_texts: int
    epochs: int
    law: Law
    alpha: float
    provenances: tuple[Provenance | None, ...]


def load_memorisation(path: Path = SHIPPED) -> Memorisation:
    """Read what `python -m core study memorisation` wrote; cells that failed are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, or without a measured exposure; the message names the file.
    """
    rows = [row for row in read_rows(path, "memorisation") if not row.error]
    try:
        return _summary(rows)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study memorisation`. Make it anew."
        ) from error


def _summary(rows: Sequence[Row]) -> Memorisation:
    planted = [row for row in rows if row["part"] == "exposure"]
    audited = [row for row in rows if row["part"] == "audit"]
    first, last = planted[0], max(row["epoch"] for row in planted)
    size = int(first["n_values"])
    return Memorisation(
        planted=_planted([row for row in planted if row["epoch"] == last]),
        audited=_audited(audited),
        n_values=size,
        n_texts=int(first["n_fitted_on"]),
        epochs=int(last),
        law=law_of(size),
        alpha=float(audited[0]["alpha"]) if audited else 0.05,
        provenances=tuple(row.provenance for row in rows),
    )


def law_of(size: int | None) -> Law:
    """Return the law of canaries that were planted nowhere; of an unknown |R|, that of a large one.

    Examples
    --------
    >>> round(law_of(None).mean, 2), law_of(1024).most
    (1.44, 10.0)
    """
    if size is None:
        return Law(mean_of_chance(_LARGE), high_of_chance(_LARGE))
    return Law(mean_of_chance(size), high_of_chance(size), math.log2(size))


def _planted(rows: Sequence[Row]) -> tuple[Planted, ...]:
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["insertions"]), []).append(row)
    most = math.log2(rows[0]["n_values"])

    def mean(same: Sequence[Row], measure: str) -> Score:
        return over_seeds([row.scores[measure] for row in same], most=most)

    return tuple(
        Planted(model, n, mean(same, "exposure"), mean(same, "control_exposure"))
        for (model, n), same in sorted(found.items())
    )


def _audited(rows: Sequence[Row]) -> tuple[Audited, ...]:
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        # 0 stands for no promise, which is the weakest of all.
        found.setdefault((row["access"], row["epsilon"] or math.inf), []).append(row)
    return tuple(
        Audited(
            access,
            target,
            same[0]["accountant_epsilon"],
            tuple(row.scores["epsilon_bound"].value for row in same),
            tuple(row.scores["epsilon_bound_shuffled"].value for row in same),
            float(same[0]["most_epsilon"]),
        )
        for (access, target), same in sorted(found.items())
    )
