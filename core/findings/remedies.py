"""The finding on remedies that do not change vectors, such as access control."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.core.findings.finding import Finding, Table, facts_of_none


@dataclass(frozen=True)
class Remedy:
    """A remedy outside the vectors, with the attackers that it stops and does not stop."""

    title: str
    what: str
    stops: str
    leaves: str


REMEDIES = (
    Remedy(
        "Access control",
        "Only the search itself reads the vectors; replies, logs and exports contain none.",
        "a curious colleague, and someone who stole the key of an application that can only send "
        "queries",
        "an administrator of the store, or an intruder in it",
    ),
    Remedy(
        "Encryption",
        "Encrypt disks, backups and connections; store the key apart from the vectors.",
        "someone who takes a disk or a backup, or listens on the line",
        "anyone with access: a running search has to decrypt the vectors that it compares",
    ),
    Remedy(
        "Retention",
        "When a text is deleted, its vector goes too, also from copies and caches.",
        "every later attacker: deleted vectors cannot be attacked",
        "copies made before",
    ),
    Remedy(
        "Redaction",
        "Remove names and numbers that the search does not need before encoding the text.",
        "direct recovery of the words that it removes: they are not in the vector",
        "recovery of any word that it does not remove, and guesses of removed words from the rest",
    ),
)


def remedies() -> Finding:
    """Build the finding on remedies outside the vectors and what they stop; none is measured."""
    return Finding(
        title="Access control, encryption and retention protect vectors without changing them",
        body="The first three remedies limit who gets the vectors, so the search **works as "
        "before**. Redaction and defences limit what the vectors reveal.",
        table=Table(
            columns=("Remedy", "What is done", "Stops", "Does not stop"),
            rows=tuple((each.title, each.what, each.stops, each.leaves) for each in REMEDIES),
        ),
        facts=facts_of_none("none: these are arguments, not measurements"),
        caveat="How much each remedy helps was not measured. An attacker who obtains the vectors "
        "despite them recovers what the attacks here recover.",
    )
