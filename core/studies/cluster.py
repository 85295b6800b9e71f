"""Run the cells of a study on a Ray cluster, by a joblib backend.

Each machine needs Leakscope and the corpora at the same paths. Rows travel back to the process
that was started, which alone writes them; fitted encoders and encoded vectors stay in the cache
of the machine that made them. Whether vectors are kept, and which file holds the key of the cache,
travels with each cell; a key that is a phrase does not.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import ParallelBackendBase

from leakscope.core.errors import InvalidInputError, MissingDependencyError, install
from leakscope.core.storage.encryption import KEY, KEY_FILE, NO_CACHE, is_cache_off
from leakscope.core.studies.runner import LOST, use_backend

NEEDS_KEY = "LEAKSCOPE_NEEDS_KEY"
"""Sent to a worker if this process encrypts with a passphrase, which is never sent."""

_LONGEST_LEAVE = 20.0
"""Seconds to wait for cancelled tasks before disconnecting from the cluster."""


class RayBackend(ParallelBackendBase):
    """A joblib backend that runs each cell as a Ray task and retries it if its worker dies.

    Ray's own joblib backend holds a pool of actors and ends a whole study with the first that
    dies; tasks are retried one by one, on any machine that is left.

    Parameters
    ----------
    n_retries : int
        Further times that a task is started after its worker or its machine died.
    """

    supports_retrieve_callback = True

    def __init__(self, *, n_retries: int = 1) -> None:
        """Import Ray, and prepare its task, which is retried if a worker dies."""
        super().__init__(nesting_level=0)
        ray = _import_ray()
        self._ray = ray
        self._task = ray.remote(_run_batch).options(max_retries=n_retries, num_cpus=1)
        self._open: set[Any] = set()
        self._threads: set[threading.Thread] = set()
        self._is_left = False

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return how many tasks to submit at once: at least 2, as a single one would run inline."""
        return max(2, n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Store joblib's `Parallel`, and return how many tasks are submitted at once."""
        self.parallel = parallel
        return self.effective_n_jobs(n_jobs)

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Future[Any]:
        """Run a task on the cluster from a new thread, and return a future of its result."""
        future: Future[Any] = Future()
        if callback is not None:
            future.add_done_callback(callback)

        def work() -> None:
            """Wait for the task and set the future's result or exception."""
            try:
                outcome = self._run_remotely(func)
            except BaseException as fault:
                future.set_exception(fault)
            else:
                future.set_result(outcome)
            finally:
                self._threads.discard(thread)

        # A daemon thread: at exit, Python would wait for an executor's threads, and a task may
        # never answer.
        thread = threading.Thread(target=work, name="ray-task", daemon=True)
        self._threads.add(thread)
        thread.start()
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return the result of a finished future."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel the running tasks, so that a stopped study frees the cluster."""
        for reference in list(self._open):
            self._ray.cancel(reference, force=True)

    def leave(self) -> None:
        """Cancel tasks until no thread waits for the cluster, for at most `_LONGEST_LEAVE` seconds.

        Ray never answers threads that wait while it shuts down, and would start a new cluster for a
        task that is submitted later.
        """
        self._is_left = True
        end = time.monotonic() + _LONGEST_LEAVE
        while self._threads and time.monotonic() < end:
            self.abort_everything()
            time.sleep(0.02)

    def _run_remotely(self, func: Callable[[], Any]) -> Any:
        """Run a task on the cluster and wait; return its result, or [LOST] if its worker died."""
        if self._is_left:
            return [LOST]
        reference = self._task.remote(func, _worker_variables())
        self._open.add(reference)
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise InvalidInputError(
                "A worker of the Ray cluster could not run a cell. Install the same Leakscope on "
                f"each machine. It said: {str(error).splitlines()[-1]}"
            ) from error
        except self._ray.exceptions.RayError:
            return [LOST]
        finally:
            self._open.discard(reference)


def _worker_variables() -> dict[str, str]:
    """Return the environment variables that set up a worker's cache: never the key itself."""
    told = {NO_CACHE: "1"} if is_cache_off() else {}
    if file := os.environ.get(KEY_FILE):
        told[KEY_FILE] = str(Path(file).absolute())
    elif os.environ.get(KEY):
        told[NEEDS_KEY] = "1"
    return told


def _run_batch(func: Callable[[], Any], told: dict[str, str]) -> Any:
    """Run joblib's batch of one cell on a worker, with the caller's cache variables set meanwhile.

    A machine with its own key uses that. One without a key, if the study was started with a
    passphrase, caches no vectors rather than storing them unencrypted.
    """
    told = dict(told)
    needs_key = told.pop(NEEDS_KEY, "")
    if KEY in os.environ or KEY_FILE in os.environ:
        told.pop(KEY_FILE, None)
    elif needs_key:
        told[NO_CACHE] = "1"
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        return func()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def ray_workers(address: str, n_jobs: int | None = None, *, n_retries: int = 1) -> Iterator[int]:
    """Connect to a Ray cluster, run the block's `run_cells` there, and yield the worker count.

    Parameters
    ----------
    address : str
        `local` starts workers on this machine, reachable from it alone; `auto` finds the cluster
        that this machine belongs to; `HOST:PORT` or `ray://HOST:PORT` names one.
    n_jobs : int, optional
        Cells at once; by default as many as the cluster has processors.

    Yields
    ------
    int
        Cells at once.

    Raises
    ------
    MissingDependencyError
        Ray is not installed.
    InvalidInputError
        No cluster at that address.
    """
    ray = _import_ray()
    options: dict[str, Any] = {"address": address}
    if address == "local":
        # Rows are small: 100 MB for objects instead of a third of the memory.
        options |= {
            "num_cpus": n_jobs or os.cpu_count(),
            "_node_ip_address": "127.0.0.1",
            "include_dashboard": False,
            "object_store_memory": 100 * 2**20,
        }
    was_joined = ray.is_initialized()
    try:
        if not was_joined:
            _check_reachable(address)
            ray.init(**options, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInputError(
            f"No Ray cluster answers at {address!r}: {str(error).splitlines()[0]} Start one with "
            "`ray start --head`, or use --ray local."
        ) from error
    backend = RayBackend(n_retries=n_retries)
    try:
        with use_backend(backend):
            yield n_jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        backend.leave()
        if not was_joined:
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise OSError or ValueError if nothing listens at an address; Ray would wait for minutes."""
    if address in ("local", "auto"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def _import_ray() -> Any:
    """Import and return Ray with its usage statistics disabled.

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingDependencyError(f"--ray needs the `ray` package: {install('ray')}") from error
    return ray
