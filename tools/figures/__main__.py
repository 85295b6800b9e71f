"""Write every measured figure of the documentation from the result files.

`python -m tools.figures` writes; with `--check` it only says what differs, and ends with 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from leakscope.core.errors import CoreError
from tools.figures.sources import ROOT
from tools.figures.tables import whole
from tools.figures.templates import render, templates, typed


def documents() -> list[Path]:
    """Return the paths of documents that are written by hand or by template, not whole tables."""
    found = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    return sorted({*found, *templates()} - whole().keys())


def outcome(path: Path) -> tuple[str, list[str]]:
    """Generate or check a document by its path; return its correct text and its figures' faults."""
    make = whole().get(path)
    if make is not None:
        try:
            return make(), []
        except CoreError as error:
            return path.read_text(encoding="utf-8") if path.exists() else "", [str(error)]
    template = templates().get(path)
    if template is None:
        text = path.read_text(encoding="utf-8")
        return text, typed(text)
    made = render(template)
    return made.text, made.faults


def main(arguments: list[str] | None = None) -> int:
    """Write or check all documents; exit status 1 if one differs from its sources."""
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    chosen = parser.parse_args(arguments)
    n_wrong = 0
    for path in [*documents(), *whole()]:
        name = path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        new, faults = outcome(path)
        for fault in faults:
            print(f"{name}: {fault}", file=sys.stderr)
        n_wrong += len(faults)
        if new == text or faults:
            continue
        if chosen.check:
            lines = zip(text.splitlines(), new.splitlines(), strict=False)
            first = next((pair for pair in lines if pair[0] != pair[1]), ("its end", "another"))
            print(f"{name} says\n  {first[0]}\nand its files\n  {first[1]}", file=sys.stderr)
            n_wrong += 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8")
            print(f"{name} is written again")
    if n_wrong:
        print(
            "Run `make figures`, and write each figure as an expression of a template.",
            file=sys.stderr,
        )
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
