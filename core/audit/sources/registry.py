"""Registry of the kinds of vector sources, and the parser of source references."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leakscope.core.audit.sources.protocol import VectorSource, refusal
from leakscope.core.corpora.readers.memory_file import File, MemoryFile
from leakscope.core.corpora.readers.raw_files import PICKLES
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.registry import Entry


@dataclass(frozen=True)
class SourceEntry(Entry):
    """Registry entry of a kind of vector source."""

    endings: tuple[str, ...] = ()
    """File extensions of this kind."""
    example: str = ""
    """An example of a reference."""

    @property
    def is_file(self) -> bool:
        """Whether the source is a file, which can also be uploaded."""
        return bool(self.endings)


_HERE = "leakscope.core.audit.sources"

SOURCES: dict[str, SourceEntry] = {
    "npy": SourceEntry(
        "NumPy array",
        "A matrix with one vector per row.",
        "NumPy",
        f"{_HERE}.arrays:NpySource",
        (".npy",),
        "vectors.npy",
    ),
    "npz": SourceEntry(
        "NumPy archive",
        "One of several arrays.",
        "NumPy",
        f"{_HERE}.arrays:NpzSource",
        (".npz",),
        "vectors.npz#embeddings",
    ),
    "safetensors": SourceEntry(
        "safetensors",
        "One of several tensors.",
        "Hugging Face",
        f"{_HERE}.arrays:SafetensorsSource",
        (".safetensors",),
        "vectors.safetensors#embeddings",
    ),
    "faiss": SourceEntry(
        "FAISS index",
        "The stored vectors of an index, or its decoded codes.",
        "Douze et al. (2024)",
        f"{_HERE}.faiss_index:FaissSource",
        (".faiss", ".index"),
        "vectors.faiss",
    ),
    "table": SourceEntry(
        "Table",
        "A column of vectors, or one column per dimension; and the texts, if it has any.",
        "Parquet, CSV, TSV, JSONL, JSON",
        f"{_HERE}.tables:TableSource",
        (".parquet", ".pq", ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"),
        "letters.parquet#embedding",
    ),
    "chroma": SourceEntry(
        "Chroma",
        "A collection of a local store; only a copy is read.",
        "Chroma",
        f"{_HERE}.chroma:ChromaSource",
        (),
        "chroma:./db#letters",
    ),
    "lancedb": SourceEntry(
        "LanceDB",
        "A table of a local store; only a copy is read.",
        "LanceDB",
        f"{_HERE}.lance:LanceSource",
        (),
        "lancedb:./db#letters",
    ),
    "milvus": SourceEntry(
        "Milvus Lite",
        "A collection of a local store; only a copy is read.",
        "Milvus",
        f"{_HERE}.milvus:MilvusSource",
        (),
        "milvus:./letters.db#letters",
    ),
    "pgvector": SourceEntry(
        "PostgreSQL with pgvector",
        "A column of a table, read in one read-only transaction.",
        "pgvector",
        f"{_HERE}.postgres:PostgresSource",
        (),
        "pgvector:postgresql://reader@localhost/mail#letters.embedding",
    ),
    "qdrant": SourceEntry(
        "Qdrant",
        "A collection of a server, read over HTTP.",
        "Qdrant",
        f"{_HERE}.rest:QdrantSource",
        (),
        "qdrant:http://localhost:6333#letters",
    ),
    "weaviate": SourceEntry(
        "Weaviate",
        "A collection of a server, read over HTTP.",
        "Weaviate",
        f"{_HERE}.rest:WeaviateSource",
        (),
        "weaviate:http://localhost:8080#Letters",
    ),
}


def upload_source(file: MemoryFile, collection: str = "") -> VectorSource:
    """Build the vector source for an uploaded file, which stays in memory.

    Parameters
    ----------
    collection : str
        The array, tensor or column of the vectors, where the file holds several.

    Raises
    ------
    InvalidInputError
        Its format is not supported, or it is a pickle.
    """
    kind = _kind_of_file(file.suffix)
    if not kind:
        raise refusal(
            file.name, f"has an unknown file extension. Upload one of {', '.join(endings())}."
        )
    _refuse_pickles(file)
    source: VectorSource = SOURCES[kind].kind(file, collection)
    return source


def open_source(reference: str) -> VectorSource:
    """Build the vector source of a reference, a path or `kind:location#collection`, unread.

    Nothing is read until the source's `opened` is called.

    Raises
    ------
    InvalidInputError
        No such kind, no such file, or a file of another kind.

    Examples
    --------
    >>> open_source("chroma:./db#letters").label
    'chroma:./db#letters'
    """
    kind, colon, rest = reference.partition(":")
    if colon and kind in SOURCES:
        location, collection = _split_reference(rest)
        return _make_source(kind, location, collection)
    if colon and "://" in rest and not Path(reference).exists():
        raise InvalidInputError(
            f"{kind!r} is not a kind of source; use one of {', '.join(SOURCES)}."
            + similar(kind, SOURCES)
        )
    location, collection = _split_reference(reference)
    path = Path(location)
    kind = _kind_of_file(path.suffix)
    if not kind:
        problem = "is a folder" if path.is_dir() else "has an unknown file extension"
        stores = ", ".join(e.example for e in SOURCES.values() if not e.is_file)
        raise refusal(
            location,
            f"{problem}. Give a file that ends in {', '.join(endings())}, or name the kind of the "
            f"store, as in {stores}.",
        )
    return _make_source(kind, location, collection)


def _split_reference(reference: str) -> tuple[str, str]:
    """Split a reference into location and collection; a # in an existing file's name stays."""
    if Path(reference).exists():
        return reference, ""
    location, _, collection = reference.rpartition("#")
    return (location, collection) if location else (reference, "")


def _make_source(kind: str, location: str, collection: str) -> VectorSource:
    """Build the source of a kind at a location; raise InvalidInputError if either is unusable."""
    entry = SOURCES[kind]
    if not location:
        raise InvalidInputError(f"{kind}: the location is missing. Write it as {entry.example}.")
    if not entry.is_file:
        if "://" in location and ("#" in location or "@" in collection or location.count("@") > 1):
            raise InvalidInputError(
                f"{kind}: the address contains # or @ in the wrong place. Leave credentials out, "
                f"and write it as {entry.example}."
            )
        store: VectorSource = entry.kind(location, collection)
        return store
    path = Path(location)
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise refusal(location, f"{problem}. Check the path.")
    _refuse_pickles(path)
    source: VectorSource = entry.kind(path, collection)
    return source


def _kind_of_file(suffix: str) -> str:
    """Return the key in SOURCES for a file extension; empty if there is none."""
    return next((name for name, entry in SOURCES.items() if suffix.lower() in entry.endings), "")


def _refuse_pickles(path: File) -> None:
    """Read a file's first bytes; raise InvalidInputError if it is a pickle, whatever its name."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise refusal(str(path), f"cannot be read ({error.strerror}). Check its rights.") from error
    if head in PICKLES:
        raise refusal(
            str(path),
            "is a Python pickle, which is never opened because it could run any program. Save the "
            "vectors with numpy.save.",
        )


def endings() -> list[str]:
    """Return the file extensions of vector files that can be read, with their dots."""
    return [ending for entry in SOURCES.values() for ending in entry.endings]
