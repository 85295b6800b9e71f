"""The views of the map page: the map, the typed sentence and the defence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from streamlit.components.v2 import component

from leakscope.core.assets import ROOT
from leakscope.core.defences.metric_dp.distances import has_d_chi_guarantee
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import CoreError
from leakscope.core.figures.point_map import point_map_data, rows_of
from leakscope.core.figures.projection import map_figure
from leakscope.core.findings.projection import link_sentence
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_percent
from leakscope.core.projection.displacement import Displacement, placeable_defences
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.layout import Layout
from leakscope.core.projection.points import Points, sample_rows
from leakscope.core.projection.selection import matching_rows
from leakscope.core.projection.spec import METHODS
from leakscope.core.protocols import Encoder
from leakscope.core.ranges import Strength
from leakscope.core.specs import DefenceSpec
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.text import check_text
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.pinned import is_typed
from leakscope.dashboard.projection import state
from leakscope.dashboard.projection.job import DrawnMap
from leakscope.dashboard.projection.state import control
from leakscope.dashboard.ui import encoder_choice, markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.guarantee import guarantees_of, show_guarantees
from leakscope.dashboard.ui.state import text

_HERE = ROOT / "dashboard" / "projection"
_BUTTONS = (
    ("select", "Select", "Draw a loop around points, or click one"),
    ("move", "Move", "Drag to move the map; Ctrl and the wheel zoom"),
    ("in", "+", "Zoom in"),
    ("out", "−", "Zoom out"),
    ("home", "Whole map", "Show all points"),
    ("view", "Select view", "Select all points in view"),
    ("save", "PNG", "Save the picture"),
)
_BAR = "".join(
    f'<button type="button" data-action="{action}" aria-label="{about}" title="{about}">'
    f"{label}</button>"
    for action, label, about in _BUTTONS
)
BODY = f"""<div class="point-map">
<div class="frame"><canvas role="img" tabindex="0"></canvas><canvas aria-hidden="true"></canvas>
<div class="bar" role="toolbar" aria-label="Map">{_BAR}</div><div class="tip" hidden></div></div>
<div class="legend"></div></div>"""
"""The elements of a map, which its script fills."""
_canvas = component(
    "leakscope_point_map",
    html=BODY,
    css=(_HERE / "point_map.css").read_text(encoding="utf-8"),
    js=(_HERE / "point_map.js").read_text(encoding="utf-8"),
)


def point_map(
    data: dict[str, Any], n_points: int, on_pick: Callable[[list[int]], None], key: str
) -> None:
    """Draw a map as a canvas; pass the indices of points that are selected in it to `on_pick`.

    Parameters
    ----------
    data : dict
        From `point_map_data`.
    n_points : int
        The number of points.
    """
    _canvas(
        key=key,
        data=data,
        on_picked_change=partial(_forward_selection, key, data["points"]["key"], n_points, on_pick),
    )


def _forward_selection(
    key: str, of: str, n_points: int, on_pick: Callable[[list[int]], None]
) -> None:
    """Pass the canvas's selected points to `on_pick`, unless they are those of an earlier map."""
    picked = st.session_state[key].picked
    if picked and picked["key"] == of:
        on_pick(rows_of(picked["bits"], n_points))


def place_sentence(encoder: Encoder, drawn: DrawnMap, *, is_upload: bool) -> np.ndarray | None:
    """Encode the typed sentence, draw its nearest texts, and return its position (or None)."""
    if is_upload and not is_typed(text()):
        st.caption("This is an example. Type a sentence to place it among your texts (★).")
        return None
    try:
        check_text(text())
        vector = encoder.encode([text()])
    except CoreError as error:
        show_error(error, title="Your sentence is not on the map")
        return None
    rows, distances = drawn.layout.nearest(vector, 3)
    texts = [neutral_cell(drawn.points.texts[i][:500]) for i in rows[0]]
    with st.expander("Nearest to your sentence (★)", icon=":material/near_me:"):
        st.dataframe(
            [
                {"text": text, "distance": round(float(d), 3)}
                for text, d in zip(texts, distances[0], strict=True)
            ],
            key="nearest",
            hide_index=True,
            column_config={
                "text": st.column_config.TextColumn("Text", width="large"),
                "distance": st.column_config.NumberColumn("Distance between vectors"),
            },
        )
        st.caption(METHODS[drawn.layout.spec.method].places_new)
    return drawn.layout.transform(vector)


def draw_map(
    request: MapRequest,
    drawn: DrawnMap,
    colour: str,
    shape: str | None,
    typed: np.ndarray | None,
    moves: Displacement | None,
    found: np.ndarray,
) -> None:
    """Draw the map: as a canvas in two dimensions, as a Plotly figure in three."""
    points, layout = drawn.points, drawn.layout
    method = METHODS[layout.spec.method].title
    encoder = "all-MiniLM-L6-v2" if request.on == answers.ENCODER else request.on.name
    title = f"{len(points):,} {points.unit}s encoded by {encoder}, coloured by {colour}"
    looks: dict[str, Any] = {
        "colour": drawn.grouping(colour),
        "shape": drawn.grouping(shape) if shape else None,
        "found": found,
        "typed": typed,
        "moved": (moves.before, moves.after) if moves else None,
    }
    if layout.spec.n_components == 2:
        st.caption("The words on the map come from the texts, not from the vectors.")
        data = point_map_data(
            layout.coordinates,
            points.texts,
            **looks,
            selected=state.selected_rows(request),
            labels=drawn.cluster_labels,
            alt=f"Map of {title}, by {method}. Arrow keys move it, + and − zoom, 0 shows all "
            "points; the button Select view selects the points in view, which are listed beside it",
            name="leakscope-map",
        )
        point_map(data, len(points), partial(state.select, request), "point-map")
    else:
        st.plotly_chart(
            map_figure(layout, drawn.hover, title=title, **looks),
            key="solid-map",
            config=chart_config("leakscope-map"),
            alt=f"Map of {title}, by {method}, in three dimensions",
        )


def search_hits(drawn: DrawnMap) -> np.ndarray:
    """Find the texts that contain the search string, draw their number, return their indices."""
    sought = str(state.choice("search")).strip()
    found = matching_rows(drawn.search_form, sought)
    if sought:
        st.markdown(f"{len(found):,} of {len(drawn.points):,} texts contain “{plain(sought)}”.")
    return found


def map_facts(points: Points, layout: Layout) -> None:
    """Draw the map's number of points, its trustworthiness and the preserved variance."""
    trust, method = layout.trustworthiness.score, METHODS[layout.spec.method]
    value, interval = trust.parts(3)
    kept = ""
    if layout.principal is not None:
        kept = f" The axes preserve {format_percent(sum(layout.principal.kept))} of the variance."
    st.markdown(
        f"**{points.description}.** The map's trustworthiness is **{value}**, where 1 means that "
        "points side by side always have similar vectors "
        f"(95 % CI {interval}; {trust.n:,} of the points, "
        f"with {layout.trustworthiness.k} neighbours each).{kept}",
        help=f"{method.title} preserves: {method.keeps} Drawn in {layout.seconds:.1f} s, random "
        f"seed {layout.spec.seed}.",
    )


def defence_picker(encoder: Encoder) -> DefenceSpec | None:
    """Draw selectors of a defence, its strength and what moves; return its spec or None."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Defence",
            ("none", *placeable_defences()),
            **control("defence"),
            format_func=lambda name: DEFENCES[name].title,
            help="Shows where the defence moves the vectors. The map does not change, its points "
            "move.",
            width=260,
        )
        entry = DEFENCES[name]
        if entry.is_baseline:
            return None
        settings: dict[str, Any] = {}
        if entry.strength:
            settings[entry.strength[0]] = _strength_slider(entry.strength[1], encoder.dimension)
        st.segmented_control(
            "Points moved",
            state.MOVED,
            **control("n_moved"),
            required=True,
            help="A random sample, always the same one. More lines would be hard to read.",
        )
    st.caption(f"{entry.summary} {entry.guarantee or 'It has no guarantee.'}")
    if "seed" in entry.kind.__dataclass_fields__:
        settings["seed"] = 0  # the same draw at every strength, so that only the strength differs
    return DefenceSpec.of(name, settings)


def _strength_slider(strength: Strength, dimension: int) -> float:
    """Draw the slider of a defence's strength and return the selected strength."""
    steps = strength.steps_for(dimension)
    here = state.choice("strength")
    if here not in steps:
        is_near = here is not None and min(steps) <= here <= max(steps)
        wanted = here if is_near else strength.start
        state.choose("strength", min(steps, key=lambda step: abs(step - wanted)))
    return st.select_slider(
        strength.title,
        steps,
        **control("strength"),
        format_func=lambda s: f"{s:g}",
        help="Strength of the defence",
        width=360,
    )


def displaced_points(
    encoder: Encoder, drawn: DrawnMap, defence: DefenceSpec
) -> Displacement | None:
    """Apply the defence to some points; return where they move, and draw how many link back."""
    if DEFENCES[defence.name].needs_white_box:
        try:
            require_white_box(encoder, DEFENCES[defence.name].title)
        except CoreError as error:
            show_error(error, title="This defence needs the encoder's weights")
            return None
    rows = sample_rows(len(drawn.points), int(state.choice("n_moved")))
    try:
        with st.spinner(f"Protecting {len(rows):,} texts"):
            moves = drawn.displacement(encoder, rows, defence)
    except CoreError as error:
        show_error(error, title="The points could not be moved")
        return None
    if has_d_chi_guarantee(defence.name):
        _show_guarantee(defence, drawn.points.texts[0])
    st.html(markup.label("What the defence hides"))
    st.markdown(
        f"{link_sentence(moves.linked)}. Anyone with the original vectors can link these. "
        "The map is not drawn again: protected vectors are placed on it."
    )
    return moves


def _show_guarantee(defence: DefenceSpec, example: str) -> None:
    """Draw the guarantee at the defence's η for the typed sentence, or for an example text."""
    eta, on = float(dict(defence.settings)["eta"]), encoder_choice.chosen_encoder()
    try:
        show_guarantees(guarantees_of(defence.name, eta, check_text(text() or example), on))
    except CoreError as error:
        st.caption(f"The guarantee of this η cannot be computed. {plain(str(error))}")
