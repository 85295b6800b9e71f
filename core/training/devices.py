"""Which device computes, and in which precision."""

from __future__ import annotations

import contextlib

import torch

from core.errors import InvalidInputError

__all__ = ["autocast", "fast_dtype", "pick_device", "pick_precision"]

PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def pick_device(device: str = "auto") -> torch.device:
    """Return CUDA, else MPS, else CPU; or the device asked for, if this machine has it."""
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
            f"device {device!r} is not available here; use 'auto', 'cpu', 'cuda' or 'mps'."
        ) from error
    return chosen


def pick_precision(device: torch.device, precision: str = "auto") -> str:
    """Return float16 on a GPU and float32 elsewhere, or the precision asked for."""
    if precision not in PRECISIONS:
        raise InvalidInputError(f"precision must be one of {PRECISIONS}, got {precision!r}.")
    if precision != "auto":
        return precision
    return "float16" if device.type == "cuda" else "float32"


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Return a context in which matrix products run in `precision`."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def fast_dtype(device: torch.device) -> torch.dtype:
    """Return the number format of large products: bfloat16 where the processor has it."""
    if device.type == "cuda":
        return torch.bfloat16
    has_bf16 = device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if has_bf16 else torch.float32
