"""Damaged artefacts: each kind that is kept is one that damage is tried on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.storage.artifacts import save_artifact
from tools.fuzz.kit import Kit
from tools.fuzz.making import RUNS, Artefact
from tools.fuzz.opening import read_artefact
from tools.fuzz.play import Case, play
from tools.fuzz.targets import targets

READERS_OF_ARTEFACTS = {
    "core/attacks/inversion/linear_map.py": "checkpoint of a map to a layer",
    "core/attacks/inversion/shipped.py": "attack that borrows",
    "core/attacks/membership/classifiers/targets/networks.py": "answers of networks",
    "core/attacks/membership/classifiers/targets/private.py": "answers of heads",
    "core/audit/identification.py": "shape of an encoder's vectors",
    "core/defences/deniability/vocabulary.py": "statistics of tokens",
    "core/defences/stored.py": "defence leace",
    "core/defences/trained/private.py": "private classifier",
    "core/encoders/fitted.py": "encoder tfidf",
    "core/names/shipped.py": "example of names",
    "core/projection/layout_cache.py": "map",
    "core/projection/shipped.py": "vectors of the map",
    "core/studies/membership/trained_classifiers.py": "answers of a study",
    "core/studies/training/tuned_networks.py": "tuned network",
    "core/training/loop.py": "checkpoint of an attack",
}
"""Every file that calls a reader of artefacts, with a target that calls it from there."""

DOORS = {"core/training/checkpoint.py"}
"""Files of readers that others call: those are the ones that need a target."""


def test_every_reader_of_artefacts_is_a_target(kit: Kit) -> None:
    root = Path(__file__).parents[1]
    calling = {
        str(path.relative_to(root))
        for folder in ("core", "dashboard", "pages")
        for path in (root / folder).rglob("*.py")
        if re.search(
            r"(?<!def )\b(load_artifact|load_finished)\(", path.read_text(encoding="utf-8")
        )
    }
    assert calling - DOORS == READERS_OF_ARTEFACTS.keys()
    assert set(READERS_OF_ARTEFACTS.values()) <= set(targets(kit))


def test_all_that_is_fitted_and_kept_is_a_target(kit: Kit) -> None:
    kept = {"attack": INVERSION_ATTACKS, "encoder": FITTED_ENCODERS, "defence": TRAINED_DEFENCES}
    for family, names in kept.items():
        assert {f"{family} {name}" for name in names} <= set(targets(kit))
    assert {f"checkpoint of {run}" for run in RUNS} <= set(targets(kit))


@pytest.mark.slow
def test_an_artefact_that_is_whole_is_read(kit: Kit) -> None:
    for name, whole in kit.artefacts.items():

        def read(folder: Path, name: str = name, whole: Artefact = whole) -> object:
            save_artifact(folder / "a", whole.arrays, whole.meta)
            return read_artefact(name, folder / "a", kit)

        verdict = play(Case(name, read=read, is_whole=True))
        assert verdict.end == "done" and not verdict.problem, verdict
