"""A local store is copied first, and the copy is read: opening some stores writes to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.audit.sources.protocol import refusal


@contextmanager
def copy_of(label: str, path: Path) -> Iterator[Path]:
    """Give a copy of a store's file or folder, which is removed at the end.

    The copy is private to this user. Links are not followed out of the store.

    Raises
    ------
    InvalidInputError
        There is no such store, it changed while it was copied, or the disk has no room for it.
    """
    if not path.exists():
        raise refusal(label, "does not exist. Check the path.")
    if link := next((file for file in path.rglob("*") if file.is_symlink()), None):
        raise refusal(
            label,
            f"holds a link ({link.name}), through which the store itself would be written to. Copy "
            "the store to a folder without links, as `cp -rL` does, and audit that.",
        )
    before = _state(path)
    size = sum(n for _, n, _ in before)
    with tempfile.TemporaryDirectory(prefix="leakscope-audit-") as folder:
        free = shutil.disk_usage(folder).free
        if size > 0.9 * free:
            raise refusal(
                label,
                f"is copied before it is read, and its {size / 1e9:,.1f} GB do not fit into "
                f"{folder}, which has {free / 1e9:,.1f} GB left. Set TMPDIR to a larger disk.",
            )
        target = Path(folder, path.name)
        try:
            if path.is_dir():
                shutil.copytree(path, target, symlinks=True)
            else:
                shutil.copyfile(path, target)
        except (OSError, shutil.Error) as error:
            reason = error.strerror or "files vanished"
            raise refusal(
                label, f"could not be copied ({reason}). Stop what writes to it, and try again."
            ) from error
        if _state(path) != before:
            raise refusal(
                label,
                "changed while it was copied, so the copy mixes two states. Stop what writes to "
                "it, or audit a backup.",
            )
        yield target


def _state(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of every file of a store."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            facts = file.lstat()
        except FileNotFoundError:  # removed meanwhile: the two states will differ
            continue
        if not file.is_dir():
            found.append((str(file), facts.st_size, facts.st_mtime_ns))
    return found
