"""Pin every package on every platform, and list them with their licences: `make lock`.

Writes constraints.txt (by uv) and sbom.cdx.json (by CycloneDX's library, from what the packages
say of themselves). Versions stay where they are unless a requirement moves them;
`make lock ARGS=--upgrade` takes the newest. docs/decisions/0011-packaging.md says what was chosen.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tools.bill import bill_of_materials
from tools.pins import CONSTRAINTS, ROOT, SBOM, lines_of, pins_of, requirements_of

HEADER = """\
# Every package that Leakscope and its tools pull in, on Linux, macOS and Windows.
# Made by `make lock` from requirements*.txt and pyproject.toml: not to be edited by hand.
"""


def resolve(wanted: list[str]) -> dict[str, str]:
    """Return the pins of everything that `wanted` pulls in, by uv; today's pins are preferred."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "wanted.in"), Path(folder, "pins.txt")
        asked.write_text("\n".join(wanted), encoding="utf-8")
        if CONSTRAINTS.exists():
            shutil.copy(CONSTRAINTS, answer)
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
        # One version of a package for all: markers would only be needed to tell two apart.
        command += ["--python-version", "3.11", "--fork-strategy", "fewest", "--strip-extras"]
        command += ["--no-header", "--no-annotate", "--output-file", str(answer), str(asked)]
        subprocess.run(command, cwd=ROOT, check=True)
        return pins_of(answer.read_text(encoding="utf-8"))


def describe(pins: dict[str, str]) -> list[dict[str, Any]]:
    """Return what each package says of itself: its core metadata as JSON (PEP 566), by pip.

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
    """Write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    runtime = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    direct = requirements_of(runtime)
    tools = requirements_of((ROOT / "requirements-dev.txt").read_text(encoding="utf-8"))
    if "--upgrade" in sys.argv:
        CONSTRAINTS.unlink(missing_ok=True)
    pins = resolve([*direct, *tools, *extras])
    CONSTRAINTS.write_text(HEADER + "\n".join(lines_of(pins)) + "\n", encoding="utf-8")
    needed = resolve(direct)
    shipped = resolve([*direct, *extras])
    bill = bill_of_materials(project, set(pins_of(runtime)), set(needed), describe(shipped))
    SBOM.write_text(bill, encoding="utf-8")
    print(f"{len(pins)} packages pinned, {len(shipped)} of them listed in {SBOM.name}.")


if __name__ == "__main__":
    main()
