"""The trials of a search: proposed by Optuna, kept in SQLite, finished after a kill."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.durable import make_folder
from core.errors import ArtifactError, InvalidInputError
from core.ranges import OneOf, Range
from core.store import storage_errors

__all__ = ["Trial", "Trials", "open_trials"]


@dataclass(frozen=True)
class Trial:
    """Settings to try, and their place in the order."""

    number: int
    settings: dict[str, Any]


class Trials:
    """The trials of one search, on disk.

    The proposals depend on the seed and on the trials before alone, so a search that was killed
    ends with the trials of one that was not.
    """

    def __init__(self, study: Any, space: dict[str, Range], seed: int) -> None:
        self._study, self._seed = study, seed
        self._space = {name: _distribution(choice) for name, choice in space.items()}
        self._drop_half_proposed()

    @property
    def n_asked(self) -> int:
        """How many trials were proposed."""
        return len(self._proposed())

    def next_batch(self, n_jobs: int, n_trials: int) -> list[Trial]:
        """Return the trials to measure next: first those that a kill left unfinished.

        Batches end at multiples of `n_jobs`, so that they are the same after a kill.
        """
        from optuna.trial import TrialState

        batch = [self._trial(t) for t in self._proposed() if t.state == TrialState.RUNNING]
        while (n := self.n_asked) < n_trials and (n % n_jobs or not batch):
            self._study.sampler = _sampler(self._seed, n)
            batch.append(self._trial(self._study.ask(fixed_distributions=self._space)))
        return batch

    def tell(self, trial: Trial, value: float | None) -> None:
        """Keep what a trial reached; None for one that failed."""
        from optuna.trial import TrialState

        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._study.tell(trial.number, value, state=state, skip_if_finished=True)

    def tried(self) -> list[Trial]:
        """Return all trials that were proposed, in their order."""
        return [self._trial(t) for t in self._proposed()]

    def _trial(self, proposed: Any) -> Trial:
        return Trial(proposed.number, {name: proposed.params[name] for name in self._space})

    def _proposed(self) -> list[Any]:
        trials = self._study.get_trials(deepcopy=False)
        return [t for t in trials if t.params.keys() == self._space.keys()]

    def _drop_half_proposed(self) -> None:
        """Fail the trial that a kill left without all its settings; another takes its place."""
        from optuna.trial import TrialState

        for trial in self._study.get_trials(deepcopy=False):
            is_open = trial.state == TrialState.RUNNING
            if is_open and trial.params.keys() != self._space.keys():
                self._study.tell(trial.number, state=TrialState.FAIL)


@contextmanager
def open_trials(folder: Path, space: dict[str, Range], seed: int) -> Iterator[Trials]:
    """Open the search in `folder`, or begin it.

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
        _take(lock, folder)
        _check(path)
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
    """Turn what the database says of the disk into a StorageError that names the remedy."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError, sqlite3.Error) as error:
        told = str(error.__cause__ or error)
        number = next((n for said, n in _SAID_OF_DISK.items() if said in told), errno.EIO)
        with storage_errors(folder):
            raise OSError(number, os.strerror(number)) from error


_SAID_OF_DISK = {
    "disk is full": errno.ENOSPC,
    "readonly database": errno.EROFS,
    "unable to open": errno.EACCES,
}
"""What SQLite says, by the error of the system that it stands for."""


def _take(lock: Any, folder: Path) -> None:
    """Hold the folder until this process closes the file or dies."""
    if os.name == "nt":
        return
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InvalidInputError(
            f"Another process is at this search ({folder.name}). Wait for it, or end it."
        ) from error


def _check(path: Path) -> None:
    """Raise ArtifactError for a file that is no sound database."""
    try:
        with closing(sqlite3.connect(path)) as database:
            (said,) = database.execute("PRAGMA quick_check").fetchone()
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise ArtifactError(
            f"{path} is damaged: {said}. Move it away: trials that were measured are kept apart "
            "from it and are not measured again."
        )


def _sampler(seed: int, n_asked: int) -> Any:
    from optuna.samplers import TPESampler

    # constant_liar: trials that are still running are not proposed again.
    return TPESampler(seed=(1_000_003 * seed + n_asked) % 2**32, constant_liar=True)


def _distribution(choice: Range) -> Any:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(choice, OneOf):
        return CategoricalDistribution(choice.values)
    if isinstance(choice.low, int) and isinstance(choice.high, int):
        return IntDistribution(choice.low, choice.high, log=choice.is_log)
    return FloatDistribution(choice.low, choice.high, log=choice.is_log)
