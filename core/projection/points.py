"""The texts of a map, with the columns that can colour them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import load_corpus
from leakscope.core.corpora.documents import digest_fields
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import is_table, read_upload

Column = tuple[str | None, ...]

_COLLECTIONS = {"lee": "news (Lee)", "wikipedia": "Wikipedia"}
"""Readable names of the bundled corpora's parts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """The texts of a map and their columns, and how they were sampled.

    Attributes
    ----------
    name : str
        Name of the corpus or the file.
    unit : str
        What one text is: `sentence` or `row`.
    texts : tuple of str
    columns : mapping
        By name, a value for each text or None.
    n_available : int
        Texts in the source, `texts` being all of them or a sample drawn by `seed`.
    is_cut : bool
        The source has more rows than were read.
    n_empty : int
        Rows of the source without a text, left out of all counts.
    is_private : bool
        Uploaded: nothing of it may be written to disk.
    """

    name: str
    unit: str
    texts: tuple[str, ...]
    columns: Mapping[str, Column]
    n_available: int
    seed: int = 0
    is_cut: bool = False
    n_empty: int = 0
    is_private: bool = False

    def __len__(self) -> int:
        """Return the number of texts drawn."""
        return len(self.texts)

    @property
    def content_hash(self) -> str:
        """The SHA-256 of the texts, in order."""
        return digest_fields(self.texts)

    @property
    def description(self) -> str:
        """The number of texts shown, of how many, and how they were sampled, in words.

        Examples
        --------
        >>> Points(name="x", unit="row", texts=("a",), columns={}, n_available=9).description
        '1 of 9 rows, chosen at random (seed 0)'
        """
        n, unit = len(self.texts), f"{self.unit}s"
        cut = f" (the first {self.n_available:,} rows of a longer file)" if self.is_cut else ""
        if self.n_empty:
            cut += f" ({self.n_empty:,} rows without a text were skipped)"
        if n == self.n_available:
            return f"All {n:,} {unit}{cut}"
        return f"{n:,} of {self.n_available:,} {unit}{cut}, chosen at random (seed {self.seed})"


def corpus_points(name: str, n: int, *, seed: int = 0, is_private: bool = False) -> Points:
    """Load a corpus and draw n of its sentences, with their columns, without replacement.

    Columns: `document`, with `class` (of the bundled corpora, `collection`) and `author` where
    the corpus knows them, and `words`.

    Raises
    ------
    CoreError
        As `load_corpus`.
    """
    found = load_corpus(name).sentences()
    part = found.take(sample_rows(len(found), n, seed=seed).tolist())
    of_label = "collection" if name == "bundled" else "class"
    labels = tuple(_COLLECTIONS.get(c or "", c) for c in part.labels)
    columns: dict[str, Column] = {of_label: labels, "author": part.authors}
    columns = {k: v for k, v in columns.items() if any(c is not None for c in v)}
    # Document numbers are names, not quantities.
    columns["document"] = tuple(f"{name} {i}" if i.isdigit() else i for i in part.document_ids)
    columns["words"] = _word_counts(part.texts)
    return Points(
        name=name,
        unit="sentence",
        texts=part.texts,
        columns=columns,
        n_available=len(found),
        seed=seed,
        is_private=is_private,
    )


def upload_points(
    file: MemoryFile,
    n: int,
    *,
    text: str | None = None,
    others: tuple[str, ...] = (),
    seed: int = 0,
) -> Points:
    """Read an uploaded file and draw n of its rows, with their columns, without replacement.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used; the message names the remedy. Rows without a
        text are skipped and counted.
    """
    others = tuple(c for c in others if c != text) if is_table(file) else ()
    rows, is_cut, n_empty = read_upload(file, text=text, others=others, wanted=n)
    kept = [rows[i] for i in sample_rows(len(rows), n, seed=seed)]
    texts = tuple(row.text for row in kept)
    columns = {name: tuple(row.others[i] for row in kept) for i, name in enumerate(others)}
    columns.setdefault("words", _word_counts(texts))
    return Points(
        name=file.name,
        unit="row" if is_table(file) else "line",
        texts=texts,
        columns=columns,
        n_available=len(rows),
        seed=seed,
        is_cut=is_cut,
        n_empty=n_empty,
        is_private=True,
    )


def sample_rows(n_available: int, n: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Draw n row numbers without replacement, in ascending order; all if there are fewer."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(n_available, size=min(n_available, n), replace=False)
    return np.sort(rows).astype(np.int64)


def _word_counts(texts: Sequence[str]) -> Column:
    """Return a column of the number of words of each text, as strings."""
    return tuple(str(len(text.split())) for text in texts)
