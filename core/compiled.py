"""Compiled loops: `from core.compiled import njit` in place of numba's own import.

Numba keeps machine code beside the source or in a folder of its own, and looks only at the file of
a function to tell whether it is stale. Here it lies with all that Leakscope derives, in a folder
named by the source of every compiled loop: an installation that cannot be written to keeps it too,
and a change in a loop that others call compiles them anew.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import numba
from numba import njit

from core.assets import ROOT
from core.cache_folder import cache_dir
from core.durable import make_folder

__all__ = ["machine_code_folder", "njit"]

_CORE = ROOT / "core"
_MARK = b"from core.compiled import"


def machine_code_folder() -> Path:
    """Return where the machine code of today's sources is kept."""
    digest = hashlib.sha256()
    for path in sorted(_CORE.rglob("*.py")):
        source = path.read_bytes()
        if _MARK in source:
            digest.update(source)
    return cache_dir("compiled", digest.hexdigest()[:16])


if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]  # $NUMBA_CACHE_DIR, where given
    with suppress(OSError):  # Numba then says so
        make_folder(machine_code_folder())
    numba.config.CACHE_DIR = str(machine_code_folder())  # type: ignore[attr-defined]
