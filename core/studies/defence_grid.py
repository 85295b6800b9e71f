"""The defences of the trade-off study: every one, at the strengths that are measured."""

from __future__ import annotations

from collections.abc import Sequence

from core.defences.told import read_defence
from core.specs import DefenceSpec

__all__ = ["GRID", "NEWER", "chosen_defences"]

GRID: tuple[DefenceSpec, ...] = (
    DefenceSpec(name="none"),
    *(DefenceSpec.of("text_to_text", {"eta": e}) for e in (60.0, 75.0, 90.0, 120.0)),
    *(DefenceSpec.of("token_representation", {"eta": e}) for e in (120.0, 240.0, 480.0)),
    *(DefenceSpec.of("sequence_representation", {"eta": e}) for e in (200.0, 400.0, 800.0)),
    *(DefenceSpec.of("gaussian", {"sigma": s}) for s in (0.02, 0.05, 0.1)),
    DefenceSpec.of("rounding", {"decimals": 1}),
    DefenceSpec(name="int8"),
    DefenceSpec(name="binary"),
    *(DefenceSpec.of("truncation", {"dimension": d}) for d in (192, 96, 48)),
    *(DefenceSpec.of("random_projection", {"dimension": d}) for d in (192, 96, 48)),
)
"""Every defence, at strengths from hardly felt to hardly useful, for vectors of length 1."""

NEWER: tuple[DefenceSpec, ...] = (
    *(DefenceSpec.of("text_to_text_ranked", {"eta": e}) for e in (60.0, 90.0, 120.0)),
    *(DefenceSpec.of("santext", {"epsilon": e}) for e in (10.0, 12.0, 14.0, 18.0)),
    *(DefenceSpec.of("santext_plus", {"epsilon": e}) for e in (10.0, 12.0, 14.0)),
    *(DefenceSpec.of("custext", {"epsilon": e}) for e in (1.0, 4.0, 10.0)),
    *(DefenceSpec.of("tem", {"epsilon": e}) for e in (12.0, 18.0, 24.0)),
)
"""The mechanisms that came after, at strengths of theirs; measured where they are named."""


def chosen_defences(told: Sequence[str]) -> list[DefenceSpec]:
    """Return the defences that words name, each once.

    Parameters
    ----------
    told : sequence of str
        `gaussian` for all its strengths in GRID or NEWER, `gaussian:sigma=0.3` for one of one's
        own, `text_to_text:eta=60+int8` for a chain.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range.

    Examples
    --------
    >>> [dict(spec.settings) for spec in chosen_defences(["rounding", "rounding:decimals=3"])]
    [{'decimals': 1}, {'decimals': 3}]
    """
    found: dict[DefenceSpec, None] = {}
    for each in told:
        in_grid = [spec for spec in (*GRID, *NEWER) if spec.name == each]
        specs = in_grid or [read_defence(each, option="--defences")]
        found.update(dict.fromkeys(specs))
    return list(found)
