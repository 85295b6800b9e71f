"""Pin every package on every platform and list licences: `make lock`.

Writes constraints.txt and the hashes of what every index serves alike (by uv), and sbom.cdx.json
(by CycloneDX's library, from what the packages say of themselves). Versions stay where they are
unless a requirement moves them; `make lock ARGS=--upgrade` takes the newest within the ranges of
requirements.txt and pyproject.toml.
docs/decisions/0011-packaging.md says what was chosen.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.spdx import is_expression, is_supported_id
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from leakscope.core import __version__
from tools.pins import (
    CONSTRAINTS,
    HASHES,
    HASHES_OF_TOOLS,
    ROOT,
    SBOM,
    is_by_index,
    lines_of,
    names_of,
    pins_of,
    requirements_of,
)

UNSAID = {"cuda-toolkit": "LicenseRef-NVIDIA-Proprietary", "sarif-pydantic": "MIT"}
"""Licences that packages leave out of their metadata: from the file LICENSE beside it, or those of
the packages that it consists of."""

_LINK = re.compile(r",?(?: see)? *\S+://\S+")
"""What a summary tells of an address elsewhere: the list names no host."""


def licence_of(metadata: dict[str, Any]) -> str:
    """Return the licence in a package's core metadata, as an SPDX expression where possible.

    Raises
    ------
    ValueError
        It says nothing: look it up, and add it to `UNSAID`.

    Examples
    --------
    >>> licence_of({"name": "a", "license": "MIT"})
    'MIT'
    >>> licence_of({"name": "b", "license": "BSD", "classifier": ["License :: OSI :: BSD License"]})
    'BSD License'
    """
    if expression := metadata.get("license_expression"):  # PEP 639: SPDX already
        return str(expression)
    said = str(metadata.get("license") or "").strip()
    if said and (is_supported_id(said) or is_expression(said) or said.startswith("LicenseRef-")):
        return said
    kinds = [c.split(" :: ") for c in metadata.get("classifier", []) if c.startswith("License ::")]
    named = [words[-1] for words in kinds if len(words) > 2 or words[-1].endswith("License")]
    found = named or said.splitlines()[:1] or [UNSAID.get(canonicalize_name(metadata["name"]), "")]
    if not found[0]:
        raise ValueError(f"{metadata['name']} says nothing of its licence.")
    return " AND ".join(found)


def bill_of_materials(
    project: dict[str, Any], direct: set[str], needed: set[str], described: list[dict[str, Any]]
) -> str:
    """Build a reproducible CycloneDX bill of materials, as JSON text.

    Parameters
    ----------
    project : dict
        The table `project` of pyproject.toml.
    direct, needed : set of str
        Packages that Leakscope names, and all that come along without an extra.
    described : list of dict
        Core metadata of every package, those of the extras included.

    Raises
    ------
    ValueError
        The result is no valid CycloneDX.
    """
    root = Component(
        name=project["name"],
        version=__version__,
        description=project["description"],
        type=ComponentType.APPLICATION,
        licenses=[LicenseFactory().make_from_string(project["license"])],
        bom_ref=project["name"],
    )
    components = {component.name: component for component in map(_make_component, described)}
    for name, component in components.items():
        component.scope = ComponentScope.REQUIRED if name in needed else ComponentScope.OPTIONAL
    bom = Bom(components=components.values())
    bom.metadata.component = root
    bom.register_dependency(root, [components[name] for name in direct])
    listed = "\n".join(sorted(f"{c.name}=={c.version}" for c in components.values()))
    bom.serial_number = uuid5(NAMESPACE_URL, listed)
    return _serialise(bom)


def _make_component(metadata: dict[str, Any]) -> Component:
    """Build the CycloneDX component of a package from its core metadata."""
    name = canonicalize_name(metadata["name"])
    release = metadata["version"].partition("+")[0]  # a local build, such as torch's +cpu
    purl = PackageURL("pypi", None, name, release)
    return Component(
        name=name,
        version=release,
        description=_LINK.sub("", metadata.get("summary") or ""),
        type=ComponentType.LIBRARY,
        licenses=[LicenseFactory().make_from_string(licence_of(metadata))],
        purl=purl,
        bom_ref=purl.to_string(),
    )


def _serialise(bom: Bom) -> str:
    """Return a CycloneDX bill as JSON without its timestamp; raise ValueError if it is invalid."""
    data = json.loads(JsonV1Dot6(bom).output_as_string())
    del data["metadata"]["timestamp"]  # the same packages, the same file
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise ValueError(f"The bill of materials is no valid CycloneDX: {fault}")
    return text


HEADER = """\
# Every package that Leakscope and its tools pull in, on Linux, macOS and Windows.
# Made by `make lock` from requirements*.txt and pyproject.toml: not to be edited by hand.
"""
HASHED_HEADER = """\
# The SHA-256 of every file of {what}, but for PyTorch and its CUDA,
# whose files differ from index to index. Made by `make lock`: not to be edited by hand.
"""


_PINNED = ("--constraints", str(CONSTRAINTS))
"""Options with which uv takes the pins as they are."""


def resolve(wanted: list[str], *more: str) -> dict[str, str]:
    """Return the pins of all packages that the wanted ones need, by uv, preferring current pins."""
    return pins_of(_compile_pins(wanted, *more))


def _compile_pins(wanted: list[str], *more: str, where: Path = ROOT) -> str:
    """Run `uv pip compile` on wanted requirements and return the text of pins."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "wanted.in"), Path(folder, "pins.txt")
        asked.write_text("\n".join(wanted), encoding="utf-8")
        if CONSTRAINTS.exists():
            shutil.copy(CONSTRAINTS, answer)
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
        # One version of a package for all: markers would only be needed to tell two apart.
        command += ["--python-version", "3.11", "--fork-strategy", "fewest", "--strip-extras"]
        command += ["--no-header", "--no-annotate", *more, "--output-file", str(answer), str(asked)]
        subprocess.run(command, cwd=where, check=True)
        return answer.read_text(encoding="utf-8")


def hashed(wanted: list[str]) -> dict[str, str]:
    """Return the pins with file hashes of packages that every index serves alike, by name.

    For every platform: one that is not named would else install all of it, and check nothing.
    """
    with tempfile.TemporaryDirectory() as elsewhere:
        lines = _compile_pins(
            wanted, "--generate-hashes", *_PINNED, where=Path(elsewhere)
        ).splitlines()
    known = pins_of(CONSTRAINTS.read_text(encoding="utf-8"))
    starts = [i for i, line in enumerate(lines) if not line.startswith(" ")]
    blocks = ["\n".join(lines[a:b]) for a, b in pairwise([*starts, len(lines)])]
    named = {next(iter(pins_of(block.splitlines()[0]))): block for block in blocks}
    return {name: block for name, block in named.items() if name in known and not is_by_index(name)}


def describe(pins: dict[str, str]) -> list[dict[str, Any]]:
    """Fetch each pinned package's core metadata as JSON, by pip, without installing.

    Nothing is installed, and where the index serves metadata apart, nothing is downloaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
        command += ["--ignore-installed", "--ignore-requires-python", "--report", str(report)]
        command += [f"{name}=={version}" for name, version in pins.items()]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [entry["metadata"] for entry in found]


def main() -> None:
    """Resolve all requirements; write the constraints, the hashes and the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    direct = requirements_of((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    tools = requirements_of((ROOT / "requirements-dev.txt").read_text(encoding="utf-8"))
    if "--upgrade" in sys.argv:
        CONSTRAINTS.unlink(missing_ok=True)
    pins = resolve([*direct, *tools, *extras])
    CONSTRAINTS.write_text(HEADER + "\n".join(lines_of(pins)) + "\n", encoding="utf-8")
    needed, runs = resolve(direct, *_PINNED), hashed(direct)
    with_tools = hashed([*direct, *tools])
    added = {name: block for name, block in with_tools.items() if name not in runs}
    for path, what, blocks in (
        (HASHES, "what Leakscope needs to run", runs),
        (HASHES_OF_TOOLS, "what its tests and tools add", added),
    ):
        path.write_text(
            HASHED_HEADER.format(what=what) + "\n".join(blocks.values()) + "\n", encoding="utf-8"
        )
    shipped = resolve([*direct, *extras], *_PINNED)
    bill = bill_of_materials(project, names_of(direct), set(needed), describe(shipped))
    SBOM.write_text(bill, encoding="utf-8")
    print(f"{len(pins)} packages pinned, {len(shipped)} of them listed in {SBOM.name}.")


if __name__ == "__main__":
    main()
