"""What every entry of a registry tells of its thing."""

from __future__ import annotations

import pytest

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.membership.classifiers.targets.registry import TARGETS
from core.attacks.membership.sentences.registry import SENTENCE_ATTACKS
from core.attacks.membership.words.registry import WORD_ATTACKS
from core.defences.registry import DEFENCES
from core.defences.trained.registry import TRAINED_DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from core.encoders.registry import ENCODERS
from core.registry import Entry

FAMILIES = (
    INVERSION_ATTACKS,
    WORD_ATTACKS,
    SENTENCE_ATTACKS,
    TARGETS,
    ENCODERS,
    DEFENCES,
    TRAINED_DEFENCES,
    OBJECTIVES,
)
ENTRIES: dict[str, Entry] = {name: e for family in FAMILIES for name, e in family.items()}


@pytest.mark.parametrize("name", [*ENTRIES, *(f"reader {name}" for name in READERS)])
def test_an_entry_tells_what_a_reader_needs(name: str) -> None:
    kind, _, reader = name.rpartition(" ")
    entry: Entry = READERS[reader] if kind else ENTRIES[name]
    assert entry.title and entry.summary and entry.reference and entry.cost
    # What a Sentence-Transformers model computes is told by the model alone.
    assert entry.formula or name == "st"
    for opened, closed in ("{}", "()"):
        assert entry.formula.count(opened) == entry.formula.count(closed)
    assert entry.formula.count(r"\big(") == entry.formula.count(r"\big)")


def test_no_name_stands_in_two_registries() -> None:
    assert len(ENTRIES) == sum(map(len, FAMILIES))


def test_a_strength_says_its_own_value() -> None:
    told: dict[str, Entry] = {name: e for name, e in DEFENCES.items() if e.strength}
    assert told
    for name in told:
        _, strength = DEFENCES[name].strength or ("", None)
        assert strength is not None
        assert len({strength.said.format(value) for value in strength.steps_for(384)}) == len(
            strength.steps_for(384)
        ), f"two steps of {name} are named alike"
