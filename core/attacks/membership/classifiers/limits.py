"""How much of a classifier's answers is read: light to import, as helps name it."""

from __future__ import annotations

__all__ = ["MOST_CELLS", "MOST_UPLOADED_CELLS", "rows_said"]

MOST_CELLS = 100_000_000
"""Probabilities that are read: 0.8 GB, twice while they are put together."""

MOST_UPLOADED_CELLS = 20_000_000
"""Probabilities of an upload that are read: 160 MB."""


def rows_said(most_cells: int, n_classes: int) -> str:
    """Return how many rows of so many classes are read.

    Examples
    --------
    >>> rows_said(20_000_000, 10_000)
    '2,000 rows of 10,000 classes'
    """
    return f"{most_cells // n_classes:,} rows of {n_classes:,} classes"
