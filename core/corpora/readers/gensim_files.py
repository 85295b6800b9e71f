"""Locate and verify data files shipped in the gensim package, without importing it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from leakscope.core.errors import ArtifactError, MissingDependencyError, install
from leakscope.core.storage.artifacts import digest_file


def gensim_file(name: str, sha256: str) -> Path:
    """Find one of gensim's test files and check its SHA-256; return its path.

    Importing gensim takes about a second and is not needed to find a file.

    Raises
    ------
    MissingDependencyError
        gensim is not installed.
    ArtifactError
        The file is missing, truncated or altered; the message names it.
    """
    spec = find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            f"The bundled texts come with gensim ({name}), which is not installed: "
            + install("gensim")
        )
    path = Path(spec.submodule_search_locations[0], "test", "test_data", name)
    remedy = f"Install it again: {install('gensim', is_there=True)}"
    if not path.is_file():
        raise ArtifactError(f"{path} is missing. {remedy}")
    if digest_file(path) != sha256:
        raise ArtifactError(
            f"{path} is truncated or was altered: its SHA-256 is not the one expected. {remedy}"
        )
    return path
