"""Vectors in files and vector stores, for the tests of audits."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.audit.known_defence import measure_leakage_known
from leakscope.core.defences import adaptive_attack

N, WIDTH = 300, 24
TEXTS = [f"letter {i} about the harbour" for i in range(N)]


def vectors(seed: int = 0) -> NDArray[np.float32]:
    """Return N random vectors."""
    return np.random.default_rng(seed).standard_normal((N, WIDTH)).astype(np.float32)


def write_jsonl(
    path: Path, texts: Sequence[Any], vectors: NDArray[Any], **more: Sequence[Any]
) -> Path:
    """Write texts, their vectors and further columns as JSONL; return the path."""
    names = {"text": texts, "vector": vectors.tolist(), **more}
    rows = (dict(zip(names, row, strict=True)) for row in zip(*names.values(), strict=True))
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def learn_briefly(patch: pytest.MonkeyPatch, n: int = 800) -> None:
    """Have attackers learn a defence from n sentences, and train on 300 behind it."""
    patch.setattr(adaptive_attack, "N_PAIRS", n)
    patch.setitem(measure_leakage_known.__kwdefaults__, "n_taught", 300)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files below a folder with their names."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            found.update(str(file.relative_to(path)).encode() + file.read_bytes())
    return found.hexdigest()


def make_chroma_of(folder: Path, texts: list[str], rows: NDArray[Any]) -> str:
    """Create a Chroma store of texts and vectors; return its reference."""
    chromadb = pytest.importorskip("chromadb")
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    place = folder / "chroma"
    client = chromadb.PersistentClient(str(place), settings=Settings(anonymized_telemetry=False))
    made = client.create_collection("letters", embedding_function=None)
    made.add(ids=[f"id{i}" for i in range(len(texts))], embeddings=rows, documents=texts)
    SharedSystemClient.clear_system_cache()
    return f"chroma:{place}#letters"


def make_chroma(folder: Path, rows: NDArray[Any]) -> str:
    """Create a Chroma store of TEXTS; return its reference."""
    return make_chroma_of(folder, TEXTS, rows)


def make_lancedb(folder: Path, rows: NDArray[Any]) -> str:
    """Create a LanceDB store of TEXTS; return its reference."""
    lancedb = pytest.importorskip("lancedb")
    import pyarrow as pa

    cells = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), WIDTH)
    table = pa.table({"id": [f"id{i}" for i in range(N)], "vector": cells, "text": TEXTS})
    lancedb.connect(str(folder / "lance")).create_table("letters", table)
    return f"lancedb:{folder / 'lance'}#letters"


def make_milvus(folder: Path, rows: NDArray[Any]) -> str:
    """Create a Milvus Lite store of TEXTS; return its reference."""
    pymilvus = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    place = folder / "letters.db"
    client = pymilvus.MilvusClient(str(place))
    client.create_collection("letters", dimension=WIDTH, id_type="string", max_length=20)
    given = zip(rows.tolist(), TEXTS, strict=True)
    client.insert(
        "letters", [{"id": f"id{i}", "vector": v, "text": t} for i, (v, t) in enumerate(given)]
    )
    client.flush("letters")
    client.close()
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(str(place))
    return f"milvus:{place}#letters"


STORES: dict[str, Callable[[Path, NDArray[Any]], str]] = {
    "chroma": make_chroma,
    "lancedb": make_lancedb,
    "milvus": make_milvus,
}


class RestStore:
    """A fake Qdrant and Weaviate server that records its requests.

    Attributes
    ----------
    asked : list of (method, path)
    keys : list of str
        Credentials that came with the calls.
    fault : str
        What it does wrong: `drop`, `redirect`, `json`, `change` or `refuse`.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows, self.fault = rows, ""
        self.asked: list[tuple[str, str]] = []
        self.keys: list[str] = []
        self.url = ""

    def answer(self, method: str, path: str, query: dict[str, Any], body: Any) -> Any:
        """Return the JSON answer to a request; None for an unknown path."""
        if path == "/collections":
            return {"result": {"collections": [{"name": "letters"}]}}
        if path == "/collections/letters/points/count":
            n = len(self.rows) + (self.fault == "change" and len(self.asked) > 3)
            return {"result": {"count": n}}
        if path == "/collections/letters/points/scroll":
            start = int(body.get("offset") or 0)
            end = min(start + body["limit"], len(self.rows))
            points = [
                {"id": i, "vector": self.rows[i].tolist(), "payload": {"text": TEXTS[i]}}
                for i in range(start, end)
            ]
            following = end if end < len(self.rows) else None
            return {"result": {"points": points, "next_page_offset": following}}
        if path == "/v1/schema":
            return {"classes": [{"class": "Letters"}]}
        if path == "/v1/objects":
            start = int(query["after"][0]) + 1 if "after" in query else 0
            rows = range(start, min(start + int(query["limit"][0]), len(self.rows)))
            return {
                "objects": [
                    {
                        "id": str(i),
                        "vector": self.rows[i].tolist(),
                        "properties": {"body": TEXTS[i]},
                    }
                    for i in rows
                ]
            }
        return None


@contextmanager
def serve_store(store: RestStore) -> Iterator[RestStore]:
    """Serve a store on a free local port."""

    class Handler(BaseHTTPRequestHandler):
        """Passes requests to the store, or misbehaves as its fault says."""

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            """Record the request and answer it."""
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.asked.append((method, parts.path))
            store.keys += [v for n in ("api-key", "Authorization") if (v := self.headers.get(n))]
            if store.fault == "drop":
                self.connection.close()
                return
            if store.fault in ("redirect", "refuse"):
                self.send_response(302 if store.fault == "redirect" else 401)
                self.send_header("Location", "http://localhost:1/elsewhere")
                self.end_headers()
                return
            found = store.answer(
                method, parts.path, parse_qs(parts.query), json.loads(content or b"{}")
            )
            body = b"<html>" if store.fault == "json" else json.dumps(found).encode()
            self.send_response(200 if found is not None else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    store.url = f"http://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
