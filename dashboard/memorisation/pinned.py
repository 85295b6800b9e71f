"""What of the page of memorisation goes into a story: what ships, and not what is planted here."""

from __future__ import annotations

from core.story.format import UNMEASURED
from core.studies.memorisation_summary import Memorisation
from dashboard.memorisation import measured
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(found: Memorisation | None, with_canary: bool) -> Seen:
    """Return what the finding rests on; the canary in the command where it may be told."""
    from core.story.views_told import canary_facts

    return Seen(
        facts=canary_facts(found) if found is not None else UNMEASURED,
        commands=measured.commands(found, with_typed=with_canary),
    )
