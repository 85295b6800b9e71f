"""Every package that is pulled in is pinned once, and the bill of materials lists the same."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.pins import CONSTRAINTS, ROOT, SBOM, pins_of, requirements_of

REQUIREMENTS = sorted(ROOT.glob("requirements*.txt"))
REMEDY = "run `make lock`"


def pinned() -> dict[str, str]:
    return pins_of(CONSTRAINTS.read_text(encoding="utf-8"))


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def bill() -> dict[str, Any]:
    return dict(json.loads(SBOM.read_text(encoding="utf-8")))


def differing(wanted: dict[str, str], pins: dict[str, str]) -> dict[str, str]:
    """Return what is wanted and not pinned so."""
    return {name: version for name, version in wanted.items() if pins.get(name) != version}


def pulled_in(lines: Iterable[str]) -> dict[str, str]:
    """Return name → version of all installed packages that requirements pull in here."""
    found: dict[str, str] = {}
    waiting = [(Requirement(line), "") for line in lines]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        try:
            package = distribution(wanted.name)
        except PackageNotFoundError:  # an extra that is not installed
            continue
        name = canonicalize_name(wanted.name)
        found[name] = Version(package.version).public
        for asked in {"", *wanted.extras}:
            if (name, asked) not in seen:
                seen.add((name, asked))
                waiting += [(Requirement(line), asked) for line in package.requires or []]
    return found


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_requirements_and_constraints_agree(path: Any) -> None:
    assert differing(pins_of(path.read_text(encoding="utf-8")), pinned()) == {}, REMEDY


@pytest.mark.parametrize("extra", extras())
def test_extras_and_constraints_agree(extra: str) -> None:
    assert differing(pins_of("\n".join(extras()[extra])), pinned()) == {}, REMEDY


def test_nothing_that_the_runtime_pulls_in_floats() -> None:
    runtime = requirements_of((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    found = pulled_in(runtime)
    assert len(found) > len(runtime), "transitive dependencies are looked at"
    assert differing(found, pinned()) == {}, f"{REMEDY}, or install what is pinned: `make test`"


def test_the_check_of_pins_can_fail() -> None:
    assert differing({"numpy": "1.0"}, pinned()) == {"numpy": "1.0"}
    assert differing({"unheard-of": "1.0"}, pinned()) == {"unheard-of": "1.0"}
    assert "numpy" in pulled_in(["scipy"])
    with pytest.raises(ValueError, match="numpy has no single pin"):
        pins_of("numpy==1.0\nnumpy==2.0 ; python_version >= '3.12'")


def test_constraints_hold_for_every_index_and_platform() -> None:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert list(pinned()) == sorted(pinned()) and len(pins) == len(pinned()) > 100
    assert not [line for line in lines if "://" in line or line.startswith("-")]
    assert not [line for line in pins if "+" in line or "[" in line or "@" in line]
    assert "nvidia-cudnn-cu13" in pinned(), "of torch's builds with CUDA, on Linux"
    assert "colorama" in pinned(), "on Windows"


def test_the_bill_of_materials_lists_what_is_pinned() -> None:
    listed = {part["name"]: part["version"] for part in bill()["components"]}
    assert differing(listed, pinned()) == {}, REMEDY
    runtime = requirements_of((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    optional = [line for lines in extras().values() for line in lines]
    assert set(pulled_in([*runtime, *optional])) <= set(listed), REMEDY
    assert "pytest" not in listed, "nobody who installs Leakscope gets it"


def test_the_bill_of_materials_tells_licences_and_what_is_optional() -> None:
    parts = {part["name"]: part for part in bill()["components"]}
    for name, part in parts.items():
        (licence,) = part["licenses"]
        said = licence.get("expression") or licence["license"].get("id")
        assert said or licence["license"]["name"], name
    assert parts["streamlit"]["scope"] == "required" and parts["ray"]["scope"] == "optional"
    assert parts["numpy"]["purl"] == f"pkg:pypi/numpy@{pinned()['numpy']}"


def test_the_bill_of_materials_is_the_same_each_time_it_is_made() -> None:
    found = bill()
    assert found["bomFormat"] == "CycloneDX"
    assert "timestamp" not in found["metadata"]
    assert found["serialNumber"].split("-")[2].startswith("5"), "from the packages, not by chance"
    text = SBOM.read_text(encoding="utf-8").replace(found["$schema"], "")
    assert "://" not in text, "no registry is named"
