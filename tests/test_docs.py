from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from source_files import module_name, offenders, parse_file, python_files

from leakscope.core.cli import COMMANDS, build_parser
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.dashboard.server import command as command_of_server

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CODE = python_files("core", "dashboard", "leakscope")


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


@pytest.mark.slow
def test_everything_public_has_a_docstring() -> None:
    assert offenders(CODE, lambda path: list(undocumented(parse_file(path)))) == {}


def test_the_docstring_check_can_fail() -> None:
    source = "def f(): pass\nclass C:\n 'doc'\n def g(self): pass\n def _h(self): pass"
    assert list(undocumented(ast.parse(source))) == ["f", "C.g"]


@pytest.mark.slow
def test_exported_names_exist() -> None:
    def missing(path: Path) -> set[str]:
        tree = parse_file(path)
        exported = {
            element.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for element in ast.walk(node.value)
            if isinstance(element, ast.Constant)
        }
        return exported - vars(import_module(module_name(path))).keys() if exported else set()

    assert offenders(CODE, missing) == {}


def documented_commands() -> list[str]:
    """Return the commands of the README and of docs/, continued lines joined.

    `leakscope …` and `python -m MODULE …` of a module below the checkout's root; of assets/ the
    latter alone.
    """
    pages = [README, ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    module = r"python3? -m (?:leakscope|scripts)\b"
    found = commands_of(pages, rf"(?:leakscope |{module})")
    return sorted(found | commands_of(sorted((ROOT / "assets").glob("*/README.md")), module))


def commands_of(pages: list[Path], start: str) -> set[str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    text = re.sub(r"\\\n\s*", " ", text)
    command = rf"^\s*(?:\$ )?(?:\.venv/bin/)?{start}.*$"
    found = re.findall(command, text, flags=re.MULTILINE)
    return {line.strip().removeprefix("$ ") for line in found}


def test_every_command_has_an_example_and_the_readme_leads_there() -> None:
    assert "make run" in README.read_text(encoding="utf-8")
    assert "(docs/commands.md)" in README.read_text(encoding="utf-8")
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"leakscope {name}" in text for name in COMMANDS)


def test_the_readme_names_every_page() -> None:
    text = README.read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "pages").glob("*.py")} - {"overview"}
    titles = {"tradeoff": "Trade-off", "projection": "Map"}
    assert pages and all(titles.get(page, page.capitalize()) in text for page in pages)


@pytest.mark.parametrize("command", documented_commands())
def test_documented_commands_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.count("--set ") < 2, "several settings stand in a specification (--spec)"
    words = shlex.split(command.partition(" | ")[0].partition(" > ")[0], comments=True)
    if words[1] == "-m":
        check_module(words[2], words[3:])
        return
    monkeypatch.chdir(ROOT)
    arguments = with_spec(words[1:])
    parser = build_parser({"serve": command_of_server, **COMMANDS})
    parser.parse_args(arguments)  # exits, and fails the test, where one is unknown


def check_module(name: str, words: list[str]) -> None:
    """Check that a module of the checkout can be run, and knows the options that it is given."""
    path = ROOT / f"{name.removeprefix('leakscope.').replace('.', '/')}.py"
    source = path.read_text(encoding="utf-8")
    assert '__name__ == "__main__"' in source
    assert all(f'"{word}"' in source for word in words if word.startswith("--"))


def test_the_check_of_modules_can_fail() -> None:
    check_module("scripts.more_texts", ["--results", "x.json"])
    with pytest.raises(AssertionError):
        check_module("scripts.more_texts", ["--nonsense"])
    with pytest.raises(FileNotFoundError):
        check_module("scripts.learning", [])


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative links of a document that lead to no file or no heading."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def anchors(page: Path) -> set[str]:
    """Return what a link may name after `#`: the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


def test_links_of_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").glob("*.md")]
    assert offenders(pages, lambda page: list(broken_links(page))) == {}


def test_the_check_of_links_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[a](page.md#a-title) [b](#b) [c](c.md) `[d](d.md)` [e](https://e)\n"
    )
    assert list(broken_links(page)) == ["#b", "c.md"]


def make_targets() -> set[str]:
    makefile = ROOT / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
    return set(re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE))


def test_documented_make_targets_exist() -> None:
    told = set(re.findall(r"\bmake ([a-z-]+)", README.read_text(encoding="utf-8")))
    assert {"run", "test"} <= told
    # "make sure", "make it" and the like are English, not commands
    commands = set(re.findall(r"(?:`|^\s*\$? ?)make ([a-z-]+)", README.read_text(), re.MULTILINE))
    assert commands <= make_targets()
