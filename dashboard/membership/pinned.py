"""What of the page of membership goes into a story: what ships, and not a file of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from core.story.format import UNMEASURED
from core.studies.membership_shipped import Measured
from dashboard.membership import measured
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(found: Sequence[Measured], one: Measured | None) -> Seen:
    """Return what the attack that is shown rests on."""
    from core.story.views_read import origin
    from core.story.views_told import member_facts

    if one is None:
        return Seen(facts=UNMEASURED, commands=measured.commands(found))
    facts = (*member_facts(one), *origin(one.provenances))
    return Seen(facts=facts, commands=[one.study])
