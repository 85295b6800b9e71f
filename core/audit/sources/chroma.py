"""Chroma's local stores as vector sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.audit.sources.protocol import ROWS, Batch, refusal
from leakscope.core.audit.sources.stores import (
    choose_collection,
    library,
    store_errors,
    temporary_copy,
)


class ChromaSource:
    """A collection in the folder of a Chroma `PersistentClient`."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"chroma:{location}" + f"#{collection}" * bool(collection)
        self.path, self.collection = Path(location), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open a copy of the store and yield an iterator over batches of the collection."""
        if not (self.path / "chroma.sqlite3").is_file():  # a client would create a new store
            raise refusal(self.label, "is not a Chroma folder: it has no chroma.sqlite3.")
        chromadb = library("chromadb", "Chroma stores")
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings

        with temporary_copy(self.label, self.path) as copy:
            try:
                with store_errors(self.label):
                    client = chromadb.PersistentClient(
                        str(copy), settings=Settings(anonymized_telemetry=False)
                    )
                    names = [found.name for found in client.list_collections()]
                name = choose_collection(self.label, self.collection, names)
                with store_errors(self.label):
                    found = client.get_collection(name, embedding_function=None)
                yield self._batches(found)
            finally:
                SharedSystemClient.clear_system_cache()  # it caches what it opened, by path

    def _batches(self, collection: Any) -> Iterator[Batch]:
        """Read a collection and yield its vectors and documents in batches."""
        start = 0
        while True:
            with store_errors(self.label):
                got = collection.get(limit=ROWS, offset=start, include=["embeddings", "documents"])
            if not got["ids"]:
                return
            start += len(got["ids"])
            # Chroma stores float32 and answers float64.
            vectors = np.asarray(got["embeddings"], dtype=np.float32)
            yield Batch(vectors, got["ids"], got["documents"])
