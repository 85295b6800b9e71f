"""The defences of the trade-off study: every one, at the strengths that are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.defences.order import check_order
from core.defences.registry import all_defences, stages_of
from core.defences.told import read_defence
from core.defences.trained.registry import MODEL_DEFENCES, NETWORK_DEFENCES, TRAINED_DEFENCES
from core.registry import make
from core.specs import DefenceSpec

__all__ = [
    "GRID",
    "NEWER",
    "TRAINED",
    "chosen_defences",
    "hides_attribute",
    "is_of_model",
    "is_of_network",
    "sent_by",
    "trained_stage",
]

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
"""Every defence, at strengths from hardly felt to hardly useful, for vectors of length 1."""

NEWER: tuple[DefenceSpec, ...] = (
    *(DefenceSpec.of("text_to_text_ranked", {"eta": e}) for e in (60.0, 90.0, 120.0)),
    *(DefenceSpec.of("santext", {"epsilon": e}) for e in (10.0, 12.0, 14.0, 18.0)),
    *(DefenceSpec.of("santext_plus", {"epsilon": e}) for e in (10.0, 12.0, 14.0)),
    *(DefenceSpec.of("custext", {"epsilon": e}) for e in (1.0, 4.0, 10.0)),
    *(DefenceSpec.of("tem", {"epsilon": e}) for e in (12.0, 18.0, 24.0)),
)
"""The mechanisms that came after, at strengths of theirs; measured where they are named."""

TRAINED: tuple[DefenceSpec, ...] = (
    *(DefenceSpec.of("adversarial", {"against": "words", "weight": w}) for w in (0.3, 1.0, 3.0)),
    *(DefenceSpec.of("adversarial", {"against": "attribute", "weight": w}) for w in (1.0, 10.0)),
    DefenceSpec(name="leace"),
    *(DefenceSpec.of("private_head", {"epsilon": e}) for e in (8.0, 1.0)),
)
"""Those that are trained, and those of a model's training texts; measured where they are named."""


def chosen_defences(told: Sequence[str]) -> list[DefenceSpec]:
    """Return the defences that words name, each once.

    Parameters
    ----------
    told : sequence of str
        `gaussian` for all its strengths in GRID, NEWER or TRAINED, `gaussian:sigma=0.3` for one of
        one's own, `text_to_text:eta=60+int8` for a chain. What is trained stands first in a chain.

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
    for each in told:
        in_grid = [spec for spec in (*GRID, *NEWER, *TRAINED) if spec.name == each]
        specs = in_grid or [_whole(read_defence(each, option="--defences", known=all_defences()))]
        found.update(dict.fromkeys(specs))
    return list(found)


def _whole(spec: DefenceSpec) -> DefenceSpec:
    """Return a defence that tells by itself what it hides, after checking where it is trained."""
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
    """Return the stage of a defence that is trained; empty where none is.

    Examples
    --------
    >>> trained_stage("adversarial+gaussian"), trained_stage("gaussian")
    ('adversarial', '')
    """
    first = stages_of(name)[0]
    return first if first in TRAINED_DEFENCES else ""


def hides_attribute(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether a trained defence hides an attribute, so that its texts need labels."""
    stage = trained_stage(name)
    if not stage:
        return False
    against = settings.get("against", settings.get(f"{stage}.against"))
    return TRAINED_DEFENCES[stage].needs_labels or against == "attribute"


def is_of_model(name: str) -> bool:
    """Whether a defence is one of a model's training texts, and leaves vectors as they are."""
    return name in MODEL_DEFENCES


def is_of_network(name: str) -> bool:
    """Whether a defence is a network that reads what another one releases."""
    return name in NETWORK_DEFENCES


def sent_by(settings: Mapping[str, Any]) -> DefenceSpec:
    """Return the defence whose release a network reads: what is read of words is read of that.

    Examples
    --------
    >>> sent_by({"eta": 75.0, "network": "bilstm", "sends": "text_to_text"})
    DefenceSpec(name='text_to_text', settings=(('eta', 75.0),))
    """
    return DefenceSpec.of(settings["sends"], {"eta": settings["eta"]})
