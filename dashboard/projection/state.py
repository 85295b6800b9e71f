"""What one visitor has chosen on the page of maps, and the maps of this session's own texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.corpora.memory_file import MemoryFile
from core.defences.registry import DEFENCES
from core.projection.job import MapRequest
from core.projection.moves import movable
from core.projection.spec import METHODS, ProjectionSpec
from dashboard.address import Address, NotOffered, Parameter
from dashboard.apart import parsed
from dashboard.kept import Kept
from dashboard.state import text_parameter

if TYPE_CHECKING:
    from core.projection.points import Points
    from dashboard.projection.drawn import DrawnMap

__all__ = [
    "CORPORA",
    "COUNTS",
    "MOVED",
    "UPLOAD",
    "MapRequest",
    "adopt",
    "chosen",
    "chosen_spec",
    "choose",
    "is_own_forgotten",
    "file_key",
    "forget_refused",
    "key_of",
    "own_maps",
    "own_points",
    "refuse_file",
    "refused_file",
    "restore_map",
    "tell_own",
    "upload_request",
]

_POINTS: Kept[tuple[Any, ...], Points] = Kept("_own_points", 1)

UPLOAD = "upload"
CORPORA = {
    "bundled": "News and encyclopaedia",
    "lee": "News (Lee)",
    "wikipedia": "Wikipedia extract",
    UPLOAD: "Your own file",
}
COUNTS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
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


def _options() -> dict[str, Sequence[Any] | None]:
    """Return what an address may ask for; columns are known when the texts are."""
    return {
        "corpus": [name for name in CORPORA if name != UPLOAD],
        "n": COUNTS,
        "method": tuple(METHODS),
        "dims": (2, 3),
        "colour": None,
        "shape": None,
        "defence": ("none", *movable()),
        "n_moved": MOVED,
        "search": None,
        "metric": ("cosine", "euclidean"),
        "n_neighbors": range(2, 101),
        "min_dist": tuple(i / 100 for i in range(100)),
        "perplexity": tuple(map(float, range(2, 101))),
    }


def _read_seed(text: str) -> int:
    if not 0 <= int(text) < 2**32:
        raise NotOffered
    return int(text)


_MORE = ("n_moved", "metric", "n_neighbors", "min_dist", "perplexity")
"""What a link says where it is not as usual."""


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


def adopt() -> Address:
    """Take over the choices of the address; return what it may ask for.

    `?corpus=lee&n=2000&method=umap&dims=3&colour=document&shape=…&defence=…&eta=75&text=…`, and
    what stands under the further settings of a method. An address opens the bundled corpora alone:
    following a link must not read other files.
    """
    for name, value in _DEFAULTS.items():
        st.session_state.setdefault(key_of(name), value)
    parameters = (_parameter(name, options) for name, options in _options().items())
    address = Address("projection", (*parameters, _SEED, _ETA, text_parameter()))
    if "eta" in address.adopt() and "defence" not in st.query_params:
        choose("defence", "text_to_text")
    return address


def _parameter(name: str, options: Sequence[Any] | None) -> Parameter:
    return Parameter(
        name=name,
        key=key_of(name),
        options=options,
        write=lambda value: None if value in _unsaid(name) else str(value),
    )


def _unsaid(name: str) -> tuple[Any, ...]:
    """Return the values that a link leaves out."""
    usual = (_DEFAULTS[name],) if name in _MORE else ()
    return (None, "none", "", UPLOAD, *usual)


def _read_eta(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise NotOffered
    return float(text)


def _write_eta(strength: float | None) -> str | None:
    """Return η where the strength of the defence is one."""
    declared = DEFENCES[str(chosen("defence"))].strength
    is_eta = declared is not None and declared[0] == "eta"
    return f"{strength:g}" if strength and is_eta else None


_SEED = Parameter(
    name="seed",
    key=key_of("seed"),
    read=_read_seed,
    write=lambda seed: str(seed) if seed else None,
    hint="seed is a whole number from 0.",
)
_ETA = Parameter(name="eta", key=key_of("strength"), read=_read_eta, write=_write_eta)


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


def tell_own(is_own: bool) -> None:
    """Say in the address that the map is of a file of the visitor's own, and nothing about it."""
    if is_own:
        st.query_params["own"] = "1"
        st.session_state["_has_own"] = True
    elif st.session_state.pop("_has_own", False):
        st.query_params.pop("own", None)


def is_own_forgotten() -> bool:
    """Return whether the page was reloaded over a file of the visitor's own, which went with it."""
    return "own" in st.query_params and not st.session_state.get("_has_own", False)


def own_maps() -> Kept[MapRequest, DrawnMap]:
    """Return the maps of this session's own texts."""
    return Kept("_own_maps", 2)


def file_key() -> str:
    """Return the key of what takes a file: another once a file was refused, which clears it."""
    n = int(st.session_state.get("_n_refused", 0))
    return f"{key_of('file')}-{n}" if n else key_of("file")


def refuse_file(why: str) -> None:
    """Clear the file that was sent, and keep why."""
    st.session_state["_n_refused"] = int(st.session_state.get("_n_refused", 0)) + 1
    st.session_state["_why_refused"] = why


def refused_file() -> str | None:
    """Return why the file sent last was refused, if it was."""
    why: str | None = st.session_state.get("_why_refused")
    return why


def forget_refused() -> None:
    """Forget why a file was refused: another came."""
    st.session_state.pop("_why_refused", None)


def own_points(
    file: MemoryFile, digest: str, n: int, text_column: str | None, others: tuple[str, ...]
) -> Points:
    """Return the points of an upload, read once while nothing changes."""
    from core.projection.points import upload_points

    key = (digest, n, text_column, others)
    made = partial(parsed, upload_points, file, n, text=text_column, others=others)
    return _POINTS.once(key, made)
