"""Chroma's local stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from core.audit.sources.copied import copy_of
from core.audit.sources.protocol import ROWS, Batch, refusal
from core.audit.sources.stores import chosen, library, unreadable


class ChromaSource:
    """A collection in the folder of a Chroma `PersistentClient`."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"chroma:{location}" + f"#{collection}" * bool(collection)
        self.path, self.collection = Path(location), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the vectors and documents of the collection, from a copy of the store."""
        if not (self.path / "chroma.sqlite3").is_file():  # a client would make a new store
            raise refusal(self.label, "is not a folder of Chroma's: it has no chroma.sqlite3.")
        chromadb = library("chromadb", "Chroma stores")
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings

        with copy_of(self.label, self.path) as copy:
            try:
                with unreadable(self.label):
                    client = chromadb.PersistentClient(
                        str(copy), settings=Settings(anonymized_telemetry=False)
                    )
                    names = [found.name for found in client.list_collections()]
                name = chosen(self.label, self.collection, names)
                with unreadable(self.label):
                    found = client.get_collection(name, embedding_function=None)
                yield self._batches(found)
            finally:
                SharedSystemClient.clear_system_cache()  # it keeps what it opened, by its path

    def _batches(self, collection: Any) -> Iterator[Batch]:
        start = 0
        while True:
            with unreadable(self.label):
                got = collection.get(limit=ROWS, offset=start, include=["embeddings", "documents"])
            if not got["ids"]:
                return
            start += len(got["ids"])
            # Chroma stores float32 and answers float64.
            vectors = np.asarray(got["embeddings"], dtype=np.float32)
            yield Batch(vectors, got["ids"], got["documents"])
