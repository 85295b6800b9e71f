"""What a record says of a run: seconds of work, hardware, versions of libraries."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress
from core.store import read_record, write_json

__all__ = ["WorkClock", "hardware", "versions"]

_CLOCK_SECONDS = 10.0
_LIBRARIES = (
    "numpy", "scikit-learn", "torch", "transformers", "sentence-transformers", "safetensors",
    "openvino",
)  # fmt: skip


class WorkClock:
    """Seconds of work, kept over kills beside the checkpoint."""

    def __init__(self, path: Path, identity: dict[str, Any], on_progress: OnProgress) -> None:
        self._path, self._identity, self._on_progress = path, identity, on_progress
        self.seconds = 0.0
        if path.exists():
            before = read_record(path, identity=dict, seconds=float)
            if before["identity"] != identity:
                raise InvalidInputError(
                    f"{path.parent} is the checkpoint of another run (other attack, settings, "
                    "encoder, corpus or seed). Choose another folder; that run goes on when its "
                    "own command runs again."
                )
            self.seconds = float(before["seconds"])
        self.save()
        self._saved_at = self._started_at = time.monotonic()
        self._before = self.seconds

    def report(self, fraction: float, message: str) -> None:
        """Pass progress on, and note the time now and then."""
        now = time.monotonic()
        self.seconds = self._before + now - self._started_at
        if now - self._saved_at > _CLOCK_SECONDS:
            self.save()
            self._saved_at = now
        self._on_progress(fraction, message)

    def save(self) -> None:
        """Write the seconds so far."""
        write_json(self._path, {"identity": self._identity, "seconds": self.seconds})


def hardware(encoder: Encoder) -> dict[str, Any]:
    """Return on what the encoder runs, in which precision and by which library."""
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
    """Return the versions of the libraries that the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
