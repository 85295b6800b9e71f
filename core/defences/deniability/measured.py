"""Deniability statistics that exist for an encoder: shipped, or measured on this computer.

MiniLM's ship with the project. Those of other white-box encoders are measured once, on request, and
stored in the cache folder under the encoder's fingerprint.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from leakscope.core.defences.deniability.geometry import measure_geometry
from leakscope.core.defences.deniability.vocabulary import (
    SHIPPED,
    measure_vocabulary,
    save_vocabulary,
)
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import CoreError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import META, check_writable, read_record, write_json
from leakscope.core.storage.cache_folder import cache_dir

GEOMETRY = "geometry.json"
"""File of the distances between tokens, beside the vocabulary's statistics."""

_SHARE_OF_COUNTING = 0.95
"""Share of the time for counting; the rest measures distances."""


def find_statistics(encoder: WhiteBoxEncoder) -> Path | None:
    """Return the folder of an encoder's stored deniability statistics; None if there is none."""
    is_bundled = ":" not in encoder.name
    folders = [SHIPPED / encoder.name] if is_bundled else []
    return next((f for f in (*folders, _cache_folder(encoder)) if (f / META).exists()), None)


def measure_statistics(
    encoder: WhiteBoxEncoder,
    *,
    n_draws: int = 1000,
    seeds: tuple[int, ...] = (0, 1, 2),
    n_threads: int | None = None,
    on_progress: OnProgress = no_progress,
) -> Path:
    """Measure and store an encoder's deniability and token distances; return their folder.

    Parameters
    ----------
    seeds : tuple of int
        One set of draws each: the spread of the vocabulary's means comes from them.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop; nothing is stored.
    StorageError
        The cache folder cannot be written; raised before the work.
    """
    folder = _cache_folder(encoder)
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


def measure_encoder(on: EncoderSpec, on_progress: OnProgress = no_progress) -> None:
    """Load the encoder of a spec, measure its deniability statistics and store them on disk.

    Raises
    ------
    InvalidInputError
        The encoder is closed: its tokens cannot be measured.
    """
    on_progress(0.0, "Loading the encoder")
    encoder = require_white_box(shared_encoder(on), "Deniability")
    measure_statistics(encoder, on_progress=on_progress)


def known_encoders() -> list[str]:
    """Read the cache; return the sorted names of the encoders measured on this computer."""
    names = set()
    for path in cache_dir("deniability").glob(f"*/{META}"):
        try:
            names.add(str(read_record(path, encoder=str)["encoder"]))
        except CoreError:
            continue
    return sorted(names)


def _cache_folder(encoder: WhiteBoxEncoder) -> Path:
    """Return the path of the cache folder for an encoder's deniability statistics."""
    return cache_dir("deniability", encoder.fingerprint[:32])
