"""FAISS index files as vector sources: exact vectors, or the decoded codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from leakscope.core.audit.sources.protocol import ROWS, Batch, parser_errors, refusal
from leakscope.core.corpora.readers.memory_file import File, MemoryFile
from leakscope.core.errors import MissingDependencyError, install


class FaissSource:
    """A FAISS index file, as `faiss.write_index` writes it.

    A flat index holds the vectors themselves. Scalar and product quantisers hold codes: what they
    decode to is what an attacker with the index has, and is what is audited.
    """

    def __init__(self, path: File, collection: str = "") -> None:
        self.label = f"{path}"
        self.path = path
        if collection:
            raise refusal(self.label, f"contains one index; leave out #{collection}.")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the index and yield an iterator over batches of its vectors."""
        try:
            import faiss
        except ImportError as error:
            raise MissingDependencyError(
                f"Reading FAISS indexes needs the library faiss: `{install('faiss-cpu')}`."
            ) from error
        with parser_errors(self.label, "a FAISS index"):
            if isinstance(self.path, MemoryFile):
                index = faiss.deserialize_index(np.frombuffer(self.path.content, np.uint8))
            else:
                index = faiss.read_index(str(self.path), faiss.IO_FLAG_READ_ONLY)
        yield self._batches(faiss, faiss.downcast_index(index))

    def _batches(self, faiss: Any, index: Any) -> Iterator[Batch]:
        """Reconstruct the vectors of an index and yield them in batches."""
        keys = None
        if isinstance(index, faiss.IndexIDMap | faiss.IndexIDMap2):
            keys = faiss.vector_to_array(index.id_map)
            index = faiss.downcast_index(index.index)
        ivf = faiss.try_extract_index_ivf(index)
        try:
            if ivf is not None:
                ivf.make_direct_map()
            for start in range(0, index.ntotal, ROWS):
                n = min(ROWS, index.ntotal - start)
                named = range(start, start + n) if keys is None else keys[start : start + n]
                vectors = np.asarray(index.reconstruct_n(start, n))
                yield Batch(vectors, [str(key) for key in named])
        except RuntimeError as error:
            raise refusal(
                self.label,
                f"is an index of the kind {type(index).__name__}, which cannot return its vectors. "
                "Export the vectors as .npy from the program that added them.",
            ) from error
