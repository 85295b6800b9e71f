"""Statistics of deniability that are at hand for an encoder: shipped, or measured on this computer.

MiniLM's ship with the project. Any other white-box encoder's are measured once, when asked for,
and kept in the cache folder under the encoder's fingerprint.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from core.defences.deniability.geometry import measure_geometry
from core.defences.deniability.vocabulary import SHIPPED, measure_vocabulary, save_vocabulary
from core.defences.metric_dp.candidates import candidate_ids
from core.errors import CoreError
from core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from core.store import META, cache_dir, check_writable, read_record, write_json

__all__ = ["GEOMETRY", "find_statistics", "known_encoders", "measure_statistics"]

GEOMETRY = "geometry.json"
"""The file of distances among tokens, beside the statistics of the vocabulary."""

_SHARE_OF_COUNTING = 0.95
"""Of the time; the rest measures distances."""


def find_statistics(encoder: WhiteBoxEncoder) -> Path | None:
    """Return the folder with an encoder's statistics, or None where they must be measured."""
    is_bundled = ":" not in encoder.name
    folders = [SHIPPED / encoder.name] if is_bundled else []
    return next((f for f in (*folders, _folder(encoder)) if (f / META).exists()), None)


def measure_statistics(
    encoder: WhiteBoxEncoder,
    *,
    n_draws: int = 1000,
    seeds: tuple[int, ...] = (0, 1, 2),
    n_threads: int | None = None,
    on_progress: OnProgress = no_progress,
) -> Path:
    """Measure the vocabulary and the geometry of an encoder and keep them; return their folder.

    Parameters
    ----------
    seeds : tuple of int
        One set of draws each: the spread of the vocabulary's means comes from them.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop; nothing is kept.
    StorageError
        The cache folder cannot be written, which is told before the work.
    """
    folder = _folder(encoder)
    check_writable(folder.parent)
    vocabulary = measure_vocabulary(
        encoder,
        n_draws=n_draws,
        seeds=seeds,
        n_threads=n_threads,
        on_progress=lambda done, what: on_progress(_SHARE_OF_COUNTING * done, f"Counting: {what}"),
    )
    geometry = measure_geometry(
        encoder,
        candidate_ids(encoder),
        on_progress=lambda done, what: on_progress(
            _SHARE_OF_COUNTING + (1 - _SHARE_OF_COUNTING) * done, f"Measuring distances: {what}"
        ),
    )
    write_json(folder / GEOMETRY, asdict(geometry))
    save_vocabulary(folder, vocabulary)
    return folder


def known_encoders() -> list[str]:
    """Return the names of the encoders measured on this computer, ascending."""
    names = set()
    for path in cache_dir("deniability").glob(f"*/{META}"):
        try:
            names.add(str(read_record(path, encoder=str)["encoder"]))
        except CoreError:
            continue
    return sorted(names)


def _folder(encoder: WhiteBoxEncoder) -> Path:
    return cache_dir("deniability", encoder.fingerprint[:32])
