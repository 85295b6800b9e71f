"""The notebook of the quickstart: its cells are the builder's, its outputs those of a run."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.notebook import CELLS, NOTEBOOK, ROOT

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return found


def printed(cell: dict[str, Any]) -> str:
    """Return what a code cell printed or answered."""
    parts = []
    for output in cell["outputs"]:
        text = output["text"] if "text" in output else output["data"]["text/plain"]
        parts.append(text if isinstance(text, str) else "".join(text))
    return "".join(parts)


def test_its_cells_are_those_that_are_built() -> None:
    stored = [(cell["cell_type"], "".join(cell["source"])) for cell in cells()]
    assert stored == list(CELLS), "run `python -m tools.notebook`"


def test_every_cell_was_run_and_none_failed_or_warned() -> None:
    code = [cell for cell in cells() if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(printed(cell) for cell in code)
    for cell in code:
        assert all(output["output_type"] != "error" for output in cell["outputs"])
        assert all(output.get("name") != "stderr" for output in cell["outputs"])
    all_of_it = " ".join(map(printed, code))
    assert "F1" in all_of_it and "guessing reaches" in all_of_it


def test_it_names_no_folder_and_nothing_of_a_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    for part in (str(ROOT), str(Path.home()), "/home/", "/tmp/", "/usr/", "site-packages"):
        assert part not in text
    metadata = json.loads(text)["metadata"]
    assert metadata.keys() == {"kernelspec", "language_info"}
    assert metadata["language_info"] == {"name": "python"}
    assert all(not cell["metadata"] for cell in cells())


def alike(one: str, other: str) -> bool:
    """Return whether two outputs have the same words, and numbers that differ by rounding."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= 1 for a, b in pairs)


def test_outputs_that_differ_are_noticed() -> None:
    assert alike("F1 53.8 [50.1, 57.6], n 100", "F1 53.9 [50.1, 57.5], n 100")
    assert not alike("F1 53.8", "F1 55.8") and not alike("minister, berlin", "minister")


@pytest.mark.slow
def test_a_run_prints_what_it_holds(tmp_path: Path) -> None:
    missing = [
        name
        for name in ("nbclient", "nbformat", "ipykernel")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    import nbformat

    from tools.notebook import executed

    nbformat.validate(nbformat.read(NOTEBOOK, as_version=4))
    run = executed(tmp_path)
    for stored, now in zip(cells(), run["cells"], strict=True):
        if stored["cell_type"] == "code":
            assert alike(printed(stored), printed(now))
    assert not list(tmp_path.iterdir())
