"""The finding of the map page, and its version for a story, without texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope.core.figures.projection import map_figure
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.projection import map_neighbours
from leakscope.core.projection.displacement import Displacement
from leakscope.core.projection.grouping import Grouping, is_numeric
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.selection import matching_rows
from leakscope.core.projection.shipped import CORPUS, N_POINTS
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.specs import DefenceSpec
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.pinned import is_typed
from leakscope.dashboard.projection import state
from leakscope.dashboard.projection.job import DrawnMap
from leakscope.dashboard.projection.state import CORPORA
from leakscope.dashboard.story.pinning import NOTHING_REPEATS, OWN_FILE, PinnedView
from leakscope.dashboard.ui import encoder_choice
from leakscope.dashboard.ui.state import text

_COLOUR, _SHAPE = "group", "second group"
"""Replacements for the column names of a file that must not appear in a story."""


@dataclass(frozen=True, kw_only=True)
class ShownMap:
    """The map, its colours and its defence as the page shows them.

    Attributes
    ----------
    typed : float32 array (1, c) or None
        The position of the typed sentence on the map.
    """

    request: MapRequest
    drawn: DrawnMap
    colour: str
    shape: str | None
    typed: NDArray[np.float32] | None = None
    defence: DefenceSpec | None = None
    moves: Displacement | None = None


def has_typed(request: MapRequest) -> bool:
    """Return whether the map shows typed text, a typed encoder or an upload."""
    written = (str(state.choice("search")), text() if is_typed(text()) else "")
    is_own = request.is_upload or encoder_choice.is_typed(request.on)
    return is_own or any(each.strip() for each in written)


def finding(shown: ShownMap, *, with_names: bool = True) -> Finding:
    """Build the finding on whether neighbours on the map share a column's value; no figure.

    It has no figure: the page draws an interactive map, and a story one without texts.
    """
    drawn, columns = shown.drawn, shown.drawn.points.columns
    if with_names:
        asked = [name for name in dict.fromkeys((shown.colour, "document")) if name in columns]
        titles = {n: f"range of {n}" if is_numeric(columns[n]) else n for n in asked}
    else:
        titles = {shown.colour: _COLOUR}
    scores = {title: drawn.column_agreement(name) for name, title in titles.items()}
    shares = {title: score for title, score in scores.items() if score}
    is_upload = shown.request.is_upload
    return map_neighbours(
        drawn.points,
        drawn.layout,
        shares,
        source="your own file" if is_upload else CORPORA[shown.request.source],
        commands=commands(shown),
        moved=(shown.defence, shown.moves) if shown.defence and shown.moves else None,
    )


def pinned(shown: ShownMap, with_typed: bool) -> PinnedView:
    """Build the finding and a map figure for a story, without the texts of the points.

    Parameters
    ----------
    with_typed : bool
        Whether to include the sentence, the search text, and the names and values of a file.
    """
    request, drawn = shown.request, shown.drawn
    is_neutral = request.is_upload and not with_typed
    names = (_COLOUR, _SHAPE) if is_neutral else (shown.colour, shown.shape)
    groupings = [drawn.grouping(name) if name else None for name in (shown.colour, shown.shape)]
    if is_neutral:
        groupings = [each and _anonymous_groups(each) for each in groupings]
    points, moves = drawn.points, shown.moves
    coloured = f"coloured by {names[0]}" + (f", shaped by {names[1]}" if groupings[1] else "")
    sought = str(state.choice("search")) if with_typed else ""
    assert groupings[0] is not None
    figure = map_figure(
        drawn.layout,
        [""] * len(points),
        title=f"{len(points):,} {points.unit}s, {coloured}",
        colour=groupings[0],
        shape=groupings[1],
        found=matching_rows(drawn.search_form, sought),
        typed=shown.typed if with_typed or not is_typed(text()) else None,
        moved=(moves.before, moves.after) if moves else None,
    ).update_layout(margin_t=60, title_pad_t=6)  # a slide has no toolbar
    return PinnedView(
        finding=replace(
            finding(shown, with_names=not is_neutral),
            figure=figure,
            alt=f"Map of {len(points):,} texts, {coloured}",
        ),
        withheld=("encoder",) * (not with_typed and encoder_choice.is_typed(request.on)),
        opens=OWN_FILE if request.is_upload else "",
        is_live=not request.is_upload,
    )


def commands(shown: ShownMap) -> tuple[str, ...]:
    """Return the commands that draw the map again, or the reason why there are none."""
    request = shown.request
    if request.is_upload:
        return (NOTHING_REPEATS,)
    asked = (request.source, request.n, request.on, request.spec.identity)
    if asked != (CORPUS, N_POINTS, answers.ENCODER, ProjectionSpec().identity):
        return ("none: only the page draws this map",)
    moved = ("none: only the page moves its points",) if shown.moves else ()
    return ("python -m scripts.projection_map", *moved)


def _anonymous_groups(grouping: Grouping) -> Grouping:
    """Rename the groups of a grouping to numbers, except the group of the rest."""
    names = [
        name if grouping.is_rest(i) else f"group {i + 1}" for i, name in enumerate(grouping.groups)
    ]
    return replace(grouping, groups=tuple(names))
