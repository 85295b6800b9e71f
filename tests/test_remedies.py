"""Remedies lead somewhere: what people are told to type, to set or to open is there."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache

from browsing import ROOT

from leakscope.core.cli import build_parser
from leakscope.core.cli.study import options_of
from leakscope.core.errors import PINS, install
from leakscope.core.studies.registry import STUDIES
from tools.pins import CONSTRAINTS, pins_of

LAYERS = ("core", "dashboard", "leakscope", "pages")
PASSED_ON = {"LEAKSCOPE_NEEDS_KEY"}
"""What the program itself tells processes of a cluster; nobody sets it."""
DOCUMENTS = (
    "README.md",
    "docs/commands.md",
    "SECURITY.md",
    "docs/deployment.md",
    "docs/settings.md",
    "docs/data.md",
)


@cache
def told() -> tuple[tuple[str, str], ...]:
    """Return every text of the code with its file, and the documents."""
    found: list[tuple[str, str]] = []
    for path in (each for layer in LAYERS for each in sorted((ROOT / layer).rglob("*.py"))):
        place = str(path.relative_to(ROOT))
        found += [(place, text) for text in texts(ast.parse(path.read_text(encoding="utf-8")))]
    return (*found, *((name, (ROOT / name).read_text(encoding="utf-8")) for name in DOCUMENTS))


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a file; an f-string as one, with … for what is put in."""
    within: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
            within.update(map(id, node.values))
            yield "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within
        ):
            yield node.value


def found(pattern: str) -> list[tuple[str, re.Match[str]]]:
    """Return where a pattern occurs, with its file; at least somewhere."""
    places = [(place, hit) for place, text in told() for hit in re.finditer(pattern, text, re.M)]
    assert places, f"nothing says {pattern}: this test looks for something else"
    return places


def test_versions_that_messages_name_are_those_that_are_tested() -> None:
    pinned = pins_of(CONSTRAINTS.read_text(encoding="utf-8"))
    assert PINS.items() <= pinned.items()
    assert install("ray", is_there=True).endswith("--force-reinstall --no-deps ray==2.60.0")


def test_nobody_is_told_to_install_a_name_that_no_index_has() -> None:
    """Leakscope is on none: a package of that name would be somebody else's."""
    for place, hit in found(r"pip install ([^`\n]*)"):
        line = hit.group(1)
        is_pinned = "-c constraints.txt" in line or place == "core/errors.py"
        is_own_file = line.startswith("leakscope-") and ".whl" in line
        assert is_pinned or is_own_file, f"{place}: {hit.group(0)}"
        assert not re.search(r"leakscope(\[|$| )", line), f"{place}: {hit.group(0)}"


def test_modules_that_are_named_can_be_run() -> None:
    for place, hit in found(
        r"python3? -m ((?:leakscope|scripts|tools)(?:\.\w+)+)((?: --[a-z-]+ \S+)*)"
    ):
        name, rest = hit.groups()
        path = ROOT.joinpath(*name.removeprefix("leakscope.").split("."))
        file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        source = file.read_text(encoding="utf-8")
        assert '__name__ == "__main__"' in source, f"{place}: {hit.group(0)}"
        assert all(f'"{word}"' in source for word in rest.split() if word.startswith("--")), place


def test_commands_that_are_named_exist_with_their_options() -> None:
    parser = build_parser()
    (choice,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for place, hit in found(r"(?<![\w/])(?<!from )leakscope ([a-z][a-z-]+)((?: [^`\n|#…]+)?)"):
        name, rest = hit.groups()
        if name == "serve":
            continue
        command = choice.choices.get(name)
        assert command, f"{place}: there is no command {name}: {hit.group(0)}"
        words = rest.split()
        known = set(options(command, words))
        if name == "study":  # of any, where the command says NAME
            studies = [study for study in words[:1] if study in STUDIES]
            known = {option for study in studies or STUDIES for option in options_of(study)}
        for option in re.findall(r"(?<!\S)(--[a-z][\w-]*)", rest.split(" && ")[0]):
            assert option in known, f"{place}: {name} has no {option}: {hit.group(0)}"


def options(command: argparse.ArgumentParser, words: list[str]) -> Iterator[str]:
    """Yield the options of a command, and those of the study or action that is named first."""
    for action in command._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            chosen = action.choices.get(words[0]) if words else None
            for each in [chosen] if chosen else action.choices.values():
                yield from options(each, words[1:])


def test_files_that_are_named_exist() -> None:
    for place, hit in found(r"(?<![\w/{…])(?:docs|assets|benchmarks|scripts|tools)/[\w./-]*[\w/]"):
        path = hit.group(0).rstrip(".")
        is_there = (ROOT / path).exists() or any(ROOT.glob(f"{path}*"))
        assert is_there, f"{place}: there is no {path}"


def test_settings_of_the_environment_are_read_and_documented() -> None:
    documents = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)
    for place, hit in found(r"LEAKSCOPE_[A-Z_]+[A-Z]"):
        name = hit.group(0)
        if name in PASSED_ON:
            continue
        assert name in documents, f"{place}: no document says what {name} does"
        assert any(name == text for file, text in told() if file.endswith(".py")), name


def test_targets_of_make_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for place, hit in found(r"`make ([a-z]+)"):
        assert re.search(rf"^{hit.group(1)}:", makefile, re.M), f"{place}: {hit.group(0)}"
