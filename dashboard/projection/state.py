"""What one visitor has chosen on the page of maps, and the maps of this session's own texts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.corpora.memory_file import MemoryFile
from core.projection.moves import MOVABLE
from core.projection.spec import METHODS, ProjectionSpec
from core.specs import EncoderSpec
from dashboard.state import TEXT_KEY, text

if TYPE_CHECKING:
    from core.corpora.guess import FileFacts
    from core.projection.points import Points
    from dashboard.projection.drawn import DrawnMap

__all__ = ["CORPORA", "COUNTS", "UPLOAD", "MapRequest", "adopt_map_link", "chart_number", "chosen",
           "chosen_spec", "choose", "clear_selection", "drop_stale_map_link", "is_linked",
           "key_of", "link_parts", "map_job", "marked_rows", "own_facts", "own_maps",
           "own_points", "remember_map_job", "remember_own", "remember_selection", "restore_map",
           "selection_of", "upload_request"]  # fmt: skip

UPLOAD = "upload"
CORPORA = {"bundled": "News and encyclopaedia", "lee": "News (Lee)",
           "wikipedia": "Wikipedia extract", UPLOAD: "Your own file"}  # fmt: skip
COUNTS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
_DEFAULTS: dict[str, Any] = {
    "corpus": "bundled", "n": 2000, "method": "umap", "dims": 2, "colour": None, "shape": None,
    "search": "", "defence": "none", "strength": None, "n_moved": 200, "metric": "cosine",
    "n_neighbors": 15, "min_dist": 0.1, "perplexity": 30.0, "seed": 0,
}  # fmt: skip
_LINKED = ("corpus", "n", "method", "dims", "colour", "shape", "defence")
_MOST_OWN = 2


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """What identifies a map: its texts, the encoder and how it is drawn.

    `source` is a corpus by name, or the SHA-256 of an uploaded file with `is_upload`; `is_private`
    keeps all of it out of caches on disk and away from other sessions.
    """

    source: str
    n: int
    on: EncoderSpec
    spec: ProjectionSpec
    sample_seed: int = 0
    text_column: str = ""
    is_upload: bool = False
    is_private: bool = False


def key_of(name: str) -> str:
    """Return the key of a control of the page."""
    return f"map_{name}"


def chosen(name: str) -> Any:
    """Return what a control of the page stands at."""
    return st.session_state.get(key_of(name), _DEFAULTS[name])


def choose(name: str, value: Any) -> None:
    """Set a control, from a callback or before it is drawn."""
    st.session_state[key_of(name)] = value


def chosen_spec() -> ProjectionSpec:
    """Return the map's settings as they stand."""
    return ProjectionSpec(
        method=str(chosen("method")),
        n_components=int(chosen("dims")),
        **{n: chosen(n) for n in ("metric", "n_neighbors", "min_dist", "perplexity", "seed")},
    )


def adopt_map_link(default_text: str) -> list[str]:
    """Take over the choices of the address, once per address; return those that do not exist.

    `?corpus=lee&n=2000&method=umap&dims=3&colour=document&shape=…&defence=…&eta=75&text=…`. An
    address opens the bundled corpora alone: following a link must not read other files.
    """
    st.session_state.setdefault(TEXT_KEY, default_text)
    for name, value in _DEFAULTS.items():
        st.session_state.setdefault(key_of(name), value)
    params = {n: st.query_params[n] for n in (*_LINKED, "eta", "text") if n in st.query_params}
    if params == st.session_state.get("_adopted_map_link", {}):
        return list(st.session_state.get("_refused_map_link", []))
    st.session_state["_adopted_map_link"] = params
    refused = [f"{n}={v}" for n, v in params.items() if not _adopt(n, v, params)]
    st.session_state["_refused_map_link"] = refused
    return refused


def _adopt(name: str, value: str, params: Mapping[str, str]) -> bool:
    """Take over one choice; return whether it exists."""
    allowed: dict[str, Sequence[Any]] = {
        "corpus": [c for c in CORPORA if c != UPLOAD], "n": COUNTS, "method": tuple(METHODS),
        "dims": (2, 3), "defence": ("none", *MOVABLE),
    }  # fmt: skip
    if name == "text":
        st.session_state[TEXT_KEY] = value
        return True
    if name == "eta":
        if not value.replace(".", "", 1).isdigit() or float(value) <= 0:
            return False
        choose("strength", float(value))
        if "defence" not in params:
            choose("defence", "text_to_text")
        return True
    found = next((a for a in allowed.get(name, [value]) if str(a) == value), None)
    if found is not None:
        choose(name, found)
    return found is not None


def drop_stale_map_link() -> None:
    """Take the choices out of the address as soon as one no longer tells the truth."""
    adopted = dict(st.session_state.get("_adopted_map_link", {}))
    now = {**dict(link_parts()), "text": text()}
    if any(name in now and now[name] != value for name, value in adopted.items()):
        for name in (*adopted, "eta"):
            st.query_params.pop(name, None)
        st.session_state["_adopted_map_link"] = {}
        st.session_state["_refused_map_link"] = []


def is_linked(name: str, value: object) -> bool:
    """Return whether a choice stands as the address asked for it."""
    adopted = st.session_state.get("_adopted_map_link", {})
    return name in adopted and adopted[name] == value


def link_parts() -> list[tuple[str, str]]:
    """Return what an address must say to open this view."""
    parts = [(name, str(chosen(name))) for name in _LINKED if chosen(name) not in (None, "none")]
    is_eta = str(chosen("defence")) in ("text_to_text", "token_representation",
                                        "sequence_representation")  # fmt: skip
    return parts + ([("eta", f"{chosen('strength'):g}")] if is_eta and chosen("strength") else [])


def upload_request() -> MapRequest | None:
    """Return the request for an upload whose map was found again after a reload."""
    found: MapRequest | None = st.session_state.get("_restored_upload")
    return found


def restore_map(request: MapRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    choose("corpus", UPLOAD if request.is_upload else request.source)
    choose("n", request.n)
    choose("method", request.spec.method)
    choose("dims", request.spec.n_components)
    for name in ("metric", "n_neighbors", "min_dist", "perplexity", "seed"):
        choose(name, getattr(request.spec, name))
    if request.is_upload:
        st.session_state["_restored_upload"] = request


def map_job() -> tuple[MapRequest, str] | None:
    """Return the job that this session waits for, and what it was asked."""
    found: tuple[MapRequest, str] | None = st.session_state.get("_map_job")
    return found


def remember_map_job(request: MapRequest | None, job_id: str = "") -> None:
    """Note the job that draws a map, here and in the address; None forgets it."""
    if request is None:
        st.session_state.pop("_map_job", None)
        st.query_params.pop("job", None)
    else:
        st.session_state["_map_job"] = (request, job_id)
        st.query_params["job"] = job_id


def own_maps() -> OrderedDict[MapRequest, DrawnMap]:
    """Return the maps of this session's own texts."""
    found: OrderedDict[MapRequest, DrawnMap] = st.session_state.setdefault(
        "_own_maps", OrderedDict()
    )
    return found


def remember_own(request: MapRequest, drawn: DrawnMap) -> None:
    """Keep a map of this session's own texts, the oldest giving way."""
    maps = own_maps()
    maps[request] = drawn
    while len(maps) > _MOST_OWN:
        maps.popitem(last=False)


def own_facts(file: MemoryFile, digest: str) -> FileFacts:
    """Return what an upload holds, looked up once while the file stays."""
    from core.corpora.uploads import upload_facts

    kept = st.session_state.get("_own_facts")
    if kept is None or kept[0] != (file.name, digest):
        kept = ((file.name, digest), upload_facts(file))
        st.session_state["_own_facts"] = kept
    found: FileFacts = kept[1]
    return found


def own_points(
    file: MemoryFile, digest: str, n: int, text_column: str | None, others: tuple[str, ...]
) -> Points:
    """Return the points of an upload, read once while nothing changes."""
    from core.projection.points import upload_points

    key = (digest, n, text_column, others)
    kept = st.session_state.get("_own_points")
    if kept is None or kept[0] != key:
        kept = (key, upload_points(file, n, text=text_column, others=others))
        st.session_state["_own_points"] = kept
    found: Points = kept[1]
    return found


@dataclass
class _Picked:
    """The selected points of a map, and whether the chart itself knows of them."""

    request: MapRequest
    rows: list[int]
    figure: object
    is_by_chart: bool = False
    to_mark: tuple[int, ...] = ()
    """What the figure marks by itself, since it forgot its selection when it changed."""


def marked_rows(request: MapRequest, figure: object) -> tuple[int, ...]:
    """Return the selected points that a figure has to mark by itself; none for most figures.

    A chart that changes forgets its selection. One that stays must not be handed other marks: that
    would be a change, and so forget what is being selected.
    """
    kept: _Picked | None = st.session_state.get("_picked")
    if kept is None or kept.request != request:
        return ()
    return kept.to_mark if kept.figure == figure else tuple(kept.rows)


def selection_of(request: MapRequest, picked: Sequence[int], figure: object) -> list[int]:
    """Return the selected points: those just picked, or those picked before on this map.

    A chart that changes forgets its selection, and that must not empty the table: an empty pick
    counts only where the same figure held a selection before.
    """
    kept: _Picked | None = st.session_state.get("_picked")
    to_mark = marked_rows(request, figure)
    rows = list(picked)
    if not picked and kept is not None and kept.request == request:
        is_undone = kept.figure == figure and kept.is_by_chart
        rows = [] if is_undone else list(kept.rows)
    st.session_state["_picked"] = _Picked(request, rows, figure, bool(picked), to_mark)
    return rows


def clear_selection() -> None:
    """Forget the selected points, from a callback; the chart is drawn anew without them."""
    st.session_state.pop("_picked", None)
    st.session_state["_chart_number"] = chart_number() + 1


def chart_number() -> int:
    """Return a number that changes when the chart has to forget what is selected in it."""
    return int(st.session_state.get("_chart_number", 0))


def remember_selection(kind: str, key: object, make: Any) -> Any:
    """Return what `make` returns, made once for a kind while the key stays the same."""
    store = st.session_state.setdefault("_selection_readings", {})
    if kind not in store or store[kind][0] != key:
        store[kind] = (key, make())
    return store[kind][1]
