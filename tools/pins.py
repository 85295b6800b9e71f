"""Parse requirements and their pins (constraints.txt)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HASHES, HASHES_OF_TOOLS = ROOT / "hashes.txt", ROOT / "hashes-dev.txt"
SBOM = ROOT / "sbom.cdx.json"

_BY_INDEX = ("torch", "triton", "nvidia-", "cuda-")


def is_by_index(name: str) -> bool:
    """Return whether package indexes serve different files for one version (PyTorch, CUDA)."""
    return canonicalize_name(name).startswith(_BY_INDEX)


def requirements_of(text: str) -> list[str]:
    """Return the requirements in a requirements file's text, without comments and options."""
    words = (line.partition("#")[0].rstrip("\\ ").strip() for line in text.splitlines())
    return [line for line in words if line and not line.startswith("-")]


def names_of(lines: Iterable[str]) -> set[str]:
    """Return the canonical package names of requirement lines."""
    return {canonicalize_name(Requirement(line).name) for line in lines}


def unmet(lines: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Return the requirement lines that no pin satisfies."""
    wanted = [Requirement(line) for line in lines]
    return [
        str(each)
        for each in wanted
        if (pin := pins.get(canonicalize_name(each.name))) is None or pin not in each.specifier
    ]


def pins_of(text: str) -> dict[str, str]:
    """Parse the text of a fully pinned requirements file to a dict from name to version.

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
    """Format pins as sorted requirement lines, `name==version`."""
    return [f"{name}=={version}" for name, version in sorted(pins.items())]
