"""What keeps vectors from attackers without changing them, in words: beside the defences."""

from __future__ import annotations

from dataclasses import dataclass

from core.story.format import Slide, Table, facts_of_none

__all__ = ["REMEDIES", "Remedy", "remedies"]


@dataclass(frozen=True)
class Remedy:
    """A remedy that is no mathematics: whom it stops, and whom not."""

    title: str
    what: str
    stops: str
    leaves: str


REMEDIES = (
    Remedy(
        "Access",
        "Only the search itself reads the vectors; replies, logs and exports hold none.",
        "the curious colleague, the leaked key of an application that only asks",
        "whoever administers the store, or breaks into it",
    ),
    Remedy(
        "Encryption",
        "Of disks, backups and lines; the key lies elsewhere than the vectors.",
        "who carries off a disk or a backup, who listens on the line",
        "whoever is let in: a running search has to decrypt what it compares",
    ),
    Remedy(
        "Retention",
        "A vector goes when its text goes, from copies and caches too.",
        "every attacker who comes later: what is not kept is not read",
        "copies that were made before",
    ),
    Remedy(
        "Less in the text",
        "Names and numbers that the search does not need go before the text is encoded.",
        "every attacker, of those words: they are not in the vector",
        "what the rest of the sentence tells",
    ),
)


def remedies() -> Slide:
    """Return what each remedy stops and what not: arguments, of which none is measured."""
    return Slide(
        title="Who gets at the vectors, and what goes into them, is no mathematics",
        body="The first three change no vector, so the search **stays as good as it is**: they "
        "decide who gets hold of the numbers. Defences decide what the numbers tell.",
        table=Table(
            columns=("Remedy", "What is done", "Stops", "Does not stop"),
            rows=tuple((each.title, each.what, each.stops, each.leaves) for each in REMEDIES),
        ),
        facts=facts_of_none("none: these are arguments, not measurements"),
        caveat="How much each of them helps was not measured. Whoever holds the vectors all the "
        "same reads what the slides before tell.",
    )
