"""Where a trained defence may stand in a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.defences.entries import DefenceEntry
from core.defences.registry import DEFENCES
from core.defences.trained.registry import TRAINED_DEFENCES
from core.errors import InvalidInputError

__all__ = ["check_order"]

_ENTRIES: Mapping[str, DefenceEntry] = {**DEFENCES, **TRAINED_DEFENCES}


def check_order(stages: Sequence[str]) -> None:
    """Check that what is trained stands first: it learns from vectors as the encoder gives them.

    Raises
    ------
    InvalidInputError
        It does not; the message says what can be done.
    """
    trained = [stage for stage in stages if stage in TRAINED_DEFENCES]
    if not trained or any(stage not in _ENTRIES for stage in stages):
        return
    why = f"{_ENTRIES[trained[0]].title} is trained on vectors of texts as they are"
    others = [s for s in stages if s in trained[1:] or _ENTRIES[s].acts_on in ("text", "tokens")]
    if others:
        raise InvalidInputError(
            f"{why}: it cannot stand with {_ENTRIES[others[0]].title}. Take one of them."
        )
    if stages[0] != trained[0]:
        raise InvalidInputError(f"{why}. Put it first.")
