"""Code that comes to find something else raises its version, so that old cells are not taken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.results.rows import Row
from leakscope.core.studies.context import precision_of
from leakscope.core.studies.registry import STUDIES, cells_of, run_study
from tools.versions import FIRST, Record, changed, digest, entries, first_settings, recorded

REMEDY = (
    "Where the change can alter what it finds, raise `version` in its entry and run `python -m "
    'tools.versions`; where it cannot, run `python -m tools.versions --neutral "why"`.'
)


@pytest.fixture(scope="module")
def now() -> dict[str, Record]:
    return entries()


def test_every_change_raised_a_version_or_was_declared_neutral(now: dict[str, Record]) -> None:
    assert changed(now, recorded()) == [], REMEDY


def test_every_version_is_recorded(now: dict[str, Record]) -> None:
    assert now == recorded(), REMEDY


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An engine of three modules, the first of which imports the second."""
    core = tmp_path / "core"
    core.mkdir()
    (core / "attack.py").write_text(
        "from leakscope.core.words import split\n\ndef read(v): return split(v)\n"
    )
    (core / "words.py").write_text('def split(v):\n    """Split."""\n    return v * 2  # twice\n')
    (core / "other.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "matters"),
    [
        ("attack", "split(v)", "split(-v)", True),
        ("words", "v * 2", "v * 3", True),
        ("words", "Split.", "Split it.", False),
        ("words", "# twice", "", False),
        ("other", "x = 1", "x = 2", False),
    ],
)
def test_what_decides_is_the_code_of_a_module_and_of_what_it_imports(
    engine: Path, name: str, old: str, new: str, matters: bool
) -> None:
    before = digest("leakscope.core.attack", engine)
    path = engine / "core" / f"{name}.py"
    source = path.read_text()
    assert old in source
    path.write_text(source.replace(old, new))
    digest.cache_clear()
    assert (digest("leakscope.core.attack", engine) != before) is matters


def test_every_default_and_every_weight_that_ships_is_recorded() -> None:
    assert first_settings() == json.loads(FIRST.read_text(encoding="utf-8")), REMEDY


def test_a_raised_version_is_no_silent_change() -> None:
    before = {"attack a": Record(1, "x"), "attack b": Record(1, "x")}
    now = {"attack a": Record(2, "y"), "attack b": Record(1, "y"), "attack c": Record(1, "z")}
    assert changed(now, before) == ["attack b"]


def test_a_raised_version_measures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    class One:
        def cells(self) -> list[dict[str, Any]]:
            return [{"attack": "msp", "x": 1}]

    def measure(cell: dict[str, Any], folder: Path) -> list[Row]:
        measured.append(cell)
        return [Row(facts={"y": 1})]

    def run() -> None:
        run_study("encoders", One(), tmp_path)

    monkeypatch.setattr("leakscope.core.studies.inversion.representations.measure", measure)
    run()
    run()
    assert measured == [{"attack": "msp", "x": 1}], "the first version is not named"
    monkeypatch.setitem(INVERSION_ATTACKS, "msp", replace(INVERSION_ATTACKS["msp"], version=2))
    run()
    assert measured[1:] == [{"attack": "msp", "x": 1, "versions": {"attack": 2}}]
    monkeypatch.setitem(STUDIES, "encoders", replace(STUDIES["encoders"], version=3))
    assert cells_of("encoders", One())[0]["versions"] == {"study": 3, "attack": 2}


def test_vectors_of_another_precision_are_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert precision_of({"encoder": "minilm"}) == {}
    monkeypatch.setattr("leakscope.core.training.devices.pick_precision", lambda device: "float16")
    assert precision_of({"encoder": "minilm"}) == {"precision": "float16"}
    assert precision_of({"encoder": "minilm", "encoder_precision": "bfloat16"}) == {}
    told = {"encoder": "minilm", "encoder_precision": "auto"}
    assert precision_of(told) == {"precision": "float16"}, "auto is another on every machine"
    assert precision_of({"corpus": "lee"}) == {}
