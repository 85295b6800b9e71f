"""What the page of maps shows: the finding, the map, the typed sentence, the defence."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.defences.metric_dp.promised import is_promising
from core.defences.registry import DEFENCES
from core.encoders.white_box import require_white_box
from core.errors import CoreError
from core.figures.projection import map_figure
from core.projection.layout import Layout
from core.projection.looks import is_numeric, looks_of
from core.projection.moves import Moves, chosen_rows, movable
from core.projection.points import Points
from core.projection.quality import NeighbourScore, neighbour_agreement
from core.projection.selection import matching_rows
from core.projection.spec import METHODS
from core.protocols import Encoder
from core.ranges import Strength
from core.said import percent_said
from core.specs import DefenceSpec
from core.spreadsheets import neutral_cell
from core.text import check_text
from core.units import units_of
from dashboard import encoder_choice, markup
from dashboard.calm import plain, show_error
from dashboard.charts import chart_config
from dashboard.inversion import answers
from dashboard.projection import picked, state
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.state import MapRequest, key_of
from dashboard.promise import promises_of, show_promises
from dashboard.state import text

__all__ = ["defence_picker", "draw_map", "finding", "moved_points", "typed_place"]


def finding(slot: Any, drawn: DrawnMap, colour: str) -> None:
    """Draw the answer to the page's question: whether neighbours belong together."""
    points, layout = drawn.points, drawn.layout
    asked = [name for name in (colour, "document") if name in points.columns]
    found = {name: _agreement(drawn, name) for name in dict.fromkeys(asked)}
    told = {name: a for name, a in found.items() if a is not None}
    if not told:
        slot.title(f"{len(points):,} texts, as their vectors lie", anchor=False)
        slot.markdown(
            "The vectors alone decide where a point lies: near points are texts that "
            "the encoder takes for similar."
        )
        return
    told = {_called(points, name): a for name, a in told.items()}
    name, first = next(iter(told.items()))
    share, k = first.score, first.k
    value, interval = share.parts()
    is_more = share.ci95.low > share.chance
    than = "less than" if share.ci95.high < share.chance else "no more than"
    slot.title(
        f"{value} of {k} neighbours on this map share their {plain(name)}, by "
        f"chance {share.chance:.2g}"
        if is_more
        else f"Neighbours on this map share their {plain(name)} {than} by chance",
        anchor=False,
    )
    means = (
        "Whoever holds the vectors and no texts sees which of them belong together."
        if is_more
        else f"{value} of {k} do, by chance {share.chance:.2g} would."
    )
    slot.markdown(
        f"Each point is a text, put where its vector alone says. {means} 95 % interval "
        f"{interval}, n = {share.n:,} points."
        + "".join(_also(n, a) for n, a in told.items() if n != name)
        + f" Drawn by {METHODS[layout.spec.method].title}."
    )


def _called(points: Points, column: str) -> str:
    return f"range of {column}" if is_numeric(points.columns[column]) else column


def _also(name: str, found: NeighbourScore) -> str:
    share = found.score
    value, interval = share.parts()
    return (
        f" Of the same {plain(name)} are {value} of {found.k} neighbours (95 % interval "
        f"{interval}); by chance it would be {share.chance:.2g}."
    )


def _agreement(drawn: DrawnMap, column: str) -> NeighbourScore | None:
    kept = drawn.agreements
    if column not in kept:
        looks = looks_of(drawn.points.columns[column], 10**9)
        classes = [None if looks.is_plain(g) else int(g) for g in looks.of]
        kept[column] = neighbour_agreement(
            drawn.layout.coordinates, classes, units=units_of(drawn.points.texts)
        )
    return kept[column]


def typed_place(encoder: Encoder, drawn: DrawnMap) -> np.ndarray | None:
    """Return the place of the typed sentence, and draw which texts are nearest to it."""
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
                "distance": st.column_config.NumberColumn("Distance of the vectors"),
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
    moves: Moves | None,
) -> list[int]:
    """Draw the map with what is told of it, and return the selected points."""
    points, layout = drawn.points, drawn.layout
    sought = str(state.chosen("search"))
    found = matching_rows(drawn.folded, sought)
    title = f"{len(points):,} {points.unit}s as {_name_of(request)} sees them, coloured by {colour}"
    shown = (
        colour,
        shape,
        sought,
        None if typed is None else typed.tobytes(),
        None if moves is None else moves.after.tobytes(),
    )
    figure = map_figure(
        layout,
        drawn.hover,
        title=title + (f", shaped by {shape}" if shape else ""),
        colour=drawn.looks(colour),
        shape=drawn.looks(shape) if shape else None,
        found=found,
        typed=typed,
        moved=(moves.before, moves.after) if moves else None,
        selected=picked.marked_rows(request, shown),
    )
    event = st.plotly_chart(
        figure,
        key=f"map-{layout.spec.n_components}-{picked.chart_number()}",
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
        config=chart_config("leakscope-map", is_selectable=True),
        alt=f"Map of {len(points):,} texts by {METHODS[layout.spec.method].title}, coloured by "
        f"{colour}; the selected texts are listed in the table below",
    )
    _told(points, layout)
    if sought.strip():
        st.markdown(f"{len(found):,} of {len(points):,} texts hold “{plain(sought.strip())}”.")
    clicked = [_row_of(p) for p in (event.selection.points if event else [])]
    rows = sorted({row for row in clicked if row is not None and row < len(points)})
    return picked.selection_of(request, rows, shown)


def _name_of(request: MapRequest) -> str:
    return "all-MiniLM-L6-v2" if request.on == answers.ENCODER else request.on.name


def _row_of(point: dict[str, Any]) -> int | None:
    found = point.get("customdata")
    found = found[0] if isinstance(found, list | tuple) and found else found
    return int(found) if isinstance(found, int | float) else None


def _told(points: Points, layout: Layout) -> None:
    trust, method = layout.trustworthiness.score, METHODS[layout.spec.method]
    value, interval = trust.parts(3)
    kept = ""
    if layout.principal is not None:
        kept = f" The axes keep {percent_said(sum(layout.principal.kept))} of the variance."
    st.markdown(
        f"**{points.told}.** Trustworthiness **{value}** (95 % interval "
        f"{interval}, asked of {trust.n:,} points about {layout.trustworthiness.k} "
        "neighbours each): 1 would mean that neighbours on the map are neighbours among the "
        f"vectors.{kept}",
        help=f"{method.title} keeps: {method.keeps} Drawn in {layout.seconds:.1f} s, seed "
        f"{layout.spec.seed}.",
    )


def defence_picker(encoder: Encoder) -> DefenceSpec | None:
    """Draw the choice of a defence and its strength; return it, or None for none."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Defence",
            ("none", *movable()),
            key=key_of("defence"),
            persist_state="session",
            format_func=lambda name: DEFENCES[name].title,
            help="Where would the vectors lie under it? The map stays, the points move.",
            width=260,
        )
        entry = DEFENCES[name]
        if entry.is_baseline:
            return None
        settings: dict[str, Any] = {}
        if entry.strength:
            settings[entry.strength[0]] = _strength(entry.strength[1], encoder.dimension)
        st.segmented_control(
            "Points moved",
            state.MOVED,
            key=key_of("n_moved"),
            required=True,
            persist_state="session",
            help="Drawn at random, always the same ones. Too many lines cannot be read.",
        )
    st.caption(f"{entry.summary} {entry.guarantee or 'It promises nothing.'}")
    if "seed" in entry.kind.__dataclass_fields__:
        settings["seed"] = 0  # the same draw at every strength, so that the strength alone moves
    return DefenceSpec.of(name, settings)


def _strength(strength: Strength, dimension: int) -> float:
    steps = strength.steps_for(dimension)
    here = state.chosen("strength")
    if here not in steps:
        is_near = here is not None and min(steps) <= here <= max(steps)
        wanted = here if is_near else strength.start
        state.choose("strength", min(steps, key=lambda step: abs(step - wanted)))
    return st.select_slider(
        strength.title,
        steps,
        key=key_of("strength"),
        persist_state="session",
        format_func=lambda s: f"{s:g}",
        help="How strong the defence is",
        width=360,
    )


def moved_points(encoder: Encoder, drawn: DrawnMap, defence: DefenceSpec) -> Moves | None:
    """Return where the defence moves some points, and draw what that means."""
    if DEFENCES[defence.name].needs_white_box:
        try:
            require_white_box(encoder, DEFENCES[defence.name].title)
        except CoreError as error:
            show_error(error, title="This defence needs an encoder that is open")
            return None
    rows = chosen_rows(len(drawn.points), int(state.chosen("n_moved")))
    try:
        with st.spinner(f"Protecting {len(rows):,} texts"):
            moves = drawn.moved(encoder, rows, defence)
    except CoreError as error:
        show_error(error, title="The points could not be moved")
        return None
    if is_promising(defence.name):
        _promised(defence, drawn.points.texts[0])
    linked = moves.linked
    value, interval = linked.parts(0)
    st.html(markup.label("What the move hides"))
    st.markdown(
        f"**{value} %** of {linked.n:,} protected vectors are still nearest to their "
        f"own original (95 % interval {interval}; by guessing {linked.chance:.2f} %). "
        "Whoever has the original vectors links that many. The points are placed on the map as it "
        "is; it is not drawn anew."
    )
    return moves


def _promised(defence: DefenceSpec, example: str) -> None:
    """Draw what the η in force promises: for the sentence typed, else for a text of the map."""
    eta, on = float(dict(defence.settings)["eta"]), encoder_choice.chosen_encoder()
    try:
        show_promises(promises_of(defence.name, eta, check_text(text() or example), on))
    except CoreError as error:
        st.caption(f"What this η promises cannot be said. {plain(str(error))}")
