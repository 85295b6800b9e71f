"""The search for an attack's best settings, on held-out auxiliary texts (C22 §4.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import evaluate
from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.ranges import Range
from core.specs import AttackSpec, search_space, searched_with
from core.studies.cell_attacks import fit_attack, score_row, words_of
from core.studies.context import context_of
from core.studies.domains import (
    check_contents,
    check_documents,
    content_of,
    encoder_settings,
    open_domain,
    open_encoder,
)
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key, run_cells
from core.studies.tables import SCORE_COLUMNS, markdown_table, score_cells
from core.studies.trials import Trial, open_trials

__all__ = ["VERSION", "TuningStudy", "best_trial", "markdown", "measure", "run"]

VERSION = 1
"""Raised where a trial comes to find something else; see `core.registry.Entry.version`."""


@dataclass(frozen=True, kw_only=True)
class TuningStudy:
    """What to search.

    Parameters
    ----------
    target, other, domain : str
        Whose auxiliary texts the attacker has. The texts under attack in the other studies of the
        same seed take no part.
    n_auxiliary : int
        Sentences, of which `validation_share` is held out to judge each trial by.
    n_validation : int
        Most held-out sentences.
    n_trials : int
        Settings tried; 32 in the thesis.
    fixed : pairs of name and value
        Settings that are not searched.
    seed : int
        Of the texts, the split, the attack and the search.
    """

    attack: str
    target: str
    other: str = "wikipedia"
    domain: str = "in"
    encoder: str = "minilm"
    n_auxiliary: int = 40_000
    validation_share: float = 0.2
    n_validation: int = 2_000
    n_trials: int = 32
    fixed: tuple[tuple[str, Any], ...] = ()
    seed: int = 0

    @property
    def space(self) -> dict[str, Range]:
        """What is searched.

        Raises
        ------
        InvalidInputError
            No such attack or setting, or nothing is left to search.
        """
        make_attack(AttackSpec.of(self.attack, dict(self.fixed)))
        declared = search_space(INVERSION_ATTACKS[self.attack].kind)
        space = {k: v for k, v in declared.items() if k not in dict(self.fixed)}
        if not space:
            raise InvalidInputError(
                f"{self.attack} has no setting left to search. Choose another attack, or give "
                "fewer settings."
            )
        return space

    def cell(self, settings: dict[str, Any]) -> Cell:
        """Return what one trial depends on."""
        kind = INVERSION_ATTACKS[self.attack].kind
        cell = {
            "study": "tuning",
            "target": self.target,
            "other": self.other,
            "contents": [content_of(self.target), content_of(self.other)],
            "encoder": self.encoder,
            "encoder_settings": encoder_settings(self.encoder),
            "attack": self.attack,
            "domain": self.domain,
            "n_auxiliary": self.n_auxiliary,
            "validation_share": self.validation_share,
            "n_validation": self.n_validation,
            "seed": self.seed,
            "settings": {**searched_with(kind), **dict(self.fixed), **settings},
        }
        return cell | context_of(cell, version=VERSION)


def run(
    study: TuningStudy,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Return a row for each trial, in their order; trials that were finished are kept.

    Implements Corò (2022), §4.3.3: a Bayesian search (a tree-structured Parzen estimator) for the
    mean token-set F1 on a fifth of the auxiliary texts.
    Differs from the paper: trials are never ended early. With `n_jobs` trials at once, each batch
    knows the results of the batches before it.

    Raises
    ------
    InvalidInputError
        See `TuningStudy.space`; fewer than one trial; too few documents; another process is at
        this search.
    """
    if study.n_trials < 1:
        raise InvalidInputError(f"trials must be at least 1, got {study.n_trials}.")
    check_documents(study.target)
    on_progress(0.0, f"searching {', '.join(study.space)}")
    place = folder / "searches" / cell_key(study.cell({}) | {"space": repr(study.space)})
    with open_trials(place, study.space, study.seed) as trials:
        while batch := trials.next_batch(n_jobs, study.n_trials):
            for trial, row in zip(batch, _try(batch, study, folder, n_jobs), strict=True):
                score = row.scores.get("token_set_f1")
                trials.tell(trial, score.value if score else None)
            n_done = trials.n_asked
            on_progress(min(1.0, n_done / study.n_trials), f"{n_done} trials are measured")
        tried = trials.tried()[: study.n_trials]
    rows = _try(tried, study, folder, n_jobs)
    return [replace(row, cell={"trial": i, **row.cell}) for i, row in enumerate(rows)]


def _try(trials: Sequence[Trial], study: TuningStudy, folder: Path, n_jobs: int) -> list[Row]:
    """Measure trials, or read what was measured; equal settings are one cell."""
    asked = [study.cell(trial.settings) for trial in trials]
    keys = [cell_key(cell) for cell in asked]
    cells = dict(zip(keys, asked, strict=True))
    rows = run_cells(list(cells.values()), measure, folder, n_jobs=n_jobs)
    by_key = dict(zip(cells, rows, strict=True))
    return [by_key[key] for key in keys]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Fit the attack on four fifths of the auxiliary texts and score it on the rest."""
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "seed")
    place = {name: cell[name] for name in names}
    texts = open_domain(**place, n_targets=1).auxiliary
    order = np.random.default_rng([cell["seed"], 10]).permutation(len(texts))
    n_held = round(cell["validation_share"] * len(texts))
    known = tuple(texts[i] for i in sorted(order[n_held:]))
    held = [texts[i] for i in sorted(order[:n_held][: cell["n_validation"]])]
    encoder = open_encoder(
        cell["encoder"],
        {**place, "part": "known"},
        lambda: known,
        folder,
        contents=cell["contents"],
    )
    attack = fit_attack(cell, encoder, known)
    scope = words_of(cell, known)
    result = evaluate(attack, encoder, held, seed=cell["seed"], vocabulary=scope, name="held out")
    facts = {"n_fitted_on": len(known)}
    return [score_row(result.scores, result.baseline.token_set_f1, facts=facts)]


def best_trial(rows: Sequence[Row]) -> Row | None:
    """Return the row of the highest F1, or None where every trial failed."""
    measured = [row for row in rows if not row.error]
    return max(measured, key=lambda row: row.scores["token_set_f1"].value, default=None)


def markdown(rows: Sequence[Row]) -> str:
    """Return every trial as a row of a Markdown table, and the best settings."""
    lines = markdown_table(
        ("trial", "settings", *SCORE_COLUMNS, "prior F1", "seconds"), map(_cells, rows)
    )
    best = best_trial(rows)
    if best is not None:
        given = " ".join(f"--set {k}={_short(v)}" for k, v in best["settings"].items())
        lines += [
            "",
            f"Best: trial {best['trial']}, `{given}`. It was chosen for its score here, which "
            "flatters it: measure it on the texts under attack.",
        ]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[object, ...]:
    settings = ", ".join(f"{k}={_short(v)}" for k, v in row["settings"].items())
    seconds = "" if row.error else f"{row.seconds or 0:.0f}"
    return (row["trial"], settings, *score_cells(row, "chance", then=[seconds]))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
