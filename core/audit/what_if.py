"""What-if comparisons: leakage under other storage formats, defences, redaction or a rotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leakscope.core.audit.leakage import usable_rows
from leakscope.core.audit.sources import Sample
from leakscope.core.protocols import Encoder, OnProgress, no_progress
from leakscope.core.specs import DefenceSpec


class Table(Protocol):
    """The result of a what-if comparison."""

    @property
    def sentence(self) -> str:
        """The result in one or two sentences, with numbers."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows, encoder and attack that what-if comparisons are measured on.

    Attributes
    ----------
    sample : Sample
        Without a defence, with texts.
    encoder : Encoder
        The one that made the vectors.
    attack : str or None
        None for the strongest that needs no training.
    defences : sequence of DefenceSpec
        Those to compare.
    seed : int
    name : str
        How the tables call the rows.
    """

    sample: Sample
    encoder: Encoder
    attack: str | None
    defences: Sequence[DefenceSpec]
    seed: int
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that every comparison takes, except the rows."""
        return {"attack": self.attack, "seed": self.seed, "name": self.name}


def _compare_storage(rows: Rows, on_progress: OnProgress) -> Table:
    """Measure leakage in each storage format."""
    from leakscope.core.audit.storage import measure_storage

    return measure_storage(
        rows.sample,
        rows.encoder,
        on_progress=on_progress,
        **rows.settings,
    )


def _compare_remedies(rows: Rows, on_progress: OnProgress) -> Table:
    """Measure leakage behind each defence."""
    from leakscope.core.audit.remedy import measure_remedies

    return measure_remedies(
        rows.sample,
        rows.encoder,
        rows.defences,
        on_progress=on_progress,
        **rows.settings,
    )


def _compare_redaction(rows: Rows, on_progress: OnProgress) -> Table:
    """Measure leakage before and after personal data is redacted."""
    from leakscope.core.audit.personal.detection import find_personal_data, redact
    from leakscope.core.audit.remedy import measure_redacted

    held = set(usable_rows(rows.sample.texts))
    redacted = [
        redact(text, find_personal_data(text)) if text is not None and i in held else text
        for i, text in enumerate(rows.sample.texts or ())
    ]
    return measure_redacted(
        rows.sample,
        redacted,
        rows.encoder,
        on_progress=on_progress,
        **rows.settings,
    )


def _compare_rotation(rows: Rows, on_progress: OnProgress) -> Table:
    """Measure leakage of rotated vectors, by the number of known pairs."""
    from leakscope.core.audit.remedy import measure_rotation

    return measure_rotation(
        rows.sample,
        rows.encoder,
        on_progress=on_progress,
        **rows.settings,
    )


COMPARISONS: Mapping[str, Callable[[Rows, OnProgress], Table]] = {
    "storage": _compare_storage,
    "remedy": _compare_remedies,
    "redaction": _compare_redaction,
    "rotation": _compare_rotation,
}
"""Storage formats; defences; redacted personal data; a keyed rotation."""


def compare_all(
    names: Sequence[str], rows: Rows, on_progress: OnProgress = no_progress
) -> dict[str, Table]:
    """Run several of COMPARISONS on the same rows; return their tables by name."""
    found = {}
    for i, name in enumerate(names):

        def show(fraction: float, message: str, i: int = i) -> None:
            on_progress((i + fraction) / len(names), message)

        found[name] = COMPARISONS[name](rows, show)
    return found
