"""Validate a checkpoint or a stored result before using it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.storage.artifacts import META, UNFIT, load_artifact

Kept = TypeVar("Kept")

_MOMENTS = {"exp_avg", "exp_avg_sq"}
"""Adam's moments, each with the shape of its weight."""


@contextmanager
def checkpoint_errors(folder: Path) -> Iterator[None]:
    """Context manager: turn errors of loading a checkpoint into an ArtifactError with its path."""
    try:
        yield
    except (*UNFIT, OverflowError, InvalidInputError) as error:
        told = " ".join(str(error).split())[:200]
        raise ArtifactError(
            f"{folder} contains a damaged checkpoint ({type(error).__name__}: {told}). Move it "
            "away and run the same command again, which starts from the beginning."
        ) from error


def load_finished(
    place: Path | None,
    name: str,
    identity: Any,
    make: Callable[[dict[str, NDArray[Any]], dict[str, Any]], Kept],
) -> Kept | None:
    """Load a finished result and build it with `make`; None if there is none of this identity.

    It is also None if the result is missing or damaged; the work is then done again. The identity
    is stored under `name`.
    """
    if place is not None and (place / META).exists():
        with suppress(ArtifactError, *UNFIT):
            arrays, meta = load_artifact(place)
            if meta.get(name) == identity:
                return make(arrays, meta)
    return None


def read_count(stored: Mapping[str, Any], name: str, most: float = math.inf) -> int:
    """Return a stored whole number from 0 to `most`, or raise ValueError.

    Raises
    ------
    KeyError, ValueError
        It is missing or something else.
    """
    found = stored[name]
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
        raise ValueError(f"{name} must be a whole number from 0 to {most:g}, got {found!r}")
    return found


def read_number(value: Any, name: str) -> float:
    """Return a stored number (NaN allowed) as float, or raise ValueError.

    Raises
    ------
    ValueError
        It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def check_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights have a module's parameter names and shapes.

    Raises
    ------
    ValueError
        They are not; one of them is named.
    """
    wanted = {name: value.shape for name, value in module.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            shapes = [
                list(shape) if shape is not None else "none"
                for shape in (found.get(name), wanted.get(name))
            ]
            raise ValueError(f"{name!r} has the shape {shapes[0]}, not {shapes[1]}")


def load_weights(module: nn.Module, stored: Mapping[str, NDArray[Any]]) -> None:
    """Load stored weights into a module; raise InvalidInputError if they do not fit it.

    Raises
    ------
    InvalidInputError
        The weights belong to another module.
    """
    weights = {
        name: torch.from_numpy(np.asarray(value, np.float32)) for name, value in stored.items()
    }
    try:
        check_weights(module, weights)
    except ValueError as error:
        raise InvalidInputError(
            f"The initial weights do not fit this network: {error}. Remove the stored result of "
            "their training, and train them again."
        ) from error
    module.load_state_dict(weights)


def optimizer_state(
    optimizer: torch.optim.Optimizer, flat: Mapping[str, Tensor]
) -> dict[int, dict[str, Tensor]]:
    """Rebuild Adam's state of each weight from tensors named NUMBER.NAME; check their shapes.

    Compiled steps write by these shapes: a wrong shape would let them write elsewhere in memory.

    Raises
    ------
    ValueError
        It does not fit the optimiser's weights.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in flat.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    for i, parts in state.items():
        if not 0 <= i < len(weights) or parts.keys() != _MOMENTS | {"step"}:
            raise ValueError(f"the optimiser's state of weight {i} has the parts {sorted(parts)}")
        step, shape = parts["step"], weights[i].shape
        is_fit = all(parts[key].shape == shape for key in _MOMENTS) and not step.shape
        if not is_fit or not all(part.is_floating_point() for part in parts.values()) or step < 0:
            raise ValueError(f"the optimiser's state of weight {i} does not fit it")
    return state
