"""Milvus Lite's local stores."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from core.audit.sources.copied import copy_of
from core.audit.sources.protocol import ROWS, Batch, refusal, stacked
from core.audit.sources.stores import chosen, library, text_field, unreadable


class MilvusSource:
    """A collection of Milvus Lite; `#collection.field` names its field of vectors."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"milvus:{location}" + f"#{collection}" * bool(collection)
        self.path, self.collection = Path(location), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the vectors and texts of the collection, from a copy of the store."""
        pymilvus = library("pymilvus", "Milvus Lite stores", "milvus-lite")
        library("milvus_lite", "Milvus Lite stores", "pymilvus")
        from milvus_lite.server_manager import server_manager_instance

        for logger in ("pymilvus", "milvus_lite", "grpc"):  # they log what they lack
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        if self.path.suffix != ".db":  # the client would take it for an address
            raise refusal(self.label, "a Milvus Lite store has a name that ends in .db.")
        with copy_of(self.label, self.path) as copy:
            with unreadable(self.label):
                client = pymilvus.MilvusClient(str(copy))
            try:
                with unreadable(self.label):
                    names = sorted(client.list_collections())
                    asked, _, field = self.collection.partition(".")
                    name = chosen(self.label, asked, names)
                    client.load_collection(name)
                    told = client.describe_collection(name)
                yield self._batches(client, name, field, told)
            finally:
                client.close()
                # The client leaves the server that it started for the file running.
                server_manager_instance.release_server(str(copy))

    def _batches(self, client: Any, name: str, field: str, told: dict[str, Any]) -> Iterator[Batch]:
        kinds = {f["name"]: getattr(f["type"], "name", str(f["type"])) for f in told["fields"]}
        vectors = [n for n, kind in kinds.items() if kind in _VECTORS]
        vector = chosen(self.label, field, vectors, "field of vectors", "COLLECTION.FIELD")
        key = next((f["name"] for f in told["fields"] if f.get("is_primary")), None)
        kind = np.float16 if kinds[vector] == "FLOAT16_VECTOR" else np.float32
        text: str | None = None
        n_read = 0
        with unreadable(self.label):
            pages = client.query_iterator(name, batch_size=ROWS, output_fields=["*"])
            try:
                while rows := pages.next():
                    if text is None:
                        text = text_field([_texts(row, (vector, key)) for row in rows[:100]])
                    ids = [str(row[key]) if key else str(n_read + i) for i, row in enumerate(rows)]
                    cells = [_plain(row[vector], kind) for row in rows]
                    n_read += len(rows)
                    texts = [_text_of(row.get(text)) for row in rows] if text else None
                    yield Batch(stacked(self.label, ids, cells, kind), ids, texts)
            finally:
                pages.close()


_VECTORS = ("FLOAT_VECTOR", "FLOAT16_VECTOR")


def _plain(cell: Any, kind: Any) -> Any:
    """Return a vector as numbers: half precision comes as bytes."""
    if isinstance(cell, list) and len(cell) == 1 and isinstance(cell[0], bytes):
        cell = cell[0]
    return np.frombuffer(cell, dtype=kind) if isinstance(cell, bytes) else cell


def _text_of(cell: Any) -> str | None:
    return cell if isinstance(cell, str) else None


def _texts(row: dict[str, Any], others: tuple[str | None, ...]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in others}
