"""Damaged vector files of each kind that an audit reads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tools.fuzz.damage import bytes_from
from tools.fuzz.play import Case


def sources(vectors: NDArray[np.float32]) -> dict[str, st.SearchStrategy[Case]]:
    """Return strategies for damaged vector files, by name."""
    files = _files(vectors)
    return {f"source {Path(name).suffix[1:]}": _damaged(name, files[name]) for name in files}


def _files(vectors: NDArray[np.float32]) -> dict[str, bytes]:
    """Return valid vector files by name."""
    import pandas as pd
    from safetensors.numpy import save

    plain, packed, table = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(plain, vectors)
    np.savez(packed, vectors=vectors, other=np.zeros(3))
    rows = pd.DataFrame({"text": [f"letter {i}" for i in range(len(vectors))]})
    rows.assign(vector=list(vectors)).to_parquet(table, index=False)
    told = rows.assign(vector=[str(vector.tolist()) for vector in vectors])
    lines = [json.dumps({"text": "a letter", "vector": vector.tolist()}) for vector in vectors]
    found = {
        "rows.npy": plain.getvalue(),
        "rows.npz": packed.getvalue(),
        "rows.safetensors": save({"vectors": vectors}),
        "rows.parquet": table.getvalue(),
        "rows.csv": told.to_csv(index=False).encode(),
        "rows.jsonl": "\n".join(lines).encode(),
    }
    if find_spec("faiss") is not None:
        import faiss

        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        found["rows.faiss"] = faiss.serialize_index(index).tobytes()
    return found


@st.composite
def _damaged(draw: Callable[..., Any], name: str, whole: bytes) -> Case:
    """Draw a damaged vector file and read a sample of it."""
    content = draw(bytes_from(whole))

    def read(folder: Path) -> object:
        from leakscope.core.audit.sources import open_source, read_sample

        return read_sample(open_source(str(folder / name)), 5)

    return Case(f"source {Path(name).suffix[1:]}", read=read, files={name: content})
