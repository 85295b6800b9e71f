"""The grid of defences in the trade-off study, with the strengths that are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import all_defences, check_order
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.defences.trained.registry import (
    NETWORK_DEFENCES,
    TRAINED_DEFENCES,
    is_of_network,
)
from leakscope.core.registry import make
from leakscope.core.specs import DefenceSpec

GRID: tuple[DefenceSpec, ...] = (
    DefenceSpec(name="none"),
    *(DefenceSpec.of("text_to_text", {"eta": e}) for e in (45.0, 60.0, 75.0, 90.0, 120.0)),
    *(DefenceSpec.of("token_representation", {"eta": e}) for e in (120.0, 240.0, 480.0)),
    *(DefenceSpec.of("sequence_representation", {"eta": e}) for e in (200.0, 400.0, 800.0)),
    *(DefenceSpec.of("gaussian", {"sigma": s}) for s in (0.02, 0.05, 0.1)),
    DefenceSpec.of("rounding", {"decimals": 1}),
    DefenceSpec(name="int8"),
    DefenceSpec(name="binary"),
    *(DefenceSpec.of("truncation", {"dimension": d}) for d in (192, 96, 48)),
    *(DefenceSpec.of("random_projection", {"dimension": d}) for d in (192, 96, 48)),
)
"""Every defence, from almost no effect to almost no utility, for vectors of length 1."""

NEWER: tuple[DefenceSpec, ...] = (
    *(DefenceSpec.of("text_to_text_ranked", {"eta": e}) for e in (60.0, 90.0, 120.0)),
    *(DefenceSpec.of("santext", {"epsilon": e}) for e in (10.0, 12.0, 14.0, 18.0)),
    *(DefenceSpec.of("santext_plus", {"epsilon": e}) for e in (10.0, 12.0, 14.0)),
    *(DefenceSpec.of("custext", {"epsilon": e}) for e in (1.0, 4.0, 10.0)),
    *(DefenceSpec.of("tem", {"epsilon": e}) for e in (12.0, 18.0, 24.0)),
)
"""Later mechanisms with their strengths; measured only if named."""

TRAINED: tuple[DefenceSpec, ...] = (
    *(DefenceSpec.of("adversarial", {"against": "words", "weight": w}) for w in (0.3, 1.0, 3.0)),
    *(DefenceSpec.of("adversarial", {"against": "attribute", "weight": w}) for w in (1.0, 10.0)),
    DefenceSpec(name="leace"),
    *(DefenceSpec.of("private_head", {"epsilon": e}) for e in (8.0, 1.0)),
)
"""Trained defences, and those of a model's training texts; measured only if named."""


def chosen_defences(references: Sequence[str]) -> list[DefenceSpec]:
    """Parse references to defences, such as `gaussian` for all its strengths, without repeats.

    Parameters
    ----------
    references : sequence of str
        `gaussian` for all its strengths in GRID, NEWER or TRAINED, `gaussian:sigma=0.3` for another
        strength, `text_to_text:eta=60+int8` for a chain. A trained stage comes first in a chain.

    Raises
    ------
    InvalidInputError
        No such defence or setting, a value outside its range, or a chain that trains a late stage.

    Examples
    --------
    >>> [dict(spec.settings) for spec in chosen_defences(["rounding", "rounding:decimals=3"])]
    [{'decimals': 1}, {'decimals': 3}]
    >>> [dict(spec.settings) for spec in chosen_defences(["adversarial:weight=0.3"])]
    [{'against': 'words', 'weight': 0.3}]
    """
    found: dict[DefenceSpec, None] = {}
    for each in references:
        in_grid = [spec for spec in (*GRID, *NEWER, *TRAINED) if spec.name == each]
        specs = in_grid or [
            _complete_spec(read_defence(each, option="--defences", known=all_defences()))
        ]
        found.update(dict.fromkeys(specs))
    return list(found)


def _complete_spec(spec: DefenceSpec) -> DefenceSpec:
    """Return a spec with its training's settings filled in; raise if stages are out of order."""
    stages = stages_of(spec.name)
    check_order(stages)
    if is_of_network(spec.name):
        network = make(NETWORK_DEFENCES[spec.name], spec.name, dict(spec.settings))
        return DefenceSpec.of(spec.name, vars(network))
    if "adversarial" not in stages:
        return spec
    before = "adversarial." if len(stages) > 1 else ""
    usual = {f"{before}against": "words", f"{before}weight": 1.0}
    return DefenceSpec.of(spec.name, usual | dict(spec.settings))


def trained_stage(name: str) -> str:
    """Return the name of a defence's trained stage; "" if there is none.

    Examples
    --------
    >>> trained_stage("adversarial+gaussian"), trained_stage("gaussian")
    ('adversarial', '')
    """
    first = stages_of(name)[0]
    return first if first in TRAINED_DEFENCES else ""


def hides_attribute(name: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a trained defence hides an attribute, so that its texts need labels."""
    stage = trained_stage(name)
    if not stage:
        return False
    against = settings.get("against", settings.get(f"{stage}.against"))
    return TRAINED_DEFENCES[stage].needs_labels or against == "attribute"
