"""Write every measured figure of the documentation from the result files.

`python -m tools.figures` writes; with `--check` it only says what differs, and ends with 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.errors import CoreError
from tools.figures.sources import ROOT, render
from tools.figures.spans import rewritten
from tools.figures.tables import whole

__all__ = ["documents", "main", "outcome"]


def documents() -> list[Path]:
    """Return the texts whose figures come from files: those that are no whole tables."""
    others = whole()
    found = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path not in others]


def outcome(path: Path) -> tuple[str, list[str]]:
    """Return what a document should hold, and what is wrong with what it says of its figures."""
    make = whole().get(path)
    if make is not None:
        try:
            return make(), []
        except CoreError as error:
            return path.read_text(encoding="utf-8") if path.exists() else "", [str(error)]
    return rewritten(path.read_text(encoding="utf-8"), render)


def main(arguments: list[str] | None = None) -> int:
    """Write or check all documents; the status is 1 where one is not what its files say."""
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
        if new == text:
            continue
        if chosen.check:
            lines = zip(text.splitlines(), new.splitlines(), strict=False)
            first = next((pair for pair in lines if pair[0] != pair[1]), ("its end", "another"))
            print(f"{name} says\n  {first[0]}\nand its files\n  {first[1]}", file=sys.stderr)
            n_wrong += 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{name} is written anew")
    if n_wrong:
        print("Run `make figures`, and name the source of each figure below its block.",
              file=sys.stderr)  # fmt: skip
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
