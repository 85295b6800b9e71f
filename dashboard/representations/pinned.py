"""What of the page of representations goes into a story."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures.representations import encoder_title, representations_figure
from core.story.format import Table
from core.story.views_read import attacker_facts, origin
from core.studies.representation_order import least_leaking, strongest
from core.studies.representation_summary import Point
from dashboard.representations.controls import VIEW_NAMES
from dashboard.representations.finding import attack_name
from dashboard.representations.state import chosen
from dashboard.story.pinning import Seen

__all__ = ["seen"]

_COLUMNS = ("Encoder", "Useful, macro-F1", "Leaks, F1", "By")


def seen(points: Sequence[Point]) -> Seen:
    """Return the points of the chosen encoders and attacks."""
    best = least_leaking(points)
    if best is None or best.best.useful is None:
        return Seen()
    leak = best.best.leak
    tops = [p for p in strongest(points) if p.useful]
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
            ("Data", "news, as the page says"),
            ("n", f"{leak.f1.n:,} sentences attacked; {best.best.useful.n:,} articles sorted"),
            ("Interval", "95 %, in brackets"),
            *attacker_facts(leak.attack, leak.n_fitted_on),
            *origin(each for p in points for each in p.leak.provenances),
        ),
        commands=("representations", "classification"),
    )
