"""Choose the torch device and the precision, and seed the device."""

from __future__ import annotations

import contextlib

import torch

from leakscope.core.errors import InvalidInputError

PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def pick_device(device: str = "auto") -> torch.device:
    """Return the torch device of a name; for "auto", CUDA, else MPS, else CPU."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise InvalidInputError(
            f"device {device!r} is not available here. Use 'auto', 'cpu', 'cuda' or 'mps'."
        ) from error
    return chosen


def pick_precision(device: torch.device, precision: str = "auto") -> str:
    """Return the requested precision; for "auto", float16 on CUDA and float32 elsewhere."""
    if precision not in PRECISIONS:
        raise InvalidInputError(f"precision must be one of {PRECISIONS}, got {precision!r}.")
    if precision != "auto":
        return precision
    return "float16" if device.type == "cuda" else "float32"


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Return a context in which torch computes matrix products in `precision`."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def fast_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 if the device multiplies it fast, else float32, for large products."""
    if device.type == "cuda":
        return torch.bfloat16
    has_bf16 = device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if has_bf16 else torch.float32


def seed_device(device: torch.device) -> None:
    """On CUDA only, seed the GPU's random generator from the CPU's, which checkpoints store.

    Dropout is then the same in a resumed run as in an uninterrupted one.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(int(torch.randint(2**62, (1,))))
