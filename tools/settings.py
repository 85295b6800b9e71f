"""List of settings chosen with test data in view, checked against the code.

`python -m tools.figures` writes `docs/settings.md` from here; `tests/test_settings.py` checks that
each is still a setting with that value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import settings_of
from leakscope.core.storage.artifacts import read_json

ROOT = Path(__file__).resolve().parents[1]

HEAD = """# Settings chosen with test data in view

A setting that was chosen by looking at the texts of a table flatters that table. This page lists
all known settings of this kind, the texts that were in view, and the tables that they flatter. All
other settings come from papers, or were chosen on auxiliary texts or on held-out texts.
`python -m tools.figures` writes this page from `tools/settings.py`. A test checks that each setting
still exists and has this value.

"""


@dataclass(frozen=True)
class Chosen:
    """A setting that was chosen with test data in view.

    Attributes
    ----------
    where : str
        `weights ATTACK`, `attack NAME`, `encoder NAME`, `plan MODULE:CLASS`, `module MODULE` or
        `spec TABLE`: where the values are.
    values : dict
        Settings and their values.
    seen : str
        The texts that were in view.
    flatters : str
        The tables whose texts they are, or are drawn from.
    """

    where: str
    values: dict[str, Any]
    seen: str
    flatters: str
    why: str


def _read_chosen() -> Iterator[Chosen]:
    """Yield the settings that `settings.toml` lists."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for each in tomllib.loads(text)["setting"]:
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in each["values"].items()}
        yield Chosen(**{**each, "values": values})


CHOSEN = tuple(_read_chosen())


def value_of(where: str, name: str) -> Any:
    """Look up a setting's current value in the code, in stored weights or in a specification.

    Raises
    ------
    KeyError
        It is no setting any more.
    """
    kind, _, of = where.partition(" ")
    if kind == "weights":
        folder = ROOT / "assets" / "weights" / "minilm" / of
        return read_json(folder / "model.json")["settings"][name]
    if kind == "spec":
        return read_json(ROOT / "results" / f"{of}.spec.json")["set"][name]
    if kind in ("attack", "encoder"):
        registry = INVERSION_ATTACKS if kind == "attack" else ENCODERS
        return settings_of(registry[of].kind)[name].default
    module, _, attribute = of.partition(":")
    found = vars(import_module(module))
    return found[attribute].__dataclass_fields__[name].default if attribute else found[name]


def markdown() -> str:
    """Render docs/settings.md: the settings chosen with test data in view."""
    lines = []
    for chosen in CHOSEN:
        kind, _, of = chosen.where.partition(" ")
        what = {
            "weights": "as it ships",
            "attack": "by default",
            "encoder": "by default",
            "spec": "in the table",
        }.get(kind, "in the code")
        told = ", ".join(f"`{name}` {value}" for name, value in chosen.values.items())
        lines.append(
            (f"`{of}`, {what}", told, chosen.seen, chosen.flatters, f"[see]({chosen.why})")
        )
    columns = ("where", "settings", "texts in view", "flatters", "details")
    return HEAD + "\n".join(markdown_table(columns, lines)) + "\n"
