"""What of the map goes into a story: where points lie, without their texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.defences.registry import DEFENCES
from core.figures.projection import map_figure
from core.projection.looks import Looks
from core.projection.moves import Moves
from core.projection.selection import matching_rows
from core.projection.shipped import CORPUS, N_POINTS
from core.projection.spec import METHODS, ProjectionSpec
from core.specs import DefenceSpec
from core.story.format import Fact
from core.studies.tradeoff_point import strength
from dashboard import encoder_choice
from dashboard.inversion import answers
from dashboard.inversion.pinned import is_typed
from dashboard.projection import state, views
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.state import CORPORA, MapRequest
from dashboard.state import text
from dashboard.story.pinning import NOTHING_REPEATS, OWN_FILE, Noted, Seen

__all__ = ["Shown", "commands", "has_typed", "seen"]

_COLOUR, _SHAPE = "group", "second group"
"""What columns of a file are called where their names may not be told."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The map as it stands on the page.

    Attributes
    ----------
    typed : float32 array (1, c) or None
        Place of the sentence.
    """

    request: MapRequest
    drawn: DrawnMap
    colour: str
    shape: str | None
    typed: NDArray[np.float32] | None
    defence: DefenceSpec | None
    moves: Moves | None


def has_typed(request: MapRequest) -> bool:
    """Return whether the map shows something of the visitor's own."""
    written = (str(state.chosen("search")), text() if is_typed(text()) else "")
    is_own = request.is_upload or encoder_choice.is_typed(request.on)
    return is_own or any(each.strip() for each in written)


def seen(shown: Shown, with_typed: bool) -> Seen:
    """Return the map, how far it can be trusted, and where a defence moves its points.

    Parameters
    ----------
    with_typed : bool
        Whether the sentence, what was sought, and names and values of a file may be told.
    """
    request, drawn = shown.request, shown.drawn
    is_neutral = request.is_upload and not with_typed
    names = (_COLOUR, _SHAPE) if is_neutral else (shown.colour, shown.shape)
    looks = [drawn.looks(name) if name else None for name in (shown.colour, shown.shape)]
    if is_neutral:
        looks = [each and _numbered(each) for each in looks]
    points, moves = drawn.points, shown.moves
    coloured = f"coloured by {names[0]}" + (f", shaped by {names[1]}" if looks[1] else "")
    sought = str(state.chosen("search")) if with_typed else ""
    assert looks[0] is not None
    return Seen(
        figure=map_figure(
            drawn.layout,
            [""] * len(points),
            title=f"{len(points):,} {points.unit}s, {coloured}",
            colour=looks[0],
            shape=looks[1],
            found=matching_rows(drawn.folded, sought),
            typed=shown.typed if with_typed or not is_typed(text()) else None,
            moved=(moves.before, moves.after) if moves else None,
        ).update_layout(margin_t=60, title_pad_t=6),  # no tool bar lies over a slide
        alt=f"Map of {len(points):,} texts, {coloured}",
        facts=_facts(shown),
        commands=commands(shown),
        headline=_told(drawn, shown.colour) if is_neutral else None,
        withheld=("encoder",) * (not with_typed and encoder_choice.is_typed(request.on)),
        opens=OWN_FILE if request.is_upload else "",
        is_live=not request.is_upload,
    )


def commands(shown: Shown) -> tuple[str, ...]:
    """Return what draws the map anew, or that nothing does."""
    request = shown.request
    if request.is_upload:
        return (NOTHING_REPEATS,)
    asked = (request.source, request.n, request.on, request.spec.identity)
    if asked != (CORPUS, N_POINTS, answers.ENCODER, ProjectionSpec().identity):
        return ("none: no command draws this map, its page does",)
    moved = ("none: no command moves its points, its page does",) if shown.moves else ()
    return ("python -m core.projection.shipped", *moved)


def _numbered(looks: Looks) -> Looks:
    """Return the groups of a column by number, with what is no value of it as it is."""
    names = [name if looks.is_plain(i) else f"group {i + 1}" for i, name in enumerate(looks.groups)]
    return replace(looks, groups=tuple(names))


def _told(drawn: DrawnMap, colour: str) -> Noted:
    """Return the finding of the page without the name of the column."""
    headline = Noted.undrawn()
    views.finding(
        headline,
        replace(
            drawn,
            points=replace(drawn.points, columns={_COLOUR: ()}),
            agreements={_COLOUR: drawn.agreements.get(colour)},
        ),
        _COLOUR,
    )
    return headline


def _facts(shown: Shown) -> Iterable[Fact]:
    points, layout = shown.drawn.points, shown.drawn.layout
    trust, request = layout.trustworthiness.score, shown.request
    source = "a file of one's own" if request.is_upload else CORPORA[request.source]
    yield "Data", f"{len(points):,} {points.unit}s of {points.n_available:,}: {source}"
    yield "n", f"{trust.n:,} points asked about their neighbours"
    value, interval = trust.parts(3)
    yield "Interval", f"95 %: trustworthiness {value} ({interval})"
    yield "Attacker", "none: nothing is read, near points are shown; whoever has the vectors can"
    yield "Access", "the vectors; for colours and shapes, what is known of the texts"
    yield "Cost", f"drawn in {layout.seconds:.1f} s, nothing is trained"
    yield "Method", METHODS[layout.spec.method].title
    if shown.defence is not None and shown.moves is not None:
        linked, entry = shown.moves.linked, DEFENCES[shown.defence.name]
        said = strength(shown.defence.name, dict(shown.defence.settings))
        title = f"{entry.title}, {said}" if said else entry.title
        yield (
            "Moved",
            f"{title}: {linked.said(0)} % of {linked.n:,} protected vectors are still nearest to "
            f"their own original, by guessing {linked.chance:.2f} %",
        )
