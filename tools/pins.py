"""Pins: lines `name==version`, and where they are kept."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["CONSTRAINTS", "ROOT", "SBOM", "lines_of", "pins_of", "requirements_of"]

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
SBOM = ROOT / "sbom.cdx.json"


def requirements_of(text: str) -> list[str]:
    """Return what a requirements file asks for, without comments and references to others."""
    words = (line.partition("#")[0].strip() for line in text.splitlines())
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
