"""Noise as other processes draw it: each is started afresh, as on another day.

`python -m core.defences.metric_dp.audit.elsewhere NAME ETA SEED` writes what it drew, as `.npy`.
"""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np

from core.assets import ROOT
from core.defences.metric_dp.audit.choices import CHOICES, choice_plan, shipped_choice
from core.defences.metric_dp.audit.mechanism import Plan, Sample, draw, plan, shipped
from core.defences.registry import DEFENCES
from core.errors import CoreError

__all__ = ["N_CALLS", "drawn_by_processes"]

N_CALLS = 5
"""Calls of each process."""

_MOST_SECONDS = 300


def drawn_by_processes(name: str, seed: int, asked: Plan) -> tuple[Sample, Sample]:
    """Return what two new processes draw for release, in the same places.

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
        said = [process.communicate(timeout=_MOST_SECONDS) for process in running]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refusal(str(error)) from error
    finally:
        for process in running:
            process.kill()
    for process, (_, told) in zip(running, said, strict=True):
        if process.returncode:
            raise _refusal(told.decode(errors="replace")[-200:])
    one, other = (np.load(io.BytesIO(out), allow_pickle=False) for out, _ in said)
    return one, other


def _refusal(told: str) -> CoreError:
    return CoreError(f"Noise could not be drawn in other processes ({told}). Audit without them.")


def main(name: str, eta: str, seed: str) -> None:
    """Draw noise for release and write it to standard output."""
    if name in CHOICES:
        asked: Plan = choice_plan(name, float(eta), int(seed))
        make = shipped_choice(name, asked.eta)
    else:
        asked = plan(DEFENCES[name].acts_on, float(eta), int(seed))
        make = shipped(name, asked.eta)
    np.save(sys.stdout.buffer, draw(asked, make, None, n_calls=N_CALLS))


if __name__ == "__main__":
    main(*sys.argv[1:])
