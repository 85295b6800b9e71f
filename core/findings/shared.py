"""Sentences and facts that several findings share: attackers, intervals, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leakscope.core.attacks.inversion import shipped
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import ArtifactError, CoreError
from leakscope.core.findings.finding import Fact
from leakscope.core.results import Score
from leakscope.core.results.provenance import NOT_RECORDED, Provenance, describe_measured
from leakscope.core.storage.artifacts import META, read_record
from leakscope.core.training.record import versions

ENCODER = "minilm"
INTERVAL = "95 % CI"
F1_EXPLAINED = "F1 also counts wrong answers: 0 is no word, 100 is every word and no wrong answer"
_TITLES = {"python": "Python", "torch": "torch", "transformers": "transformers"}


def format_versions(found: Mapping[str, str]) -> str:
    """Format a mapping of library names to versions (Python, and those that compute vectors).

    Examples
    --------
    >>> format_versions({"python": "3.12.1", "numpy": "2.1.0", "torch": "2.6.0"})
    'Python 3.12.1, torch 2.6.0'
    """
    return ", ".join(f"{title} {found[name]}" for name, title in _TITLES.items() if found.get(name))


def installed_versions() -> str:
    """Format the installed versions that a report states."""
    return format_versions(versions())


def encoder_facts() -> tuple[Fact, ...]:
    """Return the fact on the bundled encoder's fingerprint, as the shipped attacks recorded it."""
    try:
        place = shipped.WEIGHTS / ENCODER / "probe_mlc" / META
        digest = str(read_record(place, training=dict)["training"]["encoder_fingerprint"])[:12]
    except (CoreError, OSError, KeyError):
        return ()
    return (("Bundled encoder", f"{ENCODERS[ENCODER].title}, fingerprint {digest}"),)


def describe_every_word(f1: float | None) -> str:
    """Describe the F1 that counts out-of-vocabulary words as missed; empty if not recorded."""
    if f1 is None:
        return ""
    return (
        " An attack can name only the words of its vocabulary. If all other words count as missed, "
        f"the F1 is **{f1:.0f}**."
    )


def held_out_records() -> dict[str, Any]:
    """Load the training records of shipped attacks that have a held-out score, by attack name.

    Raises
    ------
    ArtifactError
        No shipped attack has one.
    """
    found = {
        name: dict(read_record(shipped.WEIGHTS / ENCODER / name / META, training=dict)["training"])
        for name in INVERSION_ATTACKS
        if (shipped.WEIGHTS / ENCODER / name / META).exists()
    }
    scored = {name: record for name, record in found.items() if record.get("held_out")}
    if not scored:
        raise ArtifactError("No shipped attack has a recorded score on held-out sentences.")
    return scored


def needs(attack: str) -> str:
    """Return in words what a named inversion attack needs in addition to the vector."""
    return INVERSION_ATTACKS[attack].access.needs


def attacker_facts(
    attack: str, n_texts: int, record: dict[str, Any] | None = None
) -> tuple[Fact, ...]:
    """Return an inversion attack's facts as (name, text) pairs: attacker, access and cost."""
    trained = f"trained on {n_texts:,} sentences"
    if record and "seconds" in record:
        trained += f" in {float(record['seconds']) / 60:.0f} minutes"
    return (
        ("Attacker", INVERSION_ATTACKS[attack].title),
        ("Access", needs(attack)),
        ("Cost", trained),
    )


def list_f1_scores(scores: dict[str, Score]) -> str:
    """List attack titles with their F1 in one line of text, for a figure's alternative text."""
    return ", ".join(f"{INVERSION_ATTACKS[n].title} {s.value:.0f}" for n, s in scores.items())


def provenance_facts(found: Any) -> tuple[Fact, ...]:
    """Merge measurements' provenances into facts (name, text): when and where, and versions."""
    known: Sequence[Provenance | None] = list(found)
    text = describe_measured(known, otherwise=NOT_RECORDED)
    return (
        ("Measured", text.removeprefix("measured ")),
        *versions_of(each.versions for each in known if each is not None),
    )


def versions_of(found: Iterable[Mapping[str, str]]) -> tuple[Fact, ...]:
    """Return a fact that lists measurements' distinct library versions; () if not recorded."""
    texts = {format_versions(each): None for each in found}
    return (("Versions", "; ".join(filter(None, texts))),) if any(texts) else ()
