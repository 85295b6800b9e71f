"""Qdrant and Weaviate servers as vector sources, read through their REST interfaces.

Only calls that read are sent. No redirect is followed, so that a key reaches no other host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from leakscope.core.audit.sources.protocol import Batch, refusal, stack_vectors
from leakscope.core.audit.sources.stores import choose_collection, text_field
from leakscope.core.errors import InvalidInputError

_PAGE = 256
_SECONDS = 30.0
_TRIES = 3
_MOST_BYTES = 256 * 2**20
_LOCAL = ("localhost", "127.0.0.1", "::1")


class _Server:
    """A server that is queried for JSON, with retries if the connection drops."""

    def __init__(self, kind: str, location: str, key: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(location)
        except ValueError as error:
            raise InvalidInputError(f"{kind}: write {kind}:http://HOST:PORT#COLLECTION.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(f"{kind}: write {kind}:http://HOST:PORT#COLLECTION.")
        if parts.username or parts.password or parts.query:
            raise InvalidInputError(
                f"{kind}:{parts.scheme}://{parts.hostname}: leave credentials out of the address: "
                f"other users can see them in the list of processes. Set {kind.upper()}_API_KEY."
            )
        if key and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise InvalidInputError(
                f"{kind}:{location}: the key would be sent unencrypted. Use https, or unset "
                f"{kind.upper()}_API_KEY if the server needs none."
            )
        self.base, self.key = location.rstrip("/"), dict(key)

    def ask(self, label: str, method: str, path: str, **options: Any) -> Any:
        """Send a request and return the server's answer, parsed from JSON.

        Raises
        ------
        InvalidInputError
            It does not answer, refuses, redirects, or sends something else or too much.
        """
        import requests

        for attempt in range(1, _TRIES + 1):
            try:
                with requests.Session() as session:
                    session.auth = _no_auth  # else the user's .netrc would be read
                    if self.base.startswith("http:"):  # a proxy would see the key
                        session.trust_env = False
                    answer = session.request(
                        method,
                        f"{self.base}{path}",
                        headers=self.key,
                        timeout=_SECONDS,
                        allow_redirects=False,
                        stream=True,
                        **options,
                    )
                    content = _read_limited(label, answer)
                break
            except requests.RequestException as error:
                if attempt < _TRIES:
                    continue
                reason = (
                    "did not answer in time"
                    if isinstance(error, requests.Timeout)
                    else ("cannot be reached, or dropped the connection")
                )
                raise refusal(
                    label, f"the server {reason}, {_TRIES} times. Check its address and load."
                ) from error
        if answer.status_code != 200:
            raise refusal(label, _status_message(answer.status_code))
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise refusal(label, "the server's answer is not JSON. Check the address.") from error


def _no_auth(request: Any) -> Any:
    """Return a request unchanged, so that no authentication is added to it."""
    return request


def _read_limited(label: str, answer: Any) -> bytes:
    """Return the body of an HTTP answer; raise InvalidInputError above the maximum size."""
    parts, n = [], 0
    for part in answer.iter_content(2**20):
        n += len(part)
        if n > _MOST_BYTES:
            raise refusal(
                label, f"the server sent more than {_MOST_BYTES // 2**20} MB for one page."
            )
        parts.append(part)
    return b"".join(parts)


def _status_message(status: int) -> str:
    """Return a message with the problem and the remedy for an HTTP status other than 200."""
    if status in (401, 403):
        return "the server needs a key. Set QDRANT_API_KEY or WEAVIATE_API_KEY."
    if 300 <= status < 400:
        return "the server redirects, which is not followed. Give the final address."
    if status == 404:
        return "the server has no such collection. Check the name after #."
    return f"the server answered with status {status}. Check its log."


def _api_key_header(name: str, header: str, form: str = "{}") -> dict[str, str]:
    """Return an HTTP header with the API key from an environment variable; empty if unset."""
    value = os.environ.get(name, "")
    return {header: form.format(value)} if value else {}


def _page_batch(label: str, found: list[tuple[str, Any, Any]]) -> Batch:
    """Build a batch from a page of (id, vector, text)."""
    ids = [i for i, *_ in found]
    vectors = stack_vectors(label, ids, [vector for _, vector, _ in found])
    texts = [text if isinstance(text, str) else None for *_, text in found]
    return Batch(vectors, ids, texts if any(texts) else None)


def _named_vector(label: str, vector: Any, asked: str) -> Any:
    """Return a row's vector, or of several by name the requested one or the only one."""
    if isinstance(vector, dict):
        if asked and asked not in vector:
            raise refusal(label, f"a row has no vector {asked!r}. Name one that every row has.")
        return vector.get(
            choose_collection(label, asked, list(vector), "vector of a row", "COLLECTION.VECTOR")
        )
    return vector


class QdrantSource:
    """A collection of a Qdrant server; `#collection.vector` where rows have several vectors."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"qdrant:{location}" + f"#{collection}" * bool(collection)
        self.server = _Server("qdrant", location, _api_key_header("QDRANT_API_KEY", "api-key"))
        self.collection, _, self.vector = collection.partition(".")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Connect to the server and yield an iterator over pages of the collection."""
        answer = self.server.ask(self.label, "GET", "/collections")
        names = [str(found["name"]) for found in _result_list(self.label, answer, "collections")]
        yield self._batches(choose_collection(self.label, self.collection, names))

    def _batches(self, name: str) -> Iterator[Batch]:
        """Request a collection page by page; yield its vectors and payload texts in batches."""
        path = f"/collections/{quote(name, safe='')}"
        offset: Any = None
        text: str | None = None
        n_read, n_known = 0, self._count_points(path)
        while True:
            asked = {"limit": _PAGE, "with_vector": True, "with_payload": True}
            if offset is not None:
                asked["offset"] = offset
            answer = self.server.ask(self.label, "POST", f"{path}/points/scroll", json=asked)
            points = _result_list(self.label, answer, "points")
            if points:
                payloads = [point.get("payload") or {} for point in points]
                text = text or text_field(payloads)
                yield _page_batch(
                    self.label,
                    [
                        (
                            str(p["id"]),
                            _named_vector(self.label, p.get("vector"), self.vector),
                            payload.get(text) if text else None,
                        )
                        for p, payload in zip(points, payloads, strict=True)
                    ],
                )
                n_read += len(points)
            before, offset = offset, answer["result"].get("next_page_offset")
            if offset is None:
                break
            if offset == before or not points:
                raise refusal(self.label, "the server repeats a page. Check its log.")
        if n_known != n_read or self._count_points(path) != n_read:
            raise refusal(self.label, _CHANGED)

    def _count_points(self, path: str) -> int:
        """Ask the server for the exact number of points in a collection."""
        answer = self.server.ask(self.label, "POST", f"{path}/points/count", json={"exact": True})
        try:
            return int(answer["result"]["count"])
        except (KeyError, TypeError, ValueError) as error:
            raise _unexpected_answer(self.label) from error


_CHANGED = (
    "changed while it was read, so the rows mix two states. Stop writes to it, or audit a snapshot."
)


def _result_list(label: str, answer: Any, name: str) -> list[dict[str, Any]]:
    """Return the named list of objects in Qdrant's answer; raise InvalidInputError if missing."""
    try:
        found = answer["result"][name]
        if isinstance(found, list) and all(isinstance(one, dict) for one in found):
            return found
    except (KeyError, TypeError):
        pass
    raise _unexpected_answer(label)


def _unexpected_answer(label: str) -> InvalidInputError:
    """Build, without raising it, the error for a server that does not answer like its kind."""
    kind = label.partition(":")[0].capitalize()
    return refusal(label, f"the server does not answer like {kind}. Check the address.")


class WeaviateSource:
    """A collection of a Weaviate server; `#collection.vector` where objects have several."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"weaviate:{location}" + f"#{collection}" * bool(collection)
        key = _api_key_header("WEAVIATE_API_KEY", "Authorization", "Bearer {}")
        self.server = _Server("weaviate", location, key)
        self.collection, _, self.vector = collection.partition(".")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Connect to the server and yield an iterator over pages of the collection."""
        answer = self.server.ask(self.label, "GET", "/v1/schema")
        try:
            names = [str(found["class"]) for found in answer["classes"]]
        except (KeyError, TypeError) as error:
            raise _unexpected_answer(self.label) from error
        yield self._batches(choose_collection(self.label, self.collection, names))

    def _batches(self, name: str) -> Iterator[Batch]:
        """Request a collection page by page; yield its vectors and text properties in batches."""
        after = ""
        text: str | None = None
        while True:
            asked: dict[str, Any] = {"class": name, "limit": _PAGE, "include": "vector"}
            if after:  # an empty one also gives the first page, but not in every version
                asked["after"] = after
            answer = self.server.ask(self.label, "GET", "/v1/objects", params=asked)
            objects = answer.get("objects") if isinstance(answer, dict) else None
            if not isinstance(objects, list) or not all(isinstance(o, dict) for o in objects):
                raise _unexpected_answer(self.label)
            if not objects:
                return
            properties = [one.get("properties") or {} for one in objects]
            text = text or text_field(properties)
            try:
                ids = [str(one["id"]) for one in objects]
            except KeyError as error:
                raise _unexpected_answer(self.label) from error
            yield _page_batch(
                self.label,
                [
                    (i, self._vector_of(one), given.get(text) if text else None)
                    for i, one, given in zip(ids, objects, properties, strict=True)
                ],
            )
            if ids[-1] == after:
                raise refusal(self.label, "the server repeats a page. Check its log.")
            after = ids[-1]

    def _vector_of(self, one: dict[str, Any]) -> Any:
        """Return the requested vector of an object, or its only one."""
        return _named_vector(self.label, one.get("vector") or one.get("vectors"), self.vector)
