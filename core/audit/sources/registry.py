"""The kinds of sources, and how what a user types names one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.audit.sources.protocol import VectorSource, refusal
from core.corpora.raw_files import PICKLES
from core.errors import InvalidInputError, similar
from core.registry import Entry


@dataclass(frozen=True)
class SourceEntry(Entry):
    """What a user should know of a kind of source."""

    endings: tuple[str, ...] = ()
    """Of files that are of this kind."""
    example: str = ""
    """How a user names one."""

    @property
    def is_file(self) -> bool:
        """Whether it is a file, which can also be uploaded."""
        return bool(self.endings)


_HERE = "core.audit.sources"

SOURCES: dict[str, SourceEntry] = {
    "npy": SourceEntry(
        "NumPy array",
        "A matrix with a vector a row.",
        "NumPy",
        f"{_HERE}.arrays:NpySource",
        (".npy",),
        "vectors.npy",
    ),
    "npz": SourceEntry(
        "NumPy archive",
        "A matrix among several arrays.",
        "NumPy",
        f"{_HERE}.arrays:NpzSource",
        (".npz",),
        "vectors.npz#embeddings",
    ),
    "safetensors": SourceEntry(
        "safetensors",
        "A matrix among several tensors.",
        "Hugging Face",
        f"{_HERE}.arrays:SafetensorsSource",
        (".safetensors",),
        "vectors.safetensors#embeddings",
    ),
    "faiss": SourceEntry(
        "FAISS index",
        "The vectors that an index keeps, or what its codes decode to.",
        "Douze et al. (2024)",
        f"{_HERE}.faiss_index:FaissSource",
        (".faiss", ".index"),
        "vectors.faiss",
    ),
    "table": SourceEntry(
        "Table",
        "A column of vectors, or a number a column; and the texts, where it has them.",
        "Parquet, CSV, TSV, JSONL, JSON",
        f"{_HERE}.tables:TableSource",
        (".parquet", ".pq", ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"),
        "letters.parquet#embedding",
    ),
    "chroma": SourceEntry(
        "Chroma",
        "A collection of a local store; a copy is read.",
        "Chroma",
        f"{_HERE}.chroma:ChromaSource",
        (),
        "chroma:./db#letters",
    ),
    "lancedb": SourceEntry(
        "LanceDB",
        "A table of a local store; a copy is read.",
        "LanceDB",
        f"{_HERE}.lance:LanceSource",
        (),
        "lancedb:./db#letters",
    ),
    "milvus": SourceEntry(
        "Milvus Lite",
        "A collection of a local store; a copy is read.",
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


def open_source(reference: str) -> VectorSource:
    """Return the source that a user names: a path, or `kind:location#collection`.

    Nothing is read before its `opened`.

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
        location, collection = _apart(rest)
        return _made(kind, location, collection)
    if colon and "://" in rest and not Path(reference).exists():
        raise InvalidInputError(
            f"{kind!r} is no kind of source; there are {', '.join(SOURCES)}."
            + similar(kind, SOURCES)
        )
    location, collection = _apart(reference)
    path = Path(location)
    kind = next((n for n, e in SOURCES.items() if path.suffix.lower() in e.endings), "")
    if not kind:
        told = "is a folder" if path.is_dir() else "has an unknown file extension"
        stores = ", ".join(e.example for e in SOURCES.values() if not e.is_file)
        raise refusal(
            location,
            f"{told}. Give a file that ends in {', '.join(_endings())}, or name the kind of a "
            f"store, as in {stores}.",
        )
    return _made(kind, location, collection)


def _apart(reference: str) -> tuple[str, str]:
    """Return location and collection; a # that is part of an existing file's name stays."""
    if Path(reference).exists():
        return reference, ""
    location, _, collection = reference.rpartition("#")
    return (location, collection) if location else (reference, "")


def _made(kind: str, location: str, collection: str) -> VectorSource:
    entry = SOURCES[kind]
    if not location:
        raise InvalidInputError(f"{kind}: names no place. Write it as {entry.example}.")
    if not entry.is_file:
        if "://" in location and ("#" in location or "@" in collection or location.count("@") > 1):
            raise InvalidInputError(
                f"{kind}: the address holds # or @ where none belongs. Leave credentials out, "
                f"and write it as {entry.example}."
            )
        store: VectorSource = entry.kind(location, collection)
        return store
    path = Path(location)
    if not path.is_file():
        told = "is a folder" if path.is_dir() else "does not exist"
        raise refusal(location, f"{told}. Check the path.")
    _refuse_pickles(path)
    source: VectorSource = entry.kind(path, collection)
    return source


def _refuse_pickles(path: Path) -> None:
    """Raise InvalidInputError for a pickle, whatever its name."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise refusal(str(path), f"cannot be read ({error.strerror}). Check its rights.") from error
    if head in PICKLES:
        raise refusal(
            str(path),
            "is a Python pickle, which is never opened: it could run any program. Save the "
            "vectors with numpy.save.",
        )


def _endings() -> list[str]:
    return [ending for entry in SOURCES.values() for ending in entry.endings]
