"""FAISS index files: the vectors that the index keeps, exact or as its codes decode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from core.audit.sources.protocol import ROWS, Batch, refusal, undamaged
from core.errors import MissingDependencyError, install


class FaissSource:
    """An index as `faiss.write_index` wrote it.

    A flat index holds the vectors themselves. Scalar and product quantisers hold codes: what they
    decode to is what an attacker with the index has, and is what is audited.
    """

    def __init__(self, path: Path, collection: str = "") -> None:
        self.label = f"{path}"
        self.path = path
        if collection:
            raise refusal(self.label, f"holds one index; leave out #{collection}.")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the vectors of the index."""
        try:
            import faiss
        except ImportError as error:
            raise MissingDependencyError(
                f"FAISS indexes are read by the library faiss: `{install('faiss-cpu')}`."
            ) from error
        with undamaged(self.label, "a FAISS index"):
            index = faiss.read_index(str(self.path), faiss.IO_FLAG_READ_ONLY)
        yield self._batches(faiss, faiss.downcast_index(index))

    def _batches(self, faiss: Any, index: Any) -> Iterator[Batch]:
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
                f"is an index of the kind {type(index).__name__}, which does not give its vectors "
                "back. Export the vectors as .npy from where they were added to it.",
            ) from error
