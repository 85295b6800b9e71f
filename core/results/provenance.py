"""Provenance of measurements: when they ran, by which code version and on what machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from leakscope.core import __version__
from leakscope.core.assets import ROOT
from leakscope.core.formatting import join_words
from leakscope.core.training.record import versions

_GIT_SECONDS = 10.0
_SHORT = 12


@dataclass(frozen=True)
class Provenance:
    """When a measurement began, with which versions and commit, and on what machine.

    Attributes
    ----------
    begun : str
        Date and time in UTC, such as `2026-03-01T12:00:00+00:00`.
    versions : dict
        Of Leakscope, Python and the libraries that the numbers depend on.
    commit : str
        Of the checkout; empty where there is none, or no git.
    is_changed : bool
        Whether files of the checkout differed from the commit.
    machine : dict
        `chip`, `n_cpus` and `device`.
    backends : tuple of str
        The libraries that encoders could compute with.
    """

    begun: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    is_changed: bool = False
    machine: dict[str, Any] = field(default_factory=dict)
    backends: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as a JSON-able dictionary; a missing time or commit is left out."""
        told: dict[str, Any] = {"begun": self.begun} if self.begun else {}
        told["versions"] = self.versions
        if self.commit:
            told |= {"commit": self.commit, "is_changed": self.is_changed}
        return {**told, "machine": self.machine, "backends": list(self.backends)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Provenance:
        """Restore a provenance from the dictionary of `to_dict`; missing entries are empty.

        Raises
        ------
        AttributeError, TypeError, ValueError
            It is something else.
        """
        return cls(
            begun=str(stored.get("begun", "")),
            versions={str(k): str(v) for k, v in dict(stored.get("versions", {})).items()},
            commit=str(stored.get("commit", "")),
            is_changed=bool(stored.get("is_changed", False)),
            machine=dict(stored.get("machine", {})),
            backends=tuple(map(str, stored.get("backends", ()))),
        )


NOT_RECORDED = "measured before date, version and machine were recorded"
"""Shown for results without a provenance."""


class Stopwatch:
    """Records when a measurement starts and by which code; `provenance` completes the record."""

    def __init__(self) -> None:
        self._begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._commit, self._is_changed = _git_commit()

    def provenance(self) -> Provenance:
        """Return the provenance of the measurement, completed with versions and machine."""
        return Provenance(
            begun=self._begun,
            versions={"leakscope": __version__, **versions()},
            commit=self._commit,
            is_changed=self._is_changed,
            machine={"chip": _chip(), "n_cpus": os.cpu_count(), "device": _device()},
            backends=("torch", "openvino") if find_spec("openvino") else ("torch",),
        )


@lru_cache(maxsize=1)
def _git_commit(root: Path = ROOT) -> tuple[str, bool]:
    """Return this checkout's commit and whether files differ from it, or ("", False); cached."""
    if not (root / ".git").exists():
        return "", False
    with suppress(OSError, subprocess.SubprocessError):
        commit = _run_git(root, "rev-parse", "HEAD").strip()
        changes = _run_git(root, "status", "--porcelain", "--untracked-files=no")
        return commit[:_SHORT], bool(changes.strip())
    return "", False


def _run_git(root: Path, *arguments: str) -> str:
    """Run git in `root`, without the caller's GIT_* variables, and return its output."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", "--no-optional-locks", *arguments],
        cwd=root,
        env=own,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        timeout=_GIT_SECONDS,
    ).stdout


def _device() -> str:
    """Return the type of the device that PyTorch would use; "cpu" if PyTorch is not loaded."""
    if "torch" not in sys.modules:
        return "cpu"
    from leakscope.core.training.devices import pick_device

    return pick_device().type


def _chip() -> str:
    """Return the name of the graphics card in use, or else of the processor."""
    if _device() == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return _processor()


@lru_cache(maxsize=1)
def _processor() -> str:
    """Return the processor's model name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def describe_measured(found: Iterable[Provenance | None], *, otherwise: str = "") -> str:
    """Describe in words when, by which version and on what machines results were measured.

    Parameters
    ----------
    otherwise : str
        What to return if no provenance is known.

    Examples
    --------
    >>> one = Provenance(
    ...     "2026-03-01T12:00:00+00:00",
    ...     {"leakscope": "0.1.0"},
    ...     "0123abcd",
    ...     machine={"chip": "a chip", "n_cpus": 2, "device": "cpu"},
    ... )
    >>> describe_measured([one, None])
    'measured on 2026-03-01 by Leakscope 0.1.0 (commit 0123abcd) on 2 cores of a chip'
    >>> describe_measured([None])
    ''
    """
    told = [each for each in found if each is not None]
    if not told:
        return otherwise
    days = sorted({each.begun[:10] for each in told})
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    machines = _join_distinct(map(_describe_machine, told))
    return f"measured {when} by {_describe_code(told)} on {machines}"


def _join_distinct(parts: Iterable[str]) -> str:
    """Join the distinct ones of some strings by "and"."""
    return " and ".join(dict.fromkeys(parts))


def _describe_code(told: Sequence[Provenance]) -> str:
    """Describe the Leakscope versions of provenances in words, each with all of its commits.

    Examples
    --------
    >>> _describe_code(
    ...     [Provenance("", {"leakscope": "0.1.0"}, commit) for commit in ("0a", "1b", "0a")]
    ... )
    'Leakscope 0.1.0 (commits 0a and 1b)'
    """
    commits: dict[str, dict[str, None]] = {}
    for each in told:
        own = commits.setdefault(each.versions.get("leakscope", "of an unknown version"), {})
        if each.commit:
            own[each.commit[:8] + (", changed" if each.is_changed else "")] = None
    return _join_distinct(map(_describe_version, commits, commits.values()))


def _describe_version(version: str, commits: Iterable[str]) -> str:
    """Describe a Leakscope version with its commits in words."""
    own = list(commits)
    if not own:
        return f"Leakscope {version}"
    return f"Leakscope {version} (commit{'s' if len(own) > 1 else ''} {join_words(own)})"


def _describe_machine(each: Provenance) -> str:
    """Describe a provenance's machine: the graphics card, or the processor and its cores."""
    chip = str(each.machine.get("chip", "an unknown machine"))
    if each.machine.get("device") == "cuda":
        return chip
    return f"{each.machine.get('n_cpus', 'some')} cores of {chip}"
