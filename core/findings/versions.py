"""Library versions and encoder fingerprint for a report."""

from __future__ import annotations

from collections.abc import Mapping

from leakscope.core.attacks.inversion import shipped
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import Fact
from leakscope.core.storage.artifacts import META, read_record
from leakscope.core.training.record import versions

_TITLES = {"python": "Python", "torch": "torch", "transformers": "transformers"}


def format_versions(found: Mapping[str, str]) -> str:
    """Format the versions of Python and of the libraries that compute vectors.

    Examples
    --------
    >>> format_versions({"python": "3.12.1", "numpy": "2.1.0", "torch": "2.6.0"})
    'Python 3.12.1, torch 2.6.0'
    """
    return ", ".join(f"{title} {found[name]}" for name, title in _TITLES.items() if found.get(name))


def installed_versions() -> str:
    """Format the installed versions that a report states."""
    return format_versions(versions())


def encoder_facts(name: str = "minilm") -> tuple[Fact, ...]:
    """Return the fact on the bundled encoder's fingerprint, as shipped attacks record it."""
    try:
        record = read_record(shipped.WEIGHTS / name / "probe_mlc" / META, training=dict)["training"]
        digest = str(record["encoder_fingerprint"])[:12]
    except (CoreError, OSError, KeyError):
        return ()
    return (("Bundled encoder", f"{ENCODERS[name].title}, fingerprint {digest}"),)
