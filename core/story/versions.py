"""What a report was made with and what it was measured with: versions, and which encoder."""

from __future__ import annotations

from collections.abc import Mapping

from core.attacks.inversion import shipped
from core.encoders.registry import ENCODERS
from core.errors import CoreError
from core.store import META, read_record
from core.story.format import Fact
from core.training.record import versions

__all__ = ["encoder_facts", "made_with", "versions_told"]

_TOLD = {"python": "Python", "torch": "torch", "transformers": "transformers"}


def versions_told(found: Mapping[str, str]) -> str:
    """Return the versions of Python and of what encoders compute with.

    Examples
    --------
    >>> versions_told({"python": "3.12.1", "numpy": "2.1.0", "torch": "2.6.0"})
    'Python 3.12.1, torch 2.6.0'
    """
    return ", ".join(f"{title} {found[name]}" for name, title in _TOLD.items() if found.get(name))


def made_with() -> str:
    """Return the versions that are installed here, of what a report tells."""
    return versions_told(versions())


def encoder_facts(name: str = "minilm") -> tuple[Fact, ...]:
    """Return which encoder comes with Leakscope, by the fingerprint that its attacks record."""
    try:
        record = read_record(shipped.WEIGHTS / name / "probe_mlc" / META, training=dict)["training"]
        digest = str(record["encoder_fingerprint"])[:12]
    except (CoreError, OSError, KeyError):
        return ()
    return (("Bundled encoder", f"{ENCODERS[name].title}, fingerprint {digest}"),)
