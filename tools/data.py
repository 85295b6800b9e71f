"""The data sets behind the tables: their sources, and checks of local copies.

`python -m tools.data FOLDER` compares the files below a folder, at any depth, with
`docs/data.json`. `python -m tools.figures` writes `docs/data.md` from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from leakscope.core.results.tables import markdown_table
from leakscope.core.storage.artifacts import digest_file

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

The tables of [results](results/README.md) were measured on public collections, which are not part
of Leakscope. The bundled texts, a Wikipedia extract and the Lee news, come from the package
`gensim`. `python -m tools.figures` writes this page from `data.json`.

## Repeat a table with two commands

The licences of BANKING77 and the English Web Treebank allow everyone to use them:

```
.venv/bin/python -m scripts.fetch_data DATA
.venv/bin/leakscope study tradeoff --spec results/tradeoff-banking.spec.json --files DATA
```

The first command fetches both collections from their repositories, makes the data files and checks
their sha256. The second measures [tradeoff-banking](../results/tradeoff-banking.md) in about an
hour on two cores. `study memorisation --spec results/memorisation.spec.json` measures
[memorisation](../results/memorisation.md) in the same way.

## How to get the others

1. Fetch each repository below at its commit: `git clone https://github.com/OWNER/NAME` and
   `git checkout COMMIT`.
2. Read the named files into a table with the columns named below, one text per row. In every table,
   keep Unicode unchanged, reduce runs of white space to one space, decode HTML entities, and drop
   empty rows and exact copies.
3. Write each table as Parquet under the file's name, all in one folder.
   `python -m tools.data FOLDER` lists the differences.
4. Give the folder to a study: `leakscope study NAME --spec FILE --files FOLDER`.

Your file has another sha256 if a single row is in another place. The number of rows shows whether
it is nearly the same, and each study records in its rows the content that it read (`contents`).
Several sets contain names of real people, and some licences forbid passing them on: keep them on
your machine.

"""


def load_facts() -> list[dict[str, Any]]:
    """Read docs/data.json: one dict of facts per data file."""
    found: list[dict[str, Any]] = json.loads(FACTS.read_text(encoding="utf-8"))
    return found


def tables_by_file() -> dict[str, list[str]]:
    """Read all tables' specifications; return the tables that read each data file, by file."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS.parent / "results").glob("*.spec.json")):
        for word in _collect_strings(json.loads(path.read_text(encoding="utf-8"))):
            name = next((part for part in _split_reference(word) if part.endswith(".parquet")), "")
            if name:
                table = path.name.removesuffix(".spec.json")
                known = found.setdefault(PARTS.get(name, name), [])
                known += [] if table in known else [table]
    return found


def _split_reference(word: str) -> list[str]:
    """Split a specification's reference such as `NAME=FILE:COLUMN=VALUE` into its parts."""
    return word.replace("=", ":").replace("#", ":").split(":")


def _collect_strings(entry: Any) -> list[str]:
    """Collect all string values in nested JSON data."""
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [word for value in values for word in _collect_strings(value)]


def markdown() -> str:
    """Render docs/data.md: each data set's source, licence, checksum and tables."""
    by_file, facts = tables_by_file(), load_facts()
    lines = []
    for fact in facts:
        tables = [*by_file.get(fact["file"], []), *ALSO.get(fact["file"], [])]
        lines.append(
            (
                f"`{fact['file']}`",
                f"{fact['rows']:,}",
                fact["licence"],
                ", ".join(map(_table_link, dict.fromkeys(tables))),
            )
        )
    told = [HEAD, "## The files\n\n"]
    told.append("\n".join(markdown_table(("file", "rows", "licence", "tables"), lines)) + "\n")
    for fact in facts:
        sources = ", ".join(f"`{source}`" for source in fact["sources"])
        told.append(
            f"\n### {fact['title']}\n\n`{fact['file']}`, from {sources}. {fact['made']}\n\n"
            f"Columns: {', '.join(f'`{name}`' for name in fact['columns'])}. "
            f"sha256 `{fact['sha256']}`.\n"
        )
    return "".join(told)


def _table_link(table: str) -> str:
    """Format a table's name as a Markdown link."""
    if table == "weights":
        return "[weights](../assets/weights/README.md)"
    return f"[{table}](../results/{table}.md)"


def differences(folder: Path) -> list[str]:
    """Compare a folder with the published data; return a line per file missing or different."""
    told = []
    for fact in load_facts():
        found = [path for path in sorted(folder.rglob(fact["file"])) if path.is_file()]
        if not found:
            told.append(f"{fact['file']}: missing; docs/data.md says how to make it")
        elif all(digest_file(path) != fact["sha256"] for path in found):
            told.append(f"{fact['file']}: {found[0]} is a different file; figures will differ")
    return told


def main(arguments: list[str] | None = None) -> int:
    """Check a folder of data sets; exit status 1 if a file is missing or differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.data", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the collections, at any depth")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        print(f"{folder} is not a folder. Name the folder with the collections.", file=sys.stderr)
        return 2
    told = differences(folder)
    for line in told:
        print(line, file=sys.stderr)
    if not told:
        print(f"All {len(load_facts())} collections are the ones behind the tables.")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
