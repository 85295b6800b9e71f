"""What a checkpoint or a kept result must hold, checked before anything of it is used."""

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

from core.errors import ArtifactError, InvalidInputError
from core.store import META, UNFIT, load_artifact

__all__ = [
    "check_weights",
    "number",
    "optimizer_state",
    "read_kept",
    "refusing",
    "take_up",
    "whole",
]

Kept = TypeVar("Kept")

_MOMENTS = {"exp_avg", "exp_avg_sq"}
"""Of Adam, for each weight: as many numbers as the weight has."""


@contextmanager
def refusing(folder: Path) -> Iterator[None]:
    """Turn what an unfit checkpoint raises into an ArtifactError that names folder and remedy."""
    try:
        yield
    except (*UNFIT, OverflowError, InvalidInputError) as error:
        told = " ".join(str(error).split())[:200]
        raise ArtifactError(
            f"{folder} holds a checkpoint that no run can go on from ({type(error).__name__}: "
            f"{told}). Move it aside: the same command then begins anew."
        ) from error


def read_kept(
    place: Path | None,
    name: str,
    identity: Any,
    make: Callable[[dict[str, NDArray[Any]], dict[str, Any]], Kept],
) -> Kept | None:
    """Return what `make` makes of an artefact that a finished work left.

    None where there is none, where it is of other work, which what it says under `name` tells, or
    where it is damaged: then the work is done again.
    """
    if place is not None and (place / META).exists():
        with suppress(ArtifactError, *UNFIT):
            arrays, meta = load_artifact(place)
            if meta.get(name) == identity:
                return make(arrays, meta)
    return None


def whole(stored: Mapping[str, Any], name: str, most: float = math.inf) -> int:
    """Return a whole number from 0 to `most`.

    Raises
    ------
    KeyError, ValueError
        It is missing or something else.
    """
    found = stored[name]
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
        raise ValueError(f"{name} must be a whole number from 0 to {most:g}, got {found!r}")
    return found


def number(value: Any, name: str) -> float:
    """Return a number, which may be NaN, as a score of nothing is.

    Raises
    ------
    ValueError
        It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def check_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Check that weights are those of a module, by name and shape.

    Raises
    ------
    ValueError
        They are not; one of them is named.
    """
    wanted = {name: value.shape for name, value in module.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            shapes = [list(shape) if shape is not None else "none"
                      for shape in (found.get(name), wanted.get(name))]  # fmt: skip
            raise ValueError(f"{name!r} has the shape {shapes[0]}, not {shapes[1]}")


def take_up(module: nn.Module, stored: Mapping[str, NDArray[Any]]) -> None:
    """Give a module weights that were stored.

    Raises
    ------
    InvalidInputError
        They are of another module.
    """
    weights = {name: torch.from_numpy(np.asarray(value, np.float32))
               for name, value in stored.items()}  # fmt: skip
    try:
        check_weights(module, weights)
    except ValueError as error:
        raise InvalidInputError(
            f"The weights to begin with are not those of this network: {error}. Remove what was "
            "kept of their training, and train them again."
        ) from error
    module.load_state_dict(weights)


def optimizer_state(
    optimizer: torch.optim.Optimizer, flat: Mapping[str, Tensor]
) -> dict[int, dict[str, Tensor]]:
    """Return the state of an Adam by the number of the weight, from tensors named NUMBER.NAME.

    Compiled steps write where the shapes say: one that is not the weight's would let them write
    elsewhere.

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
            raise ValueError(f"the optimiser keeps {sorted(parts)} of weight {i}")
        step, shape = parts["step"], weights[i].shape
        is_fit = all(parts[key].shape == shape for key in _MOMENTS) and not step.shape
        if not is_fit or not all(part.is_floating_point() for part in parts.values()) or step < 0:
            raise ValueError(f"the optimiser's state of weight {i} does not fit it")
    return state
