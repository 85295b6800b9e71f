"""Detect registry entries whose code has changed since their version was recorded.

Every entry of a registry has a version, part of what a study keeps its cells by. `versions.json`
holds for each the version and a digest of the code behind it: its module and all that it imports
from the engine, docstrings and comments aside. Where the two differ, either the version in the
entry is raised, so that cells are measured anew, or the change is declared neutral:

    python -m tools.versions                    records entries whose version was raised
    python -m tools.versions --neutral "why"    records every other change too

Both add to `first_settings.json` the defaults and weights that are new there: a cell names those
that have changed since.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import WEIGHTS
from leakscope.core.registry import Entry
from leakscope.core.studies.context import FAMILIES, FIRST, defaults_of, weight_digests
from leakscope.core.studies.inversion import tuning
from leakscope.core.studies.registry import STUDIES

ROOT = Path(__file__).parents[1]
RECORDED = Path(__file__).with_name("versions.json")
ALL: dict[str, Mapping[str, Entry]] = {**FAMILIES, "study": STUDIES}


@dataclass(frozen=True)
class Record:
    """An entry's version and the digest of its code at that time."""

    version: int
    code: str


def entries() -> dict[str, Record]:
    """Return each registry entry's current version and digest of its code, by name."""
    search = {
        "study tuning": Record(tuning.VERSION, digest("leakscope.core.studies.inversion.tuning"))
    }
    return search | {
        f"{family} {name}": Record(entry.version, digest(entry.path.partition(":")[0]))
        for family, registry in ALL.items()
        for name, entry in registry.items()
    }


def first_settings() -> dict[str, dict[str, Any]]:
    """Return defaults and weight digests as first recorded, with those of new entries added."""
    found = json.loads(FIRST.read_text(encoding="utf-8")) if FIRST.exists() else {}
    before: dict[str, dict[str, Any]] = {"defaults": {}, "weights": {}, **found}
    defaults = dict(before["defaults"])
    for family, registry in FAMILIES.items():
        for name, entry in registry.items():
            now = defaults_of(entry)
            if now:
                defaults[f"{family} {name}"] = now | defaults.get(f"{family} {name}", {})
    shipped = [path.name for path in sorted(WEIGHTS.iterdir()) if path.is_dir()]
    weights: dict[str, Any] = {}
    for encoder in shipped:
        weights |= weight_digests(encoder, [*INVERSION_ATTACKS])
    return {"defaults": defaults, "weights": weights | before["weights"]}


def recorded(path: Path = RECORDED) -> dict[str, Record]:
    """Read the versions and digests that were last recorded, by registry entry."""
    found = json.loads(path.read_text(encoding="utf-8"))["entries"]
    return {name: Record(**record) for name, record in found.items()}


def changed(now: Mapping[str, Record], before: Mapping[str, Record]) -> list[str]:
    """Return the names of entries whose code changed while their version did not."""
    return [
        name
        for name, record in now.items()
        if name in before
        and before[name].version == record.version
        and before[name].code != record.code
    ]


@cache
def digest(module: str, root: Path = ROOT) -> str:
    """Return a digest of the code of a module and of all engine modules that it imports."""
    seen, open_ones = set[str](), [module]
    while open_ones:
        name = open_ones.pop()
        is_list = name.endswith(".registry")  # of what else there is
        if name not in seen and not is_list and (path := _engine_file(name, root)) is not None:
            seen.add(name)
            open_ones += _imported_names(path.read_text(encoding="utf-8"))
    whole = hashlib.sha256()
    for name in sorted(seen):
        path = _engine_file(name, root)
        assert path is not None
        whole.update(f"{name} {bare(path.read_text(encoding='utf-8'))}\n".encode())
    return whole.hexdigest()[:16]


@cache
def bare(source: str) -> str:
    """Return a source text's AST without docstrings, as text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_docstring(part)] or [ast.Pass()]
    return ast.dump(tree)


def _is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is only a string, such as a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _imported_names(source: str) -> tuple[str, ...]:
    """Return the names of all modules that a source text may import."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return tuple(found)


def _engine_file(module: str, root: Path) -> Path | None:
    """Return the path of an engine module; None for other modules."""
    if not module.startswith("leakscope.core"):
        return None
    place = root.joinpath(*module.split(".")[1:])
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


def main() -> int:
    """Compare and record the entries' versions; exit status 1 if undeclared changes remain."""
    parser = argparse.ArgumentParser(prog="python -m tools.versions", description=__doc__)
    parser.add_argument("--neutral", metavar="WHY", help="the other changes change no result")
    why = parser.parse_args().neutral
    now = entries()
    before = recorded() if RECORDED.exists() else {}
    differing = changed(now, before)
    if differing and not why:
        print("Changed, with the version that they had:", ", ".join(differing), file=sys.stderr)
        print("Raise `version` in their entries, or give --neutral WHY.", file=sys.stderr)
        return 1
    notes = json.loads(RECORDED.read_text(encoding="utf-8"))["neutral"] if before else []
    content = {
        "entries": {name: vars(record) for name, record in now.items()},
        "neutral": [*notes, why] if differing else notes,
    }
    RECORDED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    FIRST.write_text(json.dumps(first_settings(), indent=1) + "\n", encoding="utf-8")
    print(f"{len(now)} entries are recorded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
