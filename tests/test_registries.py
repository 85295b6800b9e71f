"""What every entry of a registry tells of its thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import SimpleNamespace

import pytest

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.membership.classifiers.features import FEATURES
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS
from leakscope.core.attacks.membership.memorisation.extraction import RANKINGS
from leakscope.core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from leakscope.core.attacks.membership.registry import SENTENCE_ATTACKS, WORD_ATTACKS
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import NotFittedError
from leakscope.core.registry import Entry
from leakscope.core.specs import settings_of
from leakscope.core.studies.registry import STUDIES

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
    if is_dataclass(entry.kind):
        assert all(field.metadata["help"] for field in settings_of(entry.kind).values())


@pytest.mark.parametrize(
    "family", [ATTRIBUTE_ATTACKS, CLASSIFIER_ATTACKS, FEATURES, MEMORISATION_ATTACKS]
)
def test_an_attack_tells_what_it_computes(family: Mapping[str, Entry]) -> None:
    for name, entry in family.items():
        assert entry.title and entry.summary.endswith(".") and entry.reference, name
        assert entry.formula and entry.formula.count("{") == entry.formula.count("}"), name
        assert callable(entry.kind), name
    assert set(RANKINGS) <= set(MEMORISATION_ATTACKS)


def test_the_settings_of_every_study_have_a_help_text() -> None:
    for name, entry in STUDIES.items():
        assert all(field.metadata["help"] for field in settings_of(entry.kind).values()), name


@pytest.mark.parametrize("name", TRAINED_DEFENCES)
def test_a_defence_that_has_not_learnt_protects_nothing(name: str) -> None:
    with pytest.raises(NotFittedError):
        make_trained_defence(name).protect(SimpleNamespace(name="e", fingerprint="f", dimension=4))


def test_no_name_stands_in_two_registries() -> None:
    assert len(ENTRIES) == sum(map(len, FAMILIES))


def test_a_strength_says_its_own_value() -> None:
    told: dict[str, Entry] = {name: e for name, e in DEFENCES.items() if e.strength}
    assert told
    for name in told:
        _, strength = DEFENCES[name].strength or ("", None)
        assert strength is not None
        assert len({strength.pattern.format(value) for value in strength.steps_for(384)}) == len(
            strength.steps_for(384)
        ), f"two steps of {name} are named alike"
