"""Corpora: loaded by a name or a path.

`load_corpus` opens one; CORPORA lists the sources. A corpus is documents in a fixed order with a
content hash; sentences, paragraphs and splits are taken from it. Reading order: documents,
sentences, passages, splits; then one module per source: lee, wikipedia, nltk_corpora, files (with
raw_files, rows, tables), hub.

Importing this package is cheap: a source's libraries are imported when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import Corpus, check_limit
from leakscope.core.corpora.passages import Paragraph, Sentences
from leakscope.core.corpora.rows import Columns
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.errors import ArtifactError, InvalidInputError

__all__ = [
    "CORPORA",
    "Columns",
    "Corpus",
    "CorpusSource",
    "Document",
    "Paragraph",
    "Sentences",
    "bundled_sentences",
    "check_source",
    "load_bundled",
    "load_corpus",
    "split_reference",
    "split_sentences",
]


@dataclass(frozen=True)
class CorpusSource:
    """A kind of corpus source: title, licence, and the function that loads it."""

    title: str
    summary: str
    licence: str
    path: str
    """module:function, imported only when used."""

    argument: str = ""
    """What follows the name and a colon; empty if nothing does."""

    has_columns: bool = False

    @property
    def load(self) -> Callable[..., Corpus]:
        """The function that loads the corpus, imported on first use."""
        module, _, name = self.path.partition(":")
        loaded: Callable[..., Corpus] = getattr(import_module(module), name)
        return loaded


CORPORA: dict[str, CorpusSource] = {
    "bundled": CorpusSource(
        "News and encyclopaedia",
        "lee and wikipedia together, about 18,000 sentences, works offline",
        "research use; CC BY-SA 3.0",
        "leakscope.core.corpora:load_bundled",
    ),
    "lee": CorpusSource(
        "News (Lee)",
        "300 short news items of 2000 to 2001, works offline",
        "no licence stated; for research",
        "leakscope.core.corpora.lee:load_lee",
    ),
    "wikipedia": CorpusSource(
        "Wikipedia extract",
        "about 100 English articles of April 2016, works offline",
        "CC BY-SA 3.0",
        "leakscope.core.corpora.wikipedia:load_wikipedia",
    ),
    "nltk": CorpusSource(
        "NLTK corpus",
        "nltk:NAME, such as nltk:brown, from the data that NLTK finds on this machine",
        "by corpus",
        "leakscope.core.corpora.nltk_corpora:load_nltk",
        argument="NAME",
    ),
    "hub": CorpusSource(
        "Hugging Face dataset",
        "hub:OWNER/NAME[:CONFIG][:SPLIT], streamed; needs the `datasets` package",
        "by dataset",
        "leakscope.core.corpora.hub:load_hub",
        argument="OWNER/NAME",
        has_columns=True,
    ),
    "file": CorpusSource(
        "Your own file",
        "a path: one text per line, or CSV, TSV, JSON, JSONL or Parquet with a column of texts",
        "your own",
        "leakscope.core.corpora.files:load_file",
        argument="PATH",
        has_columns=True,
    ),
}


def load_corpus(
    name_or_path: str | Path,
    *,
    columns: Columns | None = None,
    limit: int | None = None,
    content_hash: str | None = None,
) -> Corpus:
    """Load a corpus by reference: `bundled`, `lee`, `wikipedia`, `nltk:…`, `hub:…` or a path.

    A file called like a source is read as `./lee`. `PATH#COLUMN` names the column of the texts,
    where `columns` names none.

    Parameters
    ----------
    columns : Columns, optional
        Column roles of a file or a hub dataset.
    limit : int, optional
        Number of documents (rows, in a table) read, from the first.
    content_hash : str, optional
        The `content_hash` that the corpus had when it was used before.

    Raises
    ------
    InvalidInputError
        No such source or file, or one that cannot be used; the message says what is wrong.
    ArtifactError
        Damaged data, or a content other than `content_hash` tells.
    MissingDependencyError, ModelUnavailableError
        A package or data that is not here; the message tells how to get it.
    """
    check_limit(limit)
    if isinstance(name_or_path, str):
        name_or_path, column = split_reference(name_or_path)
        if column is not None:
            columns = columns or Columns()
            columns = replace(columns, text=columns.text or column)
    source, argument = _find_source(name_or_path)
    if columns is not None:
        _check_columns(name_or_path, source)
    if not source.argument:
        corpus = source.load().head(limit)
    elif source.has_columns:
        corpus = source.load(argument, columns=columns, limit=limit)
    else:
        corpus = source.load(argument, limit=limit)
    if content_hash is not None and corpus.content_hash != content_hash:
        raise ArtifactError(
            f"Corpus {name_or_path} was altered: its content hash is {corpus.content_hash}, not "
            f"{content_hash}. Restore it, or start again with its present content."
        )
    return corpus


def split_reference(reference: str) -> tuple[str, str | None]:
    """Split a corpus reference `NAME#COLUMN` into the name or path, and the column or None.

    Examples
    --------
    >>> split_reference("news.csv#body"), split_reference("lee")
    (('news.csv', 'body'), ('lee', None))
    """
    name, _, column = reference.rpartition("#")
    if not name or not column or _exists(reference):
        return reference, None
    return name, column


def check_source(reference: str, columns: Columns | None = None) -> Path | None:
    """Check a corpus reference without reading it; return a file's path, None for other sources.

    Raises
    ------
    InvalidInputError
        No such corpus, or columns of one that has none.
    """
    name, column = split_reference(reference)
    source, argument = _find_source(name)
    if column is not None or columns not in (None, Columns()):
        _check_columns(name, source)
    return Path(argument) if source is CORPORA["file"] else None


def _check_columns(name: str | Path, source: CorpusSource) -> None:
    """Raise InvalidInputError if columns were named for a source that has none."""
    if not source.has_columns:
        raise InvalidInputError(
            f"columns are for files and datasets of the hub; leave them out for {name}."
        )


def _find_source(name_or_path: str | Path) -> tuple[CorpusSource, Any]:
    """Return the CorpusSource of a name or path, and the argument for its loader."""
    if isinstance(name_or_path, Path):
        return CORPORA["file"], name_or_path
    name, colon, argument = name_or_path.partition(":")
    source = CORPORA.get(name)
    if source is not None and bool(colon) == bool(source.argument):
        return source, argument
    if source is None and _exists(name_or_path):
        return CORPORA["file"], name_or_path
    known = ", ".join(f"{n}:{s.argument}" if s.argument else n for n, s in CORPORA.items())
    raise InvalidInputError(
        f"corpus must be one of {known}, or the path of an existing file, got {name_or_path!r}."
    )


def _exists(path: str) -> bool:
    """Return whether a path exists; False if it is not a valid path."""
    try:
        return bool(path) and Path(path).exists()
    except OSError:  # a name too long for a file
        return False


def load_bundled() -> Corpus:
    """Load the Lee and Wikipedia corpora joined as one, with their names as labels."""
    parts = {name: CORPORA[name].load() for name in ("lee", "wikipedia")}
    read = tuple(part.content_hash for part in parts.values())
    if read not in _JOINED:
        documents = [
            replace(document, id=f"{name}/{document.id}", label=name)
            for name, part in parts.items()
            for document in part.documents
        ]
        _JOINED[read] = Corpus("bundled", tuple(documents), licence=CORPORA["bundled"].licence)
    return _JOINED[read]


_JOINED: dict[tuple[str, ...], Corpus] = {}
"""Cache of the joined corpus by its parts' hashes; splitting its sentences takes a second."""


@cache
def _load_bundled_sentences() -> tuple[str, ...]:
    """Load the bundled corpora's sentences of 8 to 40 words, once per process."""
    return load_bundled().texts


def bundled_sentences() -> list[str]:
    """Load the bundled corpora; return their sentences of 8 to 40 words as a list."""
    return list(_load_bundled_sentences())
