"""Trials of a hyperparameter search: proposed by Optuna, stored in SQLite, resumable."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.ranges import Categorical, Range
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import make_folder


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
        self._study, self._seed = study, seed
        self._space = {name: _distribution(choice) for name, choice in space.items()}
        self._fail_incomplete()

    @property
    def n_proposed(self) -> int:
        """The number of trials proposed so far."""
        return len(self._proposed())

    def next_batch(self, n_jobs: int, n_trials: int) -> list[Trial]:
        """Return the next trials to measure, beginning with those that a kill left unfinished.

        Batches end at multiples of `n_jobs`, so that they are the same after a kill.
        """
        from optuna.trial import TrialState

        batch = [self._to_trial(t) for t in self._proposed() if t.state == TrialState.RUNNING]
        while (n := self.n_proposed) < n_trials and (n % n_jobs or not batch):
            self._study.sampler = _sampler(self._seed, n)
            batch.append(self._to_trial(self._study.ask(fixed_distributions=self._space)))
        return batch

    def tell(self, trial: Trial, value: float | None) -> None:
        """Store the value of a trial; None if it failed."""
        from optuna.trial import TrialState

        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._study.tell(trial.number, value, state=state, skip_if_finished=True)

    def all_trials(self) -> list[Trial]:
        """Return all proposed trials, in order."""
        return [self._to_trial(t) for t in self._proposed()]

    def _to_trial(self, proposed: Any) -> Trial:
        """Convert an Optuna trial to a `Trial`."""
        return Trial(proposed.number, {name: proposed.params[name] for name in self._space})

    def _proposed(self) -> list[Any]:
        """Return Optuna's trials that have all settings."""
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
    """Open the search in `folder`, or create it, with the folder locked.

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
    """Convert database errors to a StorageError that names the remedy."""
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
    """Lock the folder until this process closes the file or dies; raise if it is locked."""
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
    """Return the TPE sampler for the next proposal, seeded by the number of proposals so far."""
    from optuna.samplers import TPESampler

    # constant_liar: trials that are still running are not proposed again.
    return TPESampler(seed=(1_000_003 * seed + n_proposed) % 2**32, constant_liar=True)


def _distribution(choice: Range) -> Any:
    """Convert a search range to Optuna's distribution."""
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(choice, Categorical):
        return CategoricalDistribution(choice.values)
    if isinstance(choice.low, int) and isinstance(choice.high, int):
        return IntDistribution(choice.low, choice.high, log=choice.is_log)
    return FloatDistribution(choice.low, choice.high, log=choice.is_log)
