"""Pins: lines `name==version`, and where they are kept."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["CONSTRAINTS", "HASHES", "HASHES_OF_TOOLS", "ROOT", "SBOM", "is_by_index", "lines_of",
           "pins_of", "requirements_of"]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HASHES, HASHES_OF_TOOLS = ROOT / "hashes.txt", ROOT / "hashes-dev.txt"
SBOM = ROOT / "sbom.cdx.json"

_BY_INDEX = ("torch", "triton", "nvidia-", "cuda-")


def is_by_index(name: str) -> bool:
    """Return whether indexes serve different files as one version: PyTorch and its CUDA."""
    return canonicalize_name(name).startswith(_BY_INDEX)


def requirements_of(text: str) -> list[str]:
    """Return what a requirements file asks for, without comments and references to others."""
    words = (line.partition("#")[0].rstrip("\\ ").strip() for line in text.splitlines())
    return [line for line in words if line and not line.startswith("-")]


def pins_of(text: str) -> dict[str, str]:
    """Return name → version of a requirements file in which everything is pinned.

    Raises
    ------
    ValueError
        A package is not pinned, or twice to different versions.
    """
    pins: dict[str, str] = {}
    for line in requirements_of(text):
        wanted = Requirement(line)
        name, given = canonicalize_name(wanted.name), list(wanted.specifier)
        is_pin = len(given) == 1 and given[0].operator == "=="
        if not is_pin or pins.setdefault(name, given[0].version) != given[0].version:
            raise ValueError(f"{name} has no single pin: {line}")
    return pins


def lines_of(pins: dict[str, str]) -> list[str]:
    """Return pins as lines of a requirements file."""
    return [f"{name}=={version}" for name, version in sorted(pins.items())]
