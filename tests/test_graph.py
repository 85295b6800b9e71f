"""The house from above: floors within core, no import that runs back up, no circle of files."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

FLOORS = tuple(
    tuple(floor.split())
    for floor in """\
core.errors core.assets core.glossary core.pages
core.storage core.vectors core.results core.formatting core.ranges core.units core.lookup \
    core.spreadsheets
core.protocols core.specs core.text core.language core.storage.cache_folder \
    core.storage.artifacts core.storage.atomic_files core.storage.file_lock core.intervals \
    core.metrics core.rank_correlation
core.registry core.training core.compiled core.storage.encryption
core.results.provenance core.results.rows core.results.tables
core.corpora
core.tasks
core.encoders core.storage.cache_contents
core.attacks
core.names core.defences core.audit
core.projection
core.studies
core.browser
core.figures
core.findings
core.story
core.jobs
core.cli core.compile_ahead
leakscope
dashboard
pages
leakscope.__main__
""".splitlines()
)
"""From the ground up: what stands on a floor imports from its own and from those below."""


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


FILES = {
    module_of(path): path
    for layer in ("core", "leakscope", "dashboard", "pages")
    for path in (ROOT / layer).rglob("*.py")
}


def floor_of(module: str) -> int:
    """Return the floor of the longest name that the module's begins with."""
    if module == "core":  # what it is, and its version
        return 0
    parts = module.split(".")
    for n in range(len(parts), 0, -1):
        for floor, names in enumerate(FLOORS):
            if ".".join(parts[:n]) in names:
                return floor
    raise AssertionError(f"{module} stands on no floor: give it one in FLOORS")


@cache
def imports(source: str, known: frozenset[str]) -> set[str]:
    """Return the modules of the project that a file imports, without `leakscope.` before them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = node.module.removeprefix("leakscope.")
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                found.add(whole if whole in known else module)
        elif isinstance(node, ast.Import):
            found.update(alias.name.removeprefix("leakscope.") for alias in node.names)
    return found & known


def graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    known = frozenset(sources)
    return {name: imports(source, known) - {name} for name, source in sources.items()}


def running_up(arrows: Mapping[str, set[str]]) -> list[str]:
    """Return the imports from a lower floor to a higher one."""
    return [
        f"{one} -> {other}"
        for one, others in arrows.items()
        for other in sorted(others)
        if floor_of(other) > floor_of(one)
    ]


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of files that import each other (strongly connected, by Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in arrows[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in arrows:
        if name not in index:
            visit(name)
    return found


def sources() -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}


def test_every_file_stands_on_a_floor() -> None:
    assert len(FILES) > 200
    assert all(floor_of(name) >= 0 for name in FILES)


def test_no_import_runs_back_up() -> None:
    assert running_up(graph(sources())) == []


def test_no_files_import_each_other() -> None:
    assert circles(graph(sources())) == []


def test_a_planted_import_up_and_a_planted_circle_are_found() -> None:
    planted = sources()
    planted["core.encoders.lsa"] += (
        "\n\ndef late():\n    from leakscope.core.studies import registry\n"
    )
    assert running_up(graph(planted)) == ["core.encoders.lsa -> core.studies.registry"]
    planted["core.text"] += "\nfrom leakscope.core.corpora.rows import Columns\n"
    assert circles(graph(planted))
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []
