"""Record of a training run: working time, hardware and library versions."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress
from leakscope.core.storage.artifacts import read_record, write_json

_CLOCK_SECONDS = 10.0
_LIBRARIES = (
    "numpy",
    "scikit-learn",
    "torch",
    "transformers",
    "sentence-transformers",
    "safetensors",
    "openvino",
)


class WorkClock:
    """Working time of a run in seconds, saved beside its checkpoint across restarts."""

    def __init__(self, path: Path, identity: dict[str, Any], on_progress: OnProgress) -> None:
        self._path, self._identity, self._on_progress = path, identity, on_progress
        self.seconds = 0.0
        if path.exists():
            before = read_record(path, identity=dict, seconds=float)
            if before["identity"] != identity:
                raise InvalidInputError(
                    f"{path.parent} is the checkpoint of another run (another attack, settings, "
                    "encoder, corpus or seed). Choose another folder. That run resumes when you "
                    "run its own command again."
                )
            self.seconds = float(before["seconds"])
        self.save()
        self._saved_at = self._started_at = time.monotonic()
        self._before = self.seconds

    def report(self, fraction: float, message: str) -> None:
        """Pass progress on to the callback; save the working time every few seconds."""
        now = time.monotonic()
        self.seconds = self._before + now - self._started_at
        if now - self._saved_at > _CLOCK_SECONDS:
            self.save()
            self._saved_at = now
        self._on_progress(fraction, message)

    def save(self) -> None:
        """Write the working time, with the run's identity, to disk."""
        write_json(self._path, {"identity": self._identity, "seconds": self.seconds})


def hardware(encoder: Encoder) -> dict[str, Any]:
    """Return the device, chip, precision and backend that an encoder runs on, by name."""
    import torch

    device = str(getattr(encoder, "device", "cpu"))
    chip = torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine()
    return {
        "device": device,
        "chip": chip,
        "n_cpus": os.cpu_count(),
        "precision": str(getattr(encoder, "precision", "float32")),
        "backend": str(getattr(encoder, "backend", "torch")),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on, by name."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
