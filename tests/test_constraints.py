"""Every package that is pulled in is pinned once, and the bill of materials lists the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from itertools import filterfalse
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.pins import (
    CONSTRAINTS,
    HASHES,
    HASHES_OF_TOOLS,
    ROOT,
    SBOM,
    is_by_index,
    pins_of,
    requirements_of,
    unmet,
)

REQUIREMENTS = sorted(ROOT.glob("requirements*.txt"))
REMEDY = "run `make lock`"


def pinned() -> dict[str, str]:
    return pins_of(CONSTRAINTS.read_text(encoding="utf-8"))


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def bill() -> dict[str, Any]:
    return dict(json.loads(SBOM.read_text(encoding="utf-8")))


def runtime() -> list[str]:
    return requirements_of((ROOT / "requirements.txt").read_text(encoding="utf-8"))


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
    assert unmet(requirements_of(path.read_text(encoding="utf-8")), pinned()) == [], REMEDY


@pytest.mark.parametrize("extra", extras())
def test_extras_and_constraints_agree(extra: str) -> None:
    assert unmet(extras()[extra], pinned()) == [], REMEDY


def test_what_the_wheel_asks_for_has_a_lower_and_an_upper_bound() -> None:
    """Exact pins would clash with whatever else is installed; an open range breaks one day."""
    optional = [line for lines in extras().values() for line in lines]
    for wanted in map(Requirement, [*runtime(), *optional]):
        assert {each.operator for each in wanted.specifier} == {">=", "<"}, wanted


def test_the_tools_are_pinned() -> None:
    tools = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    assert differing(pins_of(tools), pinned()) == {}, REMEDY


def test_nothing_that_the_runtime_pulls_in_floats() -> None:
    found = pulled_in(runtime())
    assert len(found) > len(runtime()), "transitive dependencies are looked at"
    assert differing(found, pinned()) == {}, f"{REMEDY}, or install what is pinned: `make test`"


def test_the_check_of_pins_can_fail() -> None:
    assert differing({"numpy": "1.0"}, pinned()) == {"numpy": "1.0"}
    assert differing({"unheard-of": "1.0"}, pinned()) == {"unheard-of": "1.0"}
    wrong = ["numpy>=1,<2", "unheard-of>=1"]
    assert unmet(["numpy>=2,<3", *wrong], {"numpy": "2.4.6"}) == [
        str(Requirement(w)) for w in wrong
    ]
    assert "numpy" in pulled_in(["scipy"])
    with pytest.raises(ValueError, match="numpy has no single pin"):
        pins_of("numpy==1.0\nnumpy==2.0 ; python_version >= '3.12'")


@pytest.mark.parametrize("version", ["3.11", "3.14", "3.15", "3.20"])
@pytest.mark.parametrize("system", ["linux", "darwin", "win32", "freebsd14"])
def test_no_platform_and_no_version_of_python_is_left_unchecked(version: str, system: str) -> None:
    """pip passes over lines of other platforms, and would take their packages unchecked."""
    lines = requirements_of(HASHES.read_text(encoding="utf-8"))
    wanted = [Requirement(line) for line in lines if "==" in line]
    here = {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "sys_platform": system,
        "platform_machine": "x86_64",
    }
    skipped = {w.name for w in wanted if w.marker and not w.marker.evaluate(here)}
    assert skipped <= {"colorama", "greenlet", "hf-xet", "tzdata", "watchdog"}, skipped


def hashed(path: Path) -> dict[str, str]:
    """Return the pins of a file of hashes; each has some."""
    text = path.read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[a-z])", re.sub(r"(?m)^#.*\n", "", text))
    for block in blocks:
        pin, *hashes = block.replace(" \\\n", "\n").splitlines()
        assert hashes, f"{pin} has no hash"
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes), pin
    return pins_of("\n".join(block.splitlines()[0] for block in blocks))


@pytest.mark.parametrize("path", [HASHES, HASHES_OF_TOOLS], ids=lambda path: path.name)
def test_hashes_are_of_what_is_pinned(path: Path) -> None:
    assert differing(hashed(path), pinned()) == {}, REMEDY
    assert not list(filter(is_by_index, hashed(path)))


def test_all_that_is_installed_has_hashes_but_what_indexes_serve_differently() -> None:
    runs = runtime()
    tools = requirements_of((ROOT / "requirements-dev.txt").read_text(encoding="utf-8"))
    assert set(filterfalse(is_by_index, pulled_in(runs))) <= set(hashed(HASHES)), REMEDY
    known = {**hashed(HASHES), **hashed(HASHES_OF_TOOLS)}
    assert set(filterfalse(is_by_index, pulled_in([*runs, *tools]))) <= set(known), REMEDY
    assert set(filter(is_by_index, pulled_in(runs))) - {"torch"} <= set(pinned())
    assert not set(hashed(HASHES)) & set(hashed(HASHES_OF_TOOLS)), "each in one file"


def test_whoever_installs_asks_for_hashes_first() -> None:
    for name in ("Makefile", "docs/Containerfile"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        installs = [line for line in lines if "pip install" in line and not line.startswith("#")]
        first = [line for line in installs if "--require-hashes --no-deps -r hashes.txt" in line]
        later = [line for line in installs if "-c constraints.txt" in line]
        assert len(first) == len(later) > 0, name
        for checked, rest in zip(first, later, strict=True):
            assert installs.index(checked) + 1 == installs.index(rest), name


@pytest.mark.slow
def test_a_file_that_was_exchanged_is_refused(tmp_path: Path) -> None:
    """pip's own check, on a wheel that is named like one of ours."""
    name, version = "threadpoolctl", pinned()["threadpoolctl"]
    wheel, about = tmp_path / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    text = HASHES.read_text(encoding="utf-8")
    (block,) = re.findall(rf"(?ms)^{name}==.*?(?=^[a-z]|\Z)", text)
    (tmp_path / "one.txt").write_text(block, encoding="utf-8")
    options = f"--no-index --find-links {tmp_path} --no-deps --target {tmp_path / 'there'}"
    command = [sys.executable, "-m", "pip", "install", *options.split()]
    plain = subprocess.run([*command, f"{name}=={version}"], capture_output=True, check=False)
    assert plain.returncode == 0, plain.stderr
    asked = [*command, "--upgrade", "--require-hashes", "-r", str(tmp_path / "one.txt")]
    refused = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "DO NOT MATCH THE HASHES" in refused.stderr


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
    optional = [line for lines in extras().values() for line in lines]
    assert set(pulled_in([*runtime(), *optional])) <= set(listed), REMEDY
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
