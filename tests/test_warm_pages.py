"""What pages import: a headline of shipped rows needs no library that takes seconds to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOW = ("torch", "sklearn", "scipy.stats", "nltk", "transformers")
_ASK = """
import sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
from leakscope.dashboard import cache
print(len(cache.membership()), len(cache.attribute_corpora()), len(cache.attribute_rows()))
print(*[name for name in {slow!r} if name in sys.modules])
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", ["membership", "attributes"])
def test_a_page_of_shipped_rows_imports_nothing_slow(page: str) -> None:
    folder = ROOT / "dashboard" / page
    modules = [f"leakscope.dashboard.{page}.{path.stem}" for path in sorted(folder.glob("*.py"))]
    told = subprocess.run(
        [sys.executable, "-c", _ASK.format(slow=SLOW), *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert all(int(count) > 0 for count in told[0].split())
    assert told[1] == "", "imported, though no one has asked for an attack yet"


@pytest.mark.slow
def test_folders_of_nltk_are_those_that_it_has_itself() -> None:
    """Asked before it is imported, and after."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "from leakscope.core.corpora.nltk_corpora import nltk_folders as asked\n"
            "before = asked()\nimport nltk.data\nassert before == asked(), (before, asked())\n"
            "nltk.data.path.append('/more')\nprint(asked()[-1])",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.strip() == "/more"
