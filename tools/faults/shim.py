"""The C library that counts file operations and makes one fail: built, loaded and armed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

KINDS = {"error": 1, "kill": 2, "full disk": 3, "short write": 4, "torn write": 5}
"""How an operation fails: the numbers of shim.c.

An error ends the operation alone; a full disk stays full; a short write takes half of what it is
given and says so; a torn write takes half, and the process is killed.
"""

_OF_WRITES = ("short write", "torn write")
_TAKES_NO_SPACE = ("read", "unlink", "rmdir", "chmod", "rename", "link", "truncate")


@dataclass(frozen=True)
class Operation:
    """One file operation, and the file that it acts on."""

    what: str
    path: str

    def can(self, kind: str) -> bool:
        """Return whether this operation can fail by a kind of fault."""
        if kind in _OF_WRITES:
            return self.what == "write"
        return kind != "full disk" or self.what not in _TAKES_NO_SPACE


class Shim:
    """The fault-injection library as loaded into this process.

    Raises
    ------
    OSError
        This process was started without it.
    """

    def __init__(self) -> None:
        loaded = ctypes.CDLL(None)
        if not hasattr(loaded, "faults_arm"):
            raise OSError("The library of faults is not loaded: start with LD_PRELOAD.")
        self._arm = loaded.faults_arm
        self._arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long]
        self._log = loaded.faults_log
        self._log.restype = ctypes.c_char_p

    def arm(self, folder: Path, kind: str = "", at: int = 0) -> None:
        """Start counting file operations below a folder; make operation `at` (from 1) fail."""
        self._arm(f"{folder}".encode(), KINDS.get(kind, 0), at)

    def log(self) -> list[Operation]:
        """Return the file operations counted since `arm`."""
        lines = self._log().decode(errors="replace").splitlines()
        return [Operation(*line.split(" ", 1)) for line in lines]


def why_not() -> str:
    """Return why faults cannot be injected on this machine; "" if they can."""
    if not sys.platform.startswith("linux"):
        return "faults of the disk are made on Linux alone"
    if shutil.which("cc") is None:
        return "faults of the disk need a C compiler (cc)"
    return ""


def build(folder: Path) -> Path:
    """Compile the fault-injection library into a folder and return its path."""
    built = folder / "faults.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", built, source, "-ldl"],
        check=True,
        capture_output=True,
        text=True,
    )
    return built
