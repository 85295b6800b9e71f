"""Audit of any shipped mechanism by its name, including draws made in separate processes.

`python -m leakscope.core.defences.metric_dp.audit.by_name NAME ETA SEED` writes what a new process
draws for release, as `.npy`.
"""

from __future__ import annotations

import io
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np

from leakscope.core.assets import ROOT
from leakscope.core.defences.metric_dp.audit import mechanism as noise
from leakscope.core.defences.metric_dp.audit.choices import (
    CHOICES,
    audit_choice,
    choice_factory,
    choice_plan,
)
from leakscope.core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    DIMENSION,
    Audit,
    Plan,
    Sample,
    make_plan,
    run_mechanism,
)
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import CoreError
from leakscope.core.protocols import OnProgress, no_progress

N_CALLS = 5
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
    """Audit a mechanism of the registry at its ε or η.

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
    make, kind = noise.defence_factory(name, strength), DEFENCES[name].acts_on
    return noise.audit(make, kind, strength, dimension=dimension, **options)


def draw_in_processes(name: str, seed: int, asked: Plan) -> tuple[Sample, Sample]:
    """Draw noise for release in two new processes, for the inputs of a plan.

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
        raise _refusal(str(error)) from error
    finally:
        for process in running:
            process.kill()
    for process, (_, errors) in zip(running, outputs, strict=True):
        if process.returncode:
            raise _refusal(errors.decode(errors="replace")[-200:])
    one, other = (np.load(io.BytesIO(out), allow_pickle=False) for out, _ in outputs)
    return one, other


def _refusal(reason: str) -> CoreError:
    """Build the error for a process that failed."""
    return CoreError(f"Noise could not be drawn in other processes ({reason}). Audit without them.")


def main(name: str, eta: str, seed: str) -> None:
    """Draw noise for release and write it to standard output as `.npy`."""
    if name in CHOICES:
        asked: Plan = choice_plan(name, float(eta), int(seed))
        make = choice_factory(name, asked.eta)
    else:
        asked = make_plan(DEFENCES[name].acts_on, float(eta), int(seed))
        make = noise.defence_factory(name, asked.eta)
    np.save(sys.stdout.buffer, run_mechanism(asked, make, None, n_calls=N_CALLS))


if __name__ == "__main__":
    main(*sys.argv[1:])
