"""The collections behind the tables: where each comes from, and whether a copy is the same.

`python -m tools.data FOLDER` compares the files of a folder with `docs/data.json`, wherever below
it they lie; `python -m tools.figures` writes `docs/data.md` from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from core.store import digest_file
from core.studies.tables import markdown_table

__all__ = ["FACTS", "PARTS", "asked_by", "differences", "main", "markdown"]

DOCS = Path(__file__).resolve().parents[1] / "docs"
FACTS = DOCS / "data.json"
PARTS = {
    "novels.parquet": "novels_en.parquet",
    "novels_held_out.parquet": "novels_en.parquet",
}
"""Files of a specification that are made from another file."""

ALSO = {"stsb.parquet": ["sentence-bert"], "sentences.parquet": ["weights"]}
"""What is made from a collection by another command than a study's."""

HEAD = """# Where the texts come from

The tables of [results](results/README.md) were measured on public collections that are no part of
Leakscope. The texts that come with it, a Wikipedia extract and the Lee news, are read from the
package `gensim`. This page is written from `data.json` by `python -m tools.figures`.

## How to have them

1. Fetch each repository below at its commit: `git clone https://github.com/OWNER/NAME` and
   `git checkout COMMIT`.
2. Read the named files into a table with the columns named below, one text a row. Everywhere:
   Unicode as it is, runs of white space made one space, HTML entities undone, empty rows and exact
   copies dropped.
3. Write it as Parquet under the file's name, all in one folder. `python -m tools.data FOLDER`
   says what differs.
4. Give the folder to a study: `python -m core study NAME --spec FILE --files FOLDER`.

A file that was made anew has another sha256 if one row is in another place; the number of rows says
whether it is nearly the same, and a study names the content that it read in its rows (`contents`).
Several sets hold names of real people, and the licences of some forbid passing them on: keep
them on your machine.

"""


def _facts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FACTS.read_text(encoding="utf-8"))
    return found


def asked_by() -> dict[str, list[str]]:
    """Return which tables read a collection, by the name of its file, from their specifications."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS / "results").glob("*.spec.json")):
        for word in _words(json.loads(path.read_text(encoding="utf-8"))):
            name = next((part for part in _parts(word) if part.endswith(".parquet")), "")
            if name:
                table = path.name.removesuffix(".spec.json")
                known = found.setdefault(PARTS.get(name, name), [])
                known += [] if table in known else [table]
    return found


def _parts(word: str) -> list[str]:
    """Return what a reference such as `NAME=FILE:COLUMN=VALUE` consists of."""
    return word.replace("=", ":").replace("#", ":").split(":")


def _words(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [word for value in values for word in _words(value)]


def markdown() -> str:
    """Return the page that tells each collection's source, licence, checksum and tables."""
    by_file, facts = asked_by(), _facts()
    lines = []
    for fact in facts:
        tables = [*by_file.get(fact["file"], []), *ALSO.get(fact["file"], [])]
        lines.append((f"`{fact['file']}`", f"{fact['rows']:,}", fact["licence"],
                      ", ".join(map(_linked, dict.fromkeys(tables)))))  # fmt: skip
    told = [HEAD, "## What each is\n\n"]
    told.append("\n".join(markdown_table(("file", "rows", "licence", "tables"), lines)) + "\n")
    for fact in facts:
        sources = ", ".join(f"`{source}`" for source in fact["sources"])
        told.append(
            f"\n### {fact['title']}\n\n`{fact['file']}`, from {sources}. {fact['made']}\n\n"
            f"Columns: {', '.join(f'`{name}`' for name in fact['columns'])}. "
            f"sha256 `{fact['sha256']}`.\n"
        )
    return "".join(told)


def _linked(table: str) -> str:
    if table == "weights":
        return "[weights](../assets/weights/README.md)"
    return f"[{table}](results/{table}.md)"


def differences(folder: Path) -> list[str]:
    """Return what is missing from a folder, or is another file than the tables were made from."""
    told = []
    for fact in _facts():
        found = [path for path in sorted(folder.rglob(fact["file"])) if path.is_file()]
        if not found:
            told.append(f"{fact['file']}: not there; docs/data.md says how to make it")
        elif all(digest_file(path) != fact["sha256"] for path in found):
            told.append(f"{fact['file']}: {found[0]} is another file; figures will differ")
    return told


def main(arguments: list[str] | None = None) -> int:
    """Check the files of a folder; the status is 1 where one is missing or another."""
    parser = argparse.ArgumentParser(prog="python -m tools.data", description=__doc__)
    parser.add_argument("folder", type=Path, help="with the collections, anywhere below it")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        print(f"{folder} is no folder. Name the one with the collections.", file=sys.stderr)
        return 2
    told = differences(folder)
    for line in told:
        print(line, file=sys.stderr)
    if not told:
        print(f"All {len(_facts())} collections are those that the tables were made from.")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
