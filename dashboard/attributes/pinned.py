"""What of the page of attributes goes into a story: what ships, and not what is inferred here."""

from __future__ import annotations

from collections.abc import Sequence

from core.story.format import UNMEASURED
from core.studies.attribute_curves import View, mean_at, offered, strongest, views_of
from core.studies.rows import Row
from dashboard.attributes.views import STUDY
from dashboard.inversion.answers import ENCODER
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(rows: Sequence[Row], view: View | None) -> Seen:
    """Return what the finding at a view rests on."""
    from core.story.views_read import origin
    from core.story.views_told import author_facts

    attack = strongest(rows, view, ENCODER.name) if view is not None else ""
    one = mean_at(rows, view, attack, "top1", ENCODER.name) if view is not None else None
    if view is None or one is None:
        return Seen(facts=UNMEASURED, commands=[STUDY])
    what = str(rows[0].get("label", "label"))
    told = author_facts(view, attack, one.n, what)
    return Seen(
        facts=(*told, *origin(row.provenance for row in rows)),
        commands=[STUDY],
        opens="" if view == _first(rows) else _OPENS,
    )


_OPENS = "at the first view of the page: no address holds what was chosen above the figure"


def _first(rows: Sequence[Row]) -> View:
    """Return the view that the page opens with."""
    source = offered(rows)[0]
    labels, sizes = views_of(rows, source)
    return View(source, labels[-1], sizes[-1])
