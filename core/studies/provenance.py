"""When a cell was measured, by what and on what machine: beside the result, not in its key."""

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

from core import __version__
from core.assets import ROOT
from core.said import in_a_row
from core.training.record import versions

__all__ = ["EARLIER", "Provenance", "Stopwatch", "measured_said"]

_GIT_SECONDS = 10.0
_SHORT = 12


@dataclass(frozen=True)
class Provenance:
    """Where a measurement comes from.

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
    is_earlier : bool
        A version measured it that recorded none of this.
    """

    begun: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    is_changed: bool = False
    machine: dict[str, Any] = field(default_factory=dict)
    backends: tuple[str, ...] = ()
    is_earlier: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        if self.is_earlier:
            return {"is_earlier": True}
        told: dict[str, Any] = {"begun": self.begun} if self.begun else {}
        told["versions"] = self.versions
        if self.commit:
            told |= {"commit": self.commit, "is_changed": self.is_changed}
        return {**told, "machine": self.machine, "backends": list(self.backends)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Provenance:
        """Restore what `to_dict` returned; what it does not hold stays empty.

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
            is_earlier=bool(stored.get("is_earlier", False)),
        )


EARLIER = Provenance(is_earlier=True)


class Stopwatch:
    """Notes when a measurement begins, and by which code; `provenance` tells it at the end."""

    def __init__(self) -> None:
        self._begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._commit, self._is_changed = _checkout()

    def provenance(self) -> Provenance:
        """Return where a measurement comes from that ends now."""
        return Provenance(
            begun=self._begun,
            versions={"leakscope": __version__, **versions()},
            commit=self._commit,
            is_changed=self._is_changed,
            machine={"chip": _chip(), "n_cpus": os.cpu_count(), "device": _device()},
            backends=("torch", "openvino") if find_spec("openvino") else ("torch",),
        )


@lru_cache(maxsize=1)
def _checkout(root: Path = ROOT) -> tuple[str, bool]:
    """Return the commit of the checkout that this is, as it was when first asked."""
    if not (root / ".git").exists():
        return "", False
    with suppress(OSError, subprocess.SubprocessError):
        commit = _git(root, "rev-parse", "HEAD").strip()
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
        return commit[:_SHORT], bool(changes.strip())
    return "", False


def _git(root: Path, *arguments: str) -> str:
    """Return what git answers; a variable of another repository does not mislead it."""
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
    """Return what computes where nothing else is asked for; without PyTorch, the processor."""
    if "torch" not in sys.modules:
        return "cpu"
    from core.training.devices import pick_device

    return pick_device().type


def _chip() -> str:
    """Return the name of the graphics card that computes, or of the processor."""
    if _device() == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return _processor()


@lru_cache(maxsize=1)
def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def measured_said(found: Iterable[Provenance | None], *, otherwise: str = "") -> str:
    """Return when, by what and on what measurements were made, in half a sentence.

    Parameters
    ----------
    otherwise : str
        What to return where none of them tells.

    Examples
    --------
    >>> one = Provenance(
    ...     "2026-03-01T12:00:00+00:00",
    ...     {"leakscope": "0.1.0"},
    ...     "0123abcd",
    ...     machine={"chip": "a chip", "n_cpus": 2, "device": "cpu"},
    ... )
    >>> measured_said([one, None])
    'measured on 2026-03-01 by Leakscope 0.1.0 (commit 0123abcd) on 2 cores of a chip'
    >>> measured_said([EARLIER])
    'measured by an earlier version, which did not record when'
    >>> measured_said([None])
    ''
    """
    known = [each for each in found if each is not None]
    told = [each for each in known if not each.is_earlier]
    if not told:
        return "measured by an earlier version, which did not record when" if known else otherwise
    days = sorted({each.begun[:10] for each in told})
    said = f"measured {_span(days)} by {_code_said(told)}"
    said += f" on {_joined(map(_machine_said, told))}"
    return said + ("; in part by an earlier version" if len(told) < len(known) else "")


def _span(days: Sequence[str]) -> str:
    return f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"


def _joined(parts: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(parts))


def _code_said(told: Sequence[Provenance]) -> str:
    """Return each version with all of its commits.

    Examples
    --------
    >>> _code_said(
    ...     [Provenance("", {"leakscope": "0.1.0"}, commit) for commit in ("0a", "1b", "0a")]
    ... )
    'Leakscope 0.1.0 (commits 0a and 1b)'
    """
    commits: dict[str, dict[str, None]] = {}
    for each in told:
        own = commits.setdefault(each.versions.get("leakscope", "of an unknown version"), {})
        if each.commit:
            own[each.commit[:8] + (", changed" if each.is_changed else "")] = None
    return _joined(map(_version_said, commits, commits.values()))


def _version_said(version: str, commits: Iterable[str]) -> str:
    own = list(commits)
    if not own:
        return f"Leakscope {version}"
    return f"Leakscope {version} (commit{'s' if len(own) > 1 else ''} {in_a_row(own)})"


def _machine_said(each: Provenance) -> str:
    chip = str(each.machine.get("chip", "an unknown machine"))
    if each.machine.get("device") == "cuda":
        return chip
    return f"{each.machine.get('n_cpus', 'some')} cores of {chip}"
