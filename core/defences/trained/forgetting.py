"""What is left on disk of a training that ran away: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.store import META, clear_leftovers
from core.training.adversary import DivergedError

__all__ = ["forget_if_diverged"]


@contextmanager
def forget_if_diverged(checkpoint_dir: str | None) -> Iterator[None]:
    """Remove the checkpoint of a run that diverges inside: it would only diverge again."""
    try:
        yield
    except DivergedError:
        if checkpoint_dir is not None:
            folder = Path(checkpoint_dir)
            (folder / META).unlink(missing_ok=True)
            if folder.is_dir():
                clear_leftovers(folder)
        raise
