"""Compiled loops: `from leakscope.core.compiled import njit` in place of numba's own import.

Numba keeps machine code beside the source or in a folder of its own, and looks only at the file of
a function to tell whether it is stale. Here it lies with all that Leakscope derives, in a folder
named by the source of every compiled loop: an installation that cannot be written to keeps it too,
and a change in a loop that others call recompiles them.

Numba reads its index by unpickling, which runs what is in it: machine code is kept only in a folder
that is the user's and that nobody else can write to. Elsewhere each process compiles for itself.
"""

from __future__ import annotations

import atexit
import hashlib
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numba
from numba import njit as njit

from leakscope.core.assets import ROOT
from leakscope.core.storage.atomic_files import is_safe, make_folder
from leakscope.core.storage.cache_folder import cache_dir

_CORE = ROOT / "core"
_MARK = b"from leakscope.core.compiled import"


def machine_code_folder() -> Path:
    """Return the folder for numba's compiled code, named by a hash of the compiled sources."""
    digest = hashlib.sha256()
    for path in sorted(_CORE.rglob("*.py")):
        source = path.read_bytes()
        if _MARK in source:
            digest.update(source)
    return cache_dir("compiled", digest.hexdigest()[:16])


def safe_folder(given: str) -> Path:
    """Return the given or default code folder, or a temporary one if others can write to it.

    Parameters
    ----------
    given : str
        What $NUMBA_CACHE_DIR names; empty for none.
    """
    folder = Path(given) if given else machine_code_folder()
    with suppress(OSError):
        make_folder(folder)
    if is_safe(folder):
        return folder
    warnings.warn(
        f"Machine code is not kept: {folder} does not exist, or is not yours alone, and what "
        "others put there would be run. Compiling takes seconds in each process. To keep it, name "
        "a folder of your own, with none above it that others may write to, in LEAKSCOPE_HOME.",
        stacklevel=2,
    )
    own = tempfile.TemporaryDirectory(prefix="leakscope-")
    atexit.register(own.cleanup)
    return Path(own.name)


numba.config.CACHE_DIR = str(safe_folder(numba.config.CACHE_DIR))  # type: ignore[attr-defined]
