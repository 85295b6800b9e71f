"""Search for an attack's best settings on held-out auxiliary texts (C22 §4.3.3)."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.ranges import Categorical, Range
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, score_cells
from leakscope.core.specs import (
    REQUIRED,
    AttackSpec,
    fixed_search_settings,
    search_space,
    setting,
    validate_settings,
)
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import make_folder
from leakscope.core.studies.context import cell_context
from leakscope.core.studies.domains import (
    check_contents,
    check_documents,
    content_of,
    encoder_settings,
    open_domain,
    open_encoder,
)
from leakscope.core.studies.inversion.cell_attacks import fit_attack, score_row, scored_vocabulary
from leakscope.core.studies.runner import cell_key, run_cells


@dataclass(frozen=True)
class Trial:
    """A trial's settings and number."""

    number: int
    settings: dict[str, Any]


class Trials:
    """The stored trials of one search.

    Proposals depend only on the seed and on earlier trials, so a search that was killed ends with
    the same trials as one that was not.
    """

    def __init__(self, study: Any, space: dict[str, Range], seed: int) -> None:
        """Wrap an Optuna study and the ranges to search; fail its trials that lack a setting."""
        self._study, self._seed = study, seed
        self._space = {name: _distribution(choice) for name, choice in space.items()}
        self._fail_incomplete()

    @property
    def n_proposed(self) -> int:
        """The number of trials proposed so far."""
        return len(self._list_proposed())

    def next_batch(self, n_jobs: int, n_trials: int) -> list[Trial]:
        """Propose the next trials to measure, after those that an interruption left unfinished.

        Batches end at multiples of `n_jobs`, so that they are the same after a kill.
        """
        from optuna.trial import TrialState

        batch = [self._to_trial(t) for t in self._list_proposed() if t.state == TrialState.RUNNING]
        while (n := self.n_proposed) < n_trials and (n % n_jobs or not batch):
            self._study.sampler = _sampler(self._seed, n)
            batch.append(self._to_trial(self._study.ask(fixed_distributions=self._space)))
        return batch

    def tell(self, trial: Trial, value: float | None) -> None:
        """Store the F1 of a measured trial; None if it failed."""
        from optuna.trial import TrialState

        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._study.tell(trial.number, value, state=state, skip_if_finished=True)

    def all_trials(self) -> list[Trial]:
        """Return all proposed trials in order, measured or not."""
        return [self._to_trial(t) for t in self._list_proposed()]

    def _to_trial(self, proposed: Any) -> Trial:
        """Convert an Optuna trial to a `Trial`."""
        return Trial(proposed.number, {name: proposed.params[name] for name in self._space})

    def _list_proposed(self) -> list[Any]:
        """Return Optuna's trials that have a value for every searched setting."""
        trials = self._study.get_trials(deepcopy=False)
        return [t for t in trials if t.params.keys() == self._space.keys()]

    def _fail_incomplete(self) -> None:
        """Mark an interrupted trial without all its settings as failed; another replaces it."""
        from optuna.trial import TrialState

        for trial in self._study.get_trials(deepcopy=False):
            is_open = trial.state == TrialState.RUNNING
            if is_open and trial.params.keys() != self._space.keys():
                self._study.tell(trial.number, state=TrialState.FAIL)


@contextmanager
def open_trials(folder: Path, space: dict[str, Range], seed: int) -> Iterator[Trials]:
    """Lock a folder, and yield its stored search as `Trials`; it is created if missing.

    Raises
    ------
    InvalidInputError
        Another process is at it.
    ArtifactError
        The file is damaged.
    StorageError
        The folder cannot be written.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = folder / "trials.sqlite"
    with storage_errors(folder):
        make_folder(folder)
        lock = (folder / "lock").open("w")
    with lock:
        _lock_folder(lock, folder)
        _check_database(path)
        with _database_errors(folder):
            storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
            study = optuna.create_study(
                storage=storage, study_name="search", direction="maximize", load_if_exists=True
            )
            try:
                yield Trials(study, space, seed)
            finally:
                storage.remove_session()


@contextmanager
def _database_errors(folder: Path) -> Iterator[None]:
    """Convert database errors in the block to a StorageError that names the remedy."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError, sqlite3.Error) as error:
        told = str(error.__cause__ or error)
        number = next((n for said, n in _DISK_MESSAGES.items() if said in told), errno.EIO)
        with storage_errors(folder):
            raise OSError(number, os.strerror(number)) from error


_DISK_MESSAGES = {
    "disk is full": errno.ENOSPC,
    "readonly database": errno.EROFS,
    "unable to open": errno.EACCES,
}
"""Parts of SQLite's messages, with the system error that each stands for."""


def _lock_folder(lock: Any, folder: Path) -> None:
    """Lock the open file `lock` until it is closed or the process dies; raise if it is locked."""
    if os.name == "nt":
        return
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InvalidInputError(
            f"Another process runs this search ({folder.name}). Wait for it, or stop it."
        ) from error


def _check_database(path: Path) -> None:
    """Raise ArtifactError if a file is not an intact SQLite database."""
    try:
        with closing(sqlite3.connect(path)) as database:
            (said,) = database.execute("PRAGMA quick_check").fetchone()
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise ArtifactError(
            f"{path} is damaged: {said}. Move it away; measured trials are stored separately and "
            "are not measured again."
        )


def _sampler(seed: int, n_proposed: int) -> Any:
    """Build the TPE sampler for the next proposal, seeded by the number of proposals so far."""
    from optuna.samplers import TPESampler

    # constant_liar: trials that are still running are not proposed again.
    return TPESampler(seed=(1_000_003 * seed + n_proposed) % 2**32, constant_liar=True)


def _distribution(choice: Range) -> Any:
    """Convert a search range to Optuna's distribution."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(choice, Categorical):
        return CategoricalDistribution(choice.values)
    if isinstance(choice.low, int) and isinstance(choice.high, int):
        return IntDistribution(choice.low, choice.high, log=choice.is_log)
    return FloatDistribution(choice.low, choice.high, log=choice.is_log)


VERSION = 1
"""Raise it when a trial would give another result; see `leakscope.core.registry.Entry`."""


@dataclass(frozen=True, kw_only=True)
class TuningStudy:
    """Settings of a search: attack, texts, number of trials, and fixed attack settings.

    The texts under attack in the other studies of the same seed take no part. `validation_share` of
    the auxiliary sentences is held out to judge each trial by; what is in `fixed` is not searched.
    """

    attack: str
    encoder: str = setting("minilm", "as in `study`")
    target: str = setting(REQUIRED, "file with the texts to study")
    other: str = setting("wikipedia", "cross-domain corpus")
    domain: str = setting("in", "domain of the attacker's texts", choices=("in", "cross"))
    n_auxiliary: int = setting(40_000, "number of sentences, a fifth of them held out")
    validation_share: float = 0.2
    n_validation: int = setting(2_000, "maximum number of held-out sentences")
    n_trials: int = setting(32, "number of settings to try, as in C22 §4.3.3", low=1, flag="trials")
    fixed: tuple[tuple[str, Any], ...] = ()
    seed: int = setting(0, "random seed of texts, split, attack and search", low=0)

    @property
    def space(self) -> dict[str, Range]:
        """The search range of each attack setting that is not fixed, by name.

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
                f"{self.attack} has no setting left to search. Choose another attack, or fix fewer "
                "settings."
            )
        return space

    def cell(self, settings: dict[str, Any]) -> Cell:
        """Build the cell that measures a trial with the given attack settings."""
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
            "settings": {**fixed_search_settings(kind), **dict(self.fixed), **settings},
        }
        return cell | cell_context(cell, version=VERSION)


def run(
    study: TuningStudy,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Run the search and return a row per trial, in order; finished trials are not measured again.

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
    validate_settings(study)
    check_documents(study.target)
    on_progress(0.0, f"searching {', '.join(study.space)}")
    place = folder / "searches" / cell_key(study.cell({}) | {"space": repr(study.space)})
    with open_trials(place, study.space, study.seed) as trials:
        while batch := trials.next_batch(n_jobs, study.n_trials):
            for trial, row in zip(
                batch, _measure_trials(batch, study, folder, n_jobs), strict=True
            ):
                score = row.scores.get("token_set_f1")
                trials.tell(trial, score.value if score else None)
            n_done = trials.n_proposed
            on_progress(min(1.0, n_done / study.n_trials), f"{n_done} trials measured")
        tried = trials.all_trials()[: study.n_trials]
    rows = _measure_trials(tried, study, folder, n_jobs)
    return [replace(row, cell={"trial": i, **row.cell}) for i, row in enumerate(rows)]


def _measure_trials(
    trials: Sequence[Trial], study: TuningStudy, folder: Path, n_jobs: int
) -> list[Row]:
    """Return a row per trial, measured or read from storage; equal settings share one cell."""
    asked = [study.cell(trial.settings) for trial in trials]
    keys = [cell_key(cell) for cell in asked]
    cells = dict(zip(keys, asked, strict=True))
    rows = run_cells(list(cells.values()), measure, folder, n_jobs=n_jobs)
    by_key = dict(zip(cells, rows, strict=True))
    return [by_key[key] for key in keys]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Fit a cell's attack on four fifths of its auxiliary texts; return its scores on the rest."""
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
    scope = scored_vocabulary(cell, known)
    result = evaluate(attack, encoder, held, seed=cell["seed"], vocabulary=scope, name="held out")
    facts = {"n_fitted_on": len(known)}
    return [score_row(result.scores, result.baseline.token_set_f1, facts=facts)]


def best_trial(rows: Sequence[Row]) -> Row | None:
    """Return the row of the trial with the highest F1; None if every trial failed."""
    measured = [row for row in rows if not row.error]
    return max(measured, key=lambda row: row.scores["token_set_f1"].value, default=None)


def markdown(rows: Sequence[Row]) -> str:
    """Format every trial as a row of a Markdown table, followed by the best settings."""
    lines = markdown_table(
        ("trial", "settings", *SCORE_COLUMNS, "prior F1", "seconds"), map(_table_cells, rows)
    )
    best = best_trial(rows)
    if best is not None:
        given = " ".join(f"--set {k}={_format_value(v)}" for k, v in best["settings"].items())
        lines += [
            "",
            f"Best: trial {best['trial']}, `{given}`. It was selected by this score, which is "
            "therefore too optimistic: measure it on the texts to attack.",
        ]
    return "\n".join(lines) + "\n"


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return the table cells of a trial: number, settings, scores and seconds."""
    settings = ", ".join(f"{k}={_format_value(v)}" for k, v in row["settings"].items())
    seconds = "" if row.error else f"{row.seconds or 0:.0f}"
    return (row["trial"], settings, *score_cells(row, "chance", then=[seconds]))


def _format_value(value: Any) -> str:
    """Format a setting's value; floats have four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
