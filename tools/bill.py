"""Software bill of materials: all installed packages with licences, as CycloneDX JSON."""

from __future__ import annotations

import json
import re
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

UNSAID = {"cuda-toolkit": "LicenseRef-NVIDIA-Proprietary", "sarif-pydantic": "MIT"}
"""Licences that packages leave out of their metadata: from the file LICENSE beside it, or those of
the packages that it consists of."""

_LINK = re.compile(r",?(?: see)? *\S+://\S+")
"""What a summary tells of an address elsewhere: the list names no host."""


def licence_of(metadata: dict[str, Any]) -> str:
    """Return the licence that a package's metadata states, as SPDX where possible.

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
    """Return a reproducible CycloneDX bill of materials as JSON.

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
    components = {component.name: component for component in map(_component, described)}
    for name, component in components.items():
        component.scope = ComponentScope.REQUIRED if name in needed else ComponentScope.OPTIONAL
    bom = Bom(components=components.values())
    bom.metadata.component = root
    bom.register_dependency(root, [components[name] for name in direct])
    listed = "\n".join(sorted(f"{c.name}=={c.version}" for c in components.values()))
    bom.serial_number = uuid5(NAMESPACE_URL, listed)
    return _serialised(bom)


def _component(metadata: dict[str, Any]) -> Component:
    """Return a package's CycloneDX component."""
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


def _serialised(bom: Bom) -> str:
    """Serialise and validate a CycloneDX bill, without its timestamp."""
    data = json.loads(JsonV1Dot6(bom).output_as_string())
    del data["metadata"]["timestamp"]  # the same packages, the same file
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise ValueError(f"The bill of materials is no valid CycloneDX: {fault}")
    return text
