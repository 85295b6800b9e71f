"""Milvus Lite's local stores as vector sources."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.audit.sources.protocol import ROWS, Batch, refusal, stack_vectors
from leakscope.core.audit.sources.stores import (
    choose_collection,
    library,
    store_errors,
    temporary_copy,
    text_field,
)


class MilvusSource:
    """A collection of Milvus Lite; `#collection.field` names its field of vectors."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"milvus:{location}" + f"#{collection}" * bool(collection)
        self.path, self.collection = Path(location), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open a copy of the store and yield an iterator over batches of the collection."""
        pymilvus = library("pymilvus", "Milvus Lite stores", "milvus-lite")
        library("milvus_lite", "Milvus Lite stores", "pymilvus")
        from milvus_lite.server_manager import server_manager_instance

        for logger in ("pymilvus", "milvus_lite", "grpc"):  # they log missing features
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        if self.path.suffix != ".db":  # the client would treat it as an address
            raise refusal(self.label, "the name of a Milvus Lite store ends in .db.")
        with temporary_copy(self.label, self.path) as copy:
            with store_errors(self.label):
                client = pymilvus.MilvusClient(str(copy))
            try:
                with store_errors(self.label):
                    names = sorted(client.list_collections())
                    asked, _, field = self.collection.partition(".")
                    name = choose_collection(self.label, asked, names)
                    client.load_collection(name)
                    description = client.describe_collection(name)
                yield self._batches(client, name, field, description)
            finally:
                client.close()
                # The client does not stop the server that it started for the file.
                server_manager_instance.release_server(str(copy))

    def _batches(
        self, client: Any, name: str, field: str, description: dict[str, Any]
    ) -> Iterator[Batch]:
        """Query a collection and yield its vectors and texts in batches."""
        kinds = {
            f["name"]: getattr(f["type"], "name", str(f["type"])) for f in description["fields"]
        }
        vectors = [n for n, kind in kinds.items() if kind in _VECTORS]
        vector = choose_collection(
            self.label, field, vectors, "field of vectors", "COLLECTION.FIELD"
        )
        key = next((f["name"] for f in description["fields"] if f.get("is_primary")), None)
        kind = np.float16 if kinds[vector] == "FLOAT16_VECTOR" else np.float32
        text: str | None = None
        n_read = 0
        with store_errors(self.label):
            pages = client.query_iterator(name, batch_size=ROWS, output_fields=["*"])
            try:
                while rows := pages.next():
                    if text is None:
                        text = text_field([_other_fields(row, (vector, key)) for row in rows[:100]])
                    ids = [str(row[key]) if key else str(n_read + i) for i, row in enumerate(rows)]
                    cells = [_vector_numbers(row[vector], kind) for row in rows]
                    n_read += len(rows)
                    texts = [_text_of(row.get(text)) for row in rows] if text else None
                    yield Batch(stack_vectors(self.label, ids, cells, kind), ids, texts)
            finally:
                pages.close()


_VECTORS = ("FLOAT_VECTOR", "FLOAT16_VECTOR")


def _vector_numbers(cell: Any, kind: Any) -> Any:
    """Return a vector cell as numbers; half-precision vectors are read from bytes."""
    if isinstance(cell, list) and len(cell) == 1 and isinstance(cell[0], bytes):
        cell = cell[0]
    return np.frombuffer(cell, dtype=kind) if isinstance(cell, bytes) else cell


def _text_of(cell: Any) -> str | None:
    """Return a cell unchanged if it is a string, else None."""
    return cell if isinstance(cell, str) else None


def _other_fields(row: dict[str, Any], others: tuple[str | None, ...]) -> dict[str, Any]:
    """Return a row's fields, by name, except its vector and its key."""
    return {name: value for name, value in row.items() if name not in others}
