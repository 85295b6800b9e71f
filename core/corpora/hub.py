"""Load datasets of the Hugging Face hub, through the optional `datasets` package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from leakscope.core.corpora.documents import Corpus
from leakscope.core.corpora.guess import SAMPLE_ROWS, guess_note, longest_text_column
from leakscope.core.corpora.rows import Columns, Row, check_rows, make_row, rows_to_documents
from leakscope.core.errors import (
    CoreError,
    InvalidInputError,
    MissingDependencyError,
    ModelUnavailableError,
    install,
)

_REFERENCE = re.compile(r"([\w.-]{1,96}/[\w.-]{1,96})(?::([\w.-]*))?(?::([\w.-]+))?")


def load_hub(reference: str, *, columns: Columns | None = None, limit: int | None = None) -> Corpus:
    """Stream up to `limit` rows of a Hugging Face dataset and return them as a corpus.

    Code that comes with a dataset is never run: `datasets` does so only where it is asked to
    trust it, and here it is not.

    Parameters
    ----------
    reference : str
        OWNER/NAME, OWNER/NAME:CONFIG or OWNER/NAME:CONFIG:SPLIT; CONFIG may be empty, the split
        is `train` by default. The owner is needed, since a bare name can also mean a reader of
        local files, one of which unpickles.
    columns : Columns, optional
        The longest text column by default, with `label` and `author` where they exist.

    Raises
    ------
    MissingDependencyError
        The `datasets` package is not installed.
    ModelUnavailableError
        The hub cannot be reached, or has no such dataset, configuration or split.
    InvalidInputError
        The reference, a column or a row cannot be used.
    """
    name, config, split = _parse_reference(reference)
    source, columns = f"hub:{reference}", columns or Columns()
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDependencyError(
            f"{source} needs the `datasets` package: {install('datasets')}"
        ) from error
    try:
        dataset = load_dataset(name, config, split=split, streaming=True)
        columns, notes, records = _choose_text_column(source, dataset, columns)
        rows = _make_rows(source, dataset, records, columns)
        documents = rows_to_documents(source, check_rows(source, rows, columns, limit), columns)
    except CoreError:
        raise
    except Exception as error:  # what a reader, a download or a server raises is not one family
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ModelUnavailableError(
            f"{source} could not be loaded: {reason}. Check the name, the configuration, the split "
            "and the network; `bundled` always works offline."
        ) from error
    return Corpus(source, documents, licence=_licence(dataset), notes=notes)


def _parse_reference(reference: str) -> tuple[str, str | None, str]:
    """Split OWNER/NAME[:CONFIG][:SPLIT] into name, configuration (or None) and split."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise InvalidInputError(
            f"hub: takes OWNER/NAME[:CONFIG][:SPLIT], such as stanfordnlp/imdb::test, got "
            f"{reference!r}."
        )
    name, config, split = match.groups()
    if Path(name).exists():
        raise InvalidInputError(
            f"hub:{name} is a local path here. Name a file in it instead, without `hub:`."
        )
    return name, config or None, split or "train"


def _choose_text_column(
    source: str, dataset: Any, columns: Columns
) -> tuple[Columns, tuple[str, ...], Iterator[Mapping[str, Any]]]:
    """Read first records to choose the text column; return columns, notes and all records."""
    records = iter(dataset)
    if columns.text is not None:
        return columns, (), records
    first = list(islice(records, SAMPLE_ROWS))
    names = list(first[0]) if first else []
    text = longest_text_column(names, ([record[name] for name in names] for record in first))
    columns = replace(columns, text=text or "text")
    notes = (guess_note(source, text),) if text and len(names) > 1 else ()
    return columns, notes, chain(first, records)


def _make_rows(
    source: str, dataset: Any, records: Iterator[Mapping[str, Any]], columns: Columns
) -> Iterator[Row]:
    """Yield the dataset's records as rows, with class numbers replaced by class names."""
    features: Mapping[str, Any] = dataset.features or {}
    chosen: dict[str, str] = {}
    for number, record in enumerate(records, 1):
        chosen = chosen or columns.resolve(source, list(record))
        values = {
            role: _class_name(features.get(column), record[column])
            for role, column in chosen.items()
        }
        yield make_row(f"row {number}", values)


def _class_name(feature: Any, value: Any) -> Any:
    """Return a class number's name, None for -1; return any other value unchanged."""
    if not hasattr(feature, "int2str") or not isinstance(value, int):
        return value
    return feature.int2str(value) if value >= 0 else None


def _licence(dataset: Any) -> str:
    """Return the dataset's licence, or a pointer to its page."""
    info = getattr(dataset, "info", None)
    return getattr(info, "license", None) or "see the dataset's page"
