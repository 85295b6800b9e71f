"""Training that goes astray is stopped and said, so that nothing of it is kept as trained."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core.errors import DivergedError
from core.protocols import Restorable
from core.store import META, clear_leftovers

__all__ = ["Drawing", "LossWatch", "Several", "or_nothing"]


@contextmanager
def or_nothing(checkpoint_dir: Path | str | None) -> Iterator[None]:
    """Remove the checkpoint of a training that goes astray: it would only go astray again.

    What else lies in the folder is somebody's, and stays.
    """
    try:
        yield
    except DivergedError:
        if checkpoint_dir is not None and (folder := Path(checkpoint_dir)).is_dir():
            (folder / META).unlink(missing_ok=True)
            clear_leftovers(folder)
            with suppress(OSError):
                folder.rmdir()
        raise


class LossWatch:
    """Looks at the loss of every step.

    Parameters
    ----------
    what : str
        What is trained, for the message.
    most : float
        How many times the loss of the first step the mean of the last may be, and one more.
    """

    n_last = 20

    def __init__(self, what: str, *, most: float = 2.0) -> None:
        self.what, self.most = what, most
        self.n_steps, self.first = 0, 0.0
        self._last: deque[float] = deque(maxlen=self.n_last)

    @property
    def recent(self) -> float:
        """The mean loss of the last steps; NaN before the first."""
        return sum(self._last) / len(self._last) if self._last else math.nan

    def check(self, loss: Tensor) -> Tensor:
        """Return the loss of a step.

        Raises
        ------
        DivergedError
            It is no number, or the last ones are far above the first one.
        """
        value = float(loss.detach())
        if not math.isfinite(value):
            raise DivergedError(self._said("became no number"))
        if not self.n_steps:
            self.first = value
        self.n_steps += 1
        self._last.append(value)
        if self.n_steps >= self.n_last and self.recent > self.most * self.first + 1:
            raise DivergedError(self._said(f"rose from {self.first:.2f} to {self.recent:.2f}"))
        return loss

    def _said(self, what: str) -> str:
        return (
            f"The training of {self.what} was stopped after {self.n_steps:,} steps: its loss "
            f"{what}. Nothing of it is kept. Use a smaller learning rate."
        )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what was seen so far."""
        return {}, {"n_steps": self.n_steps, "first": self.first, "last": list(self._last)}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.n_steps, self.first = int(meta["n_steps"]), float(meta["first"])
        self._last = deque(map(float, meta["last"]), maxlen=self.n_last)
        return self


class Drawing:
    """A generator of random numbers whose place is part of a checkpoint."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(list(seed)))

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return where it stands."""
        return {}, dict(self.rng.bit_generator.state)

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.rng.bit_generator.state = meta
        return self


class Several:
    """What a run keeps beside its network, where that is more than one thing."""

    def __init__(self, parts: Mapping[str, Restorable]) -> None:
        self.parts = parts

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the state of each part under its name."""
        arrays: dict[str, NDArray[Any]] = {}
        meta: dict[str, Any] = {}
        for name, part in self.parts.items():
            own, meta[name] = part.state()
            arrays |= {f"{name}.{key}": value for key, value in own.items()}
        return arrays, meta

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        for name, part in self.parts.items():
            own = {key.removeprefix(f"{name}."): value for key, value in arrays.items()
                   if key.startswith(f"{name}.")}  # fmt: skip
            part.load_state(own, meta[name])
        return self
