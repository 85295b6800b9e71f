"""What-if comparisons: leakage under other storage formats, defences, redaction or a rotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from leakscope.core.audit.leakage import usable_rows
from leakscope.core.audit.personal.detection import find_personal_data, redact
from leakscope.core.audit.remedy import measure_redacted, measure_remedies, measure_rotation
from leakscope.core.audit.sources import Sample
from leakscope.core.audit.storage import measure_storage
from leakscope.core.protocols import Encoder, OnProgress, no_progress
from leakscope.core.specs import DefenceSpec


class Table(Protocol):
    """The result of a what-if comparison."""

    @property
    def sentence(self) -> str:
        """The result in one or two sentences, with numbers."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-able dict."""
        ...


def _compare_redaction(sample: Sample, encoder: Encoder, **settings: Any) -> Table:
    """Redact personal data in a sample's texts; measure the leakage before and after."""
    redacted = list(sample.texts or ())
    for i in usable_rows(redacted):
        text = redacted[i] or ""
        redacted[i] = redact(text, find_personal_data(text))
    return measure_redacted(sample, redacted, encoder, **settings)


COMPARISONS: Mapping[str, Callable[..., Table]] = {
    "storage": measure_storage,
    "remedy": measure_remedies,
    "redaction": _compare_redaction,
    "rotation": measure_rotation,
}
"""Storage formats; defences; redacted personal data; a keyed rotation."""


def compare_all(
    names: Sequence[str],
    sample: Sample,
    encoder: Encoder,
    defences: Sequence[DefenceSpec],
    *,
    attack: str | None,
    seed: int,
    name: str,
    on_progress: OnProgress = no_progress,
) -> dict[str, Table]:
    """Run the named what-if comparisons on one sample; return their tables by name.

    Parameters
    ----------
    sample : Sample
        Without a defence, with texts.
    encoder : Encoder
        The one that made the vectors.
    defences : sequence of DefenceSpec
        Those that `remedy` compares.
    attack : str or None
        None for the strongest that needs no training.
    name : str
        How the tables call the rows.
    """
    found = {}
    for i, kind in enumerate(names):

        def show(fraction: float, message: str, i: int = i) -> None:
            """Report the progress of one comparison as progress of all."""
            on_progress((i + fraction) / len(names), message)

        more = (defences,) if kind == "remedy" else ()
        found[kind] = COMPARISONS[kind](
            sample, encoder, *more, attack=attack, seed=seed, name=name, on_progress=show
        )
    return found
