"""Stop a diverging training and discard its checkpoint."""

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

from leakscope.core.errors import DivergedError
from leakscope.core.protocols import Restorable
from leakscope.core.storage.artifacts import META, clear_leftovers


@contextmanager
def discard_on_divergence(checkpoint_dir: Path | str | None) -> Iterator[None]:
    """Context manager: delete the checkpoint if training raises DivergedError, and re-raise it.

    Other files in the folder are left alone.
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
    """Monitors the loss of every step and raises DivergedError if it explodes.

    Parameters
    ----------
    what : str
        What is trained, for the message.
    most : float
        The mean loss of the last steps may be at most this many times the first loss, plus 1.
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
        """Record a step's loss and return it; raise DivergedError if it is NaN or far too high.

        Raises
        ------
        DivergedError
            The loss is not finite, or the last losses are far above the first.
        """
        value = float(loss.detach())
        if not math.isfinite(value):
            raise DivergedError(self._describe("became NaN or infinite"))
        if not self.n_steps:
            self.first = value
        self.n_steps += 1
        self._last.append(value)
        if self.n_steps >= self.n_last and self.recent > self.most * self.first + 1:
            raise DivergedError(self._describe(f"rose from {self.first:.2f} to {self.recent:.2f}"))
        return loss

    def _describe(self, what: str) -> str:
        """Build the message of a stopped training; `what` says what its loss did."""
        return (
            f"The training of {self.what} was stopped after {self.n_steps:,} steps: its loss "
            f"{what}. Nothing is stored. Use a smaller learning rate."
        )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the first and last losses and the number of steps as checkpoint state."""
        return {}, {"n_steps": self.n_steps, "first": self.first, "last": list(self._last)}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the losses from what `state` returned."""
        self.n_steps, self.first = int(meta["n_steps"]), float(meta["first"])
        self._last = deque(map(float, meta["last"]), maxlen=self.n_last)
        return self


class RestorableGenerator:
    """A random generator whose state is part of a checkpoint."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(list(seed)))

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the generator's state as checkpoint state, without arrays."""
        return {}, dict(self.rng.bit_generator.state)

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the generator's state from what `state` returned."""
        self.rng.bit_generator.state = meta
        return self


class CombinedState:
    """Combines several restorable states into one for a checkpoint."""

    def __init__(self, parts: Mapping[str, Restorable]) -> None:
        self.parts = parts

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the states of all members, merged under their names."""
        arrays: dict[str, NDArray[Any]] = {}
        meta: dict[str, Any] = {}
        for name, part in self.parts.items():
            own, meta[name] = part.state()
            arrays |= {f"{name}.{key}": value for key, value in own.items()}
        return arrays, meta

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore each member from its share of what `state` returned."""
        for name, part in self.parts.items():
            own = {
                key.removeprefix(f"{name}."): value
                for key, value in arrays.items()
                if key.startswith(f"{name}.")
            }
            part.load_state(own, meta[name])
        return self
