from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli import COMMANDS, build_parser
from core.cli.spec_file import with_spec
from dashboard import command as command_of_server

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CODE = sorted(p for part in ("core", "dashboard") for p in (ROOT / part).rglob("*.py"))


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions, classes and methods of a file that have no docstring."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in tree.body:
        if not isinstance(node, kinds) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield node.name
        members = node.body if isinstance(node, ast.ClassDef) else []
        for member in members:
            is_public = isinstance(member, kinds) and not member.name.startswith("_")
            if is_public and not ast.get_docstring(member):
                yield f"{node.name}.{member.name}"


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_everything_public_has_a_docstring(path: Path) -> None:
    assert list(undocumented(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_the_docstring_check_can_fail() -> None:
    source = "def f(): pass\nclass C:\n 'doc'\n def g(self): pass\n def _h(self): pass"
    assert list(undocumented(ast.parse(source))) == ["f", "C.g"]


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_exported_names_exist(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = {
        element.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for element in ast.walk(node.value)
        if isinstance(element, ast.Constant)
    }
    defined = {ast.unparse(t) for n in tree.body if isinstance(n, ast.Assign) for t in n.targets}
    defined |= {ast.unparse(n.target) for n in tree.body if isinstance(n, ast.AnnAssign)}
    defined |= {
        n.name
        for n in tree.body
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    defined |= {
        alias.asname or alias.name
        for n in tree.body
        if isinstance(n, ast.Import | ast.ImportFrom)
        for alias in n.names
    }
    assert exported <= defined


def documented_commands() -> list[str]:
    """Return the commands of the README and of docs/, continued lines joined.

    `python -m core …`, `python -m core.MODULE …` and `leakscope …`.
    """
    pages = [README, ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    text = re.sub(r"\\\n\s*", " ", text)
    command = r"^\s*(?:\$ )?(?:(?:\.venv/bin/)?python -m core(?:\.\w+)*|leakscope) .*$"
    found = re.findall(command, text, flags=re.MULTILINE)
    return sorted({line.strip().removeprefix("$ ") for line in found})


def test_readme_tells_the_commands() -> None:
    if not README.exists():
        pytest.skip("README.md is not written yet")
    text = README.read_text(encoding="utf-8")
    assert "make run" in text
    assert all(f"python -m core {name}" in text for name in COMMANDS if name != "list")


@pytest.mark.parametrize("command", documented_commands())
def test_documented_commands_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.count("--set ") < 2, "several settings stand in a specification (--spec)"
    words = shlex.split(command.partition(" | ")[0].partition(" > ")[0], comments=True)
    program = words[2] if words[1] == "-m" else words[0]
    if program not in ("core", "leakscope"):
        check_module(program, words[3:])
        return
    monkeypatch.chdir(ROOT)
    arguments = with_spec(words[words.index(program) + 1 :])
    parser = build_parser(program, {"serve": command_of_server, **COMMANDS})
    parser.parse_args(arguments)  # exits, and fails the test, where one is unknown


def check_module(name: str, words: list[str]) -> None:
    """Check that a module can be run, and knows the options that it is given."""
    path = ROOT / f"{name.replace('.', '/')}.py"
    source = path.read_text(encoding="utf-8")
    assert '__name__ == "__main__"' in source
    assert all(f'"{word}"' in source for word in words if word.startswith("--"))


def test_the_check_of_modules_can_fail() -> None:
    check_module("core.studies.more_texts", ["--results", "x.json"])
    with pytest.raises(AssertionError):
        check_module("core.studies.more_texts", ["--nonsense"])
    with pytest.raises(FileNotFoundError):
        check_module("core.studies.learning", [])


def make_targets() -> set[str]:
    makefile = ROOT / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
    return set(re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE))


def test_documented_make_targets_exist() -> None:
    if not README.exists():
        pytest.skip("README.md is not written yet")
    told = set(re.findall(r"\bmake ([a-z-]+)", README.read_text(encoding="utf-8")))
    assert {"run", "test"} <= told
    # "make sure", "make it" and the like are English, not commands
    commands = set(re.findall(r"(?:`|^\s*\$? ?)make ([a-z-]+)", README.read_text(), re.MULTILINE))
    assert commands <= make_targets()
