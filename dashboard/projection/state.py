"""The visitor's choices and selection on the map page, and the session's uploads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.projection.displacement import placeable_defences
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.spec import METHODS, ProjectionSpec
from leakscope.dashboard.address import Address, NotOffered, Parameter
from leakscope.dashboard.server.policy import current_policy
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import text_parameter

if TYPE_CHECKING:
    from leakscope.core.projection.points import Points


_POINTS: SessionCache[tuple[Any, ...], Points] = SessionCache("_own_points", 1)

UPLOAD = "upload"
CORPORA = {
    "bundled": "News and encyclopaedia",
    "lee": "News (Lee)",
    "wikipedia": "Wikipedia extract",
    UPLOAD: "Your own file",
}
COUNTS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 250_000)
_MOST_SHARED = 50_000
MOVED = (50, 200, 500)
_DEFAULTS: dict[str, Any] = {
    "corpus": "bundled",
    "n": 2000,
    "method": "umap",
    "dims": 2,
    "colour": None,
    "shape": None,
    "search": "",
    "defence": "none",
    "strength": None,
    "n_moved": 200,
    "metric": "cosine",
    "n_neighbors": 15,
    "min_dist": 0.1,
    "perplexity": 30.0,
    "seed": 0,
}


def counts() -> tuple[int, ...]:
    """Return the offered numbers of texts; a server for other computers offers fewer."""
    most = COUNTS[-1] if current_policy().may_open_places else _MOST_SHARED
    return tuple(n for n in COUNTS if n <= most)


def _allowed_values() -> dict[str, Sequence[Any] | None]:
    """Return the allowed values by address parameter; None allows any text."""
    return {
        "corpus": [name for name in CORPORA if name != UPLOAD],
        "n": counts(),
        "method": tuple(METHODS),
        "dims": (2, 3),
        "colour": None,
        "shape": None,
        "defence": ("none", *placeable_defences()),
        "n_moved": MOVED,
        "search": None,
        "metric": ("cosine", "euclidean"),
        "n_neighbors": range(2, 101),
        "min_dist": tuple(i / 100 for i in range(100)),
        "perplexity": tuple(map(float, range(2, 101))),
    }


def _read_seed(text: str) -> int:
    """Parse a seed from the URL; raise NotOffered outside its range."""
    if not 0 <= int(text) < 2**32:
        raise NotOffered
    return int(text)


_MORE = ("n_moved", "metric", "n_neighbors", "min_dist", "perplexity")
"""Parameters that a link contains only if they differ from the default."""


def key_of(name: str) -> str:
    """Return the session key of a named control."""
    return f"map_{name}"


def control(name: str) -> dict[str, Any]:
    """Return the keyword options of a named Streamlit control whose value the session keeps."""
    return {"key": key_of(name), "persist_state": "session"}


def choice(name: str) -> Any:
    """Return the current value of a named control; its default before it is drawn."""
    return st.session_state.get(key_of(name), _DEFAULTS[name])


def choose(name: str, value: Any) -> None:
    """Set the value of a named control, as a callback or before it is drawn."""
    st.session_state[key_of(name)] = value


def chosen_spec() -> ProjectionSpec:
    """Build the map's ProjectionSpec from the controls."""
    return ProjectionSpec(
        method=str(choice("method")),
        n_components=int(choice("dims")),
        **{n: choice(n) for n in ("metric", "n_neighbors", "min_dist", "perplexity", "seed")},
    )


def adopt_address() -> Address:
    """Copy the URL query to the session once, and return the page's address.

    `?corpus=lee&n=2000&method=umap&dims=3&colour=document&shape=…&defence=…&eta=75&text=…`, and
    further settings of a method. A link opens only bundled corpora, never other files.
    """
    for name, value in _DEFAULTS.items():
        st.session_state.setdefault(key_of(name), value)
    parameters = (_build_parameter(name, options) for name, options in _allowed_values().items())
    address = Address("projection", (*parameters, _SEED, _ETA, text_parameter()))
    if "eta" in address.adopt() and "defence" not in st.query_params:
        choose("defence", "text_to_text")
    return address


def _build_parameter(name: str, options: Sequence[Any] | None) -> Parameter:
    """Build the address parameter of a named control."""
    omitted = (None, "none", "", UPLOAD, *((_DEFAULTS[name],) if name in _MORE else ()))
    return Parameter(
        name=name,
        key=key_of(name),
        options=options,
        write=lambda value: None if value in omitted else str(value),
    )


def _read_eta(text: str) -> float:
    """Parse η from the URL; raise NotOffered if it is not positive."""
    if not 0 < float(text) < float("inf"):
        raise NotOffered
    return float(text)


def _write_eta(strength: float | None) -> str | None:
    """Format η for a link; None if the selected defence has no η."""
    declared = DEFENCES[str(choice("defence"))].strength
    is_eta = declared is not None and declared[0] == "eta"
    return f"{strength:g}" if strength and is_eta else None


_SEED = Parameter(
    name="seed",
    key=key_of("seed"),
    read=_read_seed,
    write=lambda seed: str(seed) if seed else None,
    hint="The seed is a whole number, at least 0.",
)
_ETA = Parameter(name="eta", key=key_of("strength"), read=_read_eta, write=_write_eta)


def restored_request() -> MapRequest | None:
    """Return the request of an upload whose job was found after a reload; None without one."""
    found: MapRequest | None = st.session_state.get("_restored_upload")
    return found


def restore_map(request: MapRequest) -> None:
    """Set the page's controls to a map job's request, after a reload."""
    choose("corpus", UPLOAD if request.is_upload else request.source)
    choose("n", request.n)
    choose("method", request.spec.method)
    choose("dims", request.spec.n_components)
    for name in ("metric", "n_neighbors", "min_dist", "perplexity", "seed"):
        choose(name, getattr(request.spec, name))
    if request.is_upload:
        st.session_state["_restored_upload"] = request


def mark_own_in_url(is_own: bool) -> None:
    """Set or remove `own=1` in the URL, which marks the map of an uploaded file."""
    if is_own:
        st.query_params["own"] = "1"
        st.session_state["_has_own"] = True
    elif st.session_state.pop("_has_own", False):
        st.query_params.pop("own", None)


def is_upload_lost() -> bool:
    """Return whether the URL marks an uploaded file that this session no longer has."""
    return "own" in st.query_params and not st.session_state.get("_has_own", False)


def file_key() -> str:
    """Return the upload control's key, which changes when a file is refused and so clears it."""
    n = int(st.session_state.get("_n_refused", 0))
    return f"{key_of('file')}-{n}" if n else key_of("file")


def refuse_file(why: str) -> None:
    """Clear the uploaded file, and store why it was refused for the next page run."""
    st.session_state["_n_refused"] = int(st.session_state.get("_n_refused", 0)) + 1
    st.session_state["_why_refused"] = why


def refused_file() -> str | None:
    """Return why the last file was refused; None if it was not refused."""
    why: str | None = st.session_state.get("_why_refused")
    return why


def forget_refused() -> None:
    """Clear the stored reason why a file was refused."""
    st.session_state.pop("_why_refused", None)


def own_points(
    file: MemoryFile, digest: str, n: int, text_column: str | None, others: tuple[str, ...]
) -> Points:
    """Read an upload's points in another process; cached for the file and the choices."""
    from leakscope.core.projection.points import upload_points

    key = (digest, n, text_column, others)
    made = partial(run_reader, upload_points, file, n, text=text_column, others=others)
    return _POINTS.once(key, made)


_SELECTED = "_selected_points"


def selected_rows(request: MapRequest) -> list[int]:
    """Return the indices of a map's selected points; [] if the selection is of another map."""
    last: tuple[MapRequest, list[int]] | None = st.session_state.get(_SELECTED)
    return list(last[1]) if last is not None and last[0] == request else []


def select(request: MapRequest, rows: Sequence[int]) -> None:
    """Store the selected points of a map, as a callback or before the map is drawn."""
    st.session_state[_SELECTED] = (request, sorted(rows))


def clear_selection() -> None:
    """Remove the selection of points from the session, as a callback."""
    st.session_state.pop(_SELECTED, None)


def cached_result(kind: str, key: object, make: Any) -> Any:
    """Return `make()`, cached in the session per kind until the key changes."""
    store = st.session_state.setdefault("_selection_readings", {})
    if kind not in store or store[kind][0] != key:
        store[kind] = (key, make())
    return store[kind][1]
