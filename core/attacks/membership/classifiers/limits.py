"""Limits on the size of a classifier's outputs, in a module that is quick to import."""

from __future__ import annotations

MOST_CELLS = 100_000_000
"""The most probabilities that are read: 0.8 GB, doubled while they are assembled."""

MOST_UPLOADED_CELLS = 20_000_000
"""The most probabilities of an upload that are read: 160 MB."""


def describe_rows(most_cells: int, n_classes: int) -> str:
    """Format the number of rows of n classes that a limit on probabilities allows, in words.

    Examples
    --------
    >>> describe_rows(20_000_000, 10_000)
    '2,000 rows of 10,000 classes'
    """
    return f"{most_cells // n_classes:,} rows of {n_classes:,} classes"
