"""What of the page of representations goes into a story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.attacks.inversion import INVERSION_ATTACKS
from core.figures.representations import (
    encoder_title,
    own_leaks_figure,
    representations_figure,
)
from core.story.format import Table, facts_of_none
from core.story.views_read import attacker_facts, origin
from core.studies.own_encoder import OwnLeak
from core.studies.prepared import QUICK
from core.studies.representation_order import judge_own, least_leaking, strongest
from core.studies.representation_summary import YOURS, Point
from dashboard.representations.controls import VIEW_NAMES
from dashboard.representations.finding import attack_name
from dashboard.representations.state import chosen
from dashboard.story.pinning import OWN_ROWS, Seen

__all__ = ["has_own", "seen", "seen_measured"]

_COLUMNS = ("Encoder", "Useful, macro-F1", "Leaks, F1", "By")


def has_own(points: Sequence[Point]) -> bool:
    """Return whether rows of the visitor's own are among what is shown."""
    return any(point.leak.encoder.startswith(YOURS) for point in points)


def seen(points: Sequence[Point], with_typed: bool) -> Seen:
    """Return the points of the chosen encoders and attacks; those brought by number or by name."""
    is_own, instead = has_own(points), _numbered(points) if not with_typed else {}
    found = _seen([_renamed(point, instead) for point in points])
    if not is_own:
        return found
    commands = (*found.commands, "none: rows of a study of one's own")
    return replace(found, commands=commands, instead=instead, opens=OWN_ROWS, is_live=False)


def seen_measured(found: Sequence[OwnLeak], with_typed: bool) -> Seen:
    """Return an encoder that was measured here beside the bundled one; by name where it may be."""
    own, bundled = found[0], found[-1]
    hidden = {} if with_typed or own is bundled else {own.encoder: "your encoder"}
    shown = [replace(leak, encoder=hidden.get(leak.encoder, leak.encoder)) for leak in found]
    return Seen(
        figure=own_leaks_figure(shown),
        alt="; ".join(f"{leak.encoder}: F1 {leak.f1.value:.0f}" for leak in shown),
        facts=(
            ("Data", "news that ships"),
            ("n", f"{own.f1.n:,} sentences attacked"),
            ("Interval", "95 %, in brackets"),
            ("Attacker", INVERSION_ATTACKS[QUICK.name].title),
            ("Access", INVERSION_ATTACKS[QUICK.name].access.needs),
        ),
        commands=("none: the page measures it",),
        instead=hidden,
        opens="not possible: the page measures an encoder when it is asked to",
        is_live=False,
    )


def _numbered(points: Sequence[Point]) -> dict[str, str]:
    """Return what encoders of the visitor's own are called where their names may not be told."""
    own = [name for name in chosen("encoder") if name.startswith(YOURS)]
    own += [point.leak.encoder for point in points if point.leak.encoder.startswith(YOURS)]
    return {name: f"{YOURS}encoder {i}" for i, name in enumerate(dict.fromkeys(own), 1)}


def _renamed(point: Point, instead: Mapping[str, str]) -> Point:
    """Return a point under the name that may be told, and then not on what it was measured."""
    name = instead.get(point.leak.encoder)
    if name is None:
        return point
    return replace(point, leak=replace(point.leak, encoder=name, provenances=()))


def _seen(points: Sequence[Point]) -> Seen:
    own, best = judge_own(points), least_leaking(points)
    if own:
        shown = own[0].own
    elif best is not None:
        shown = best.best
    else:
        return Seen(facts=facts_of_none("none: nothing that is shown can be compared"))
    leak, useful = shown.leak, shown.useful
    tops = [p for p in strongest(points) if p.useful or p.leak.encoder.startswith(YOURS)]
    tops.sort(key=lambda point: not point.leak.encoder.startswith(YOURS))
    sorted_ = "" if useful is None else f"; {useful.n:,} articles sorted"
    return Seen(
        figure=representations_figure(points, view=f"{VIEW_NAMES[chosen('view')]} "),
        alt=f"Words recovered against usefulness, a point for each of {len(tops)} encoders and "
        "each attack",
        table=Table(
            columns=_COLUMNS,
            rows=tuple(
                (
                    encoder_title(p.leak.encoder),
                    p.useful.said(0) if p.useful else "–",
                    p.leak.f1.said(0),
                    attack_name(p.leak),
                )
                for p in tops
            ),
        ),
        facts=(
            ("Data", _data(points)),
            ("n", f"{leak.f1.n:,} sentences attacked{sorted_}"),
            ("Interval", "95 %, in brackets"),
            *attacker_facts(leak.attack, leak.n_fitted_on),
            *origin(each for p in points for each in p.leak.provenances),
        ),
        commands=("representations", "classification"),
    )


def _data(points: Sequence[Point]) -> str:
    told = "news, strange to the attacks" if chosen("domain") == "cross" else "news"
    own = f"; of what begins with “{YOURS.strip()}”, what its study was measured on"
    return told + own * has_own(points)
