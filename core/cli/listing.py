"""List the encoders, the attacks with their settings, and the corpora."""

from __future__ import annotations

import argparse
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.output import show_json
from core.errors import InvalidInputError
from core.specs import settings_of

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `list`."""
    parser.add_argument("--attack", help="show this attack and its settings alone")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print what there is."""
    if arguments.attack is None:
        data = {"encoders": _encoders(), "attacks": _attacks(), "corpora": _corpora()}
    elif arguments.attack in INVERSION_ATTACKS:
        data = {"attacks": [_attack(arguments.attack)]}
    else:
        known = ", ".join(INVERSION_ATTACKS)
        raise InvalidInputError(f"--attack must be one of {known}, got {arguments.attack!r}.")
    if arguments.json:
        show_json(data)
    else:
        for section, entries in data.items():
            _show(section, entries)


def _encoders() -> list[dict[str, Any]]:
    from core.encoders import ENCODERS

    return [
        {
            "name": f"{name}:{family.argument}" if family.argument else name,
            "summary": family.summary,
        }
        for name, family in ENCODERS.items()
    ]


def _corpora() -> list[dict[str, Any]]:
    from core.corpora import CORPORA

    return [{"name": name, "summary": source.summary} for name, source in CORPORA.items()]


def _attacks() -> list[dict[str, Any]]:
    return [_attack(name) for name in INVERSION_ATTACKS]


def _attack(name: str) -> dict[str, Any]:
    entry = INVERSION_ATTACKS[name]
    settings = [
        {"name": key, "default": spec.default}
        | {part: spec.metadata[part] for part in ("help", "low", "high", "choices", "paper")}
        for key, spec in settings_of(entry.kind).items()
    ]
    return {
        "name": name,
        "summary": entry.summary,
        "reference": entry.reference,
        "access": entry.access.value,
        "is_live": entry.is_live,
        "score": entry.score,
        "settings": settings,
    }


def _show(section: str, entries: list[dict[str, Any]]) -> None:
    print(section)
    for entry in entries:
        print(f"  {entry['name']:<12} {entry['summary']}")
        for spec in entry.get("settings", []):
            print(f"      {spec['name']} = {spec['default']!r}: {spec['help']}{_range(spec)}")
    print()


def _range(spec: dict[str, Any]) -> str:
    if spec["choices"] is not None:
        return f" (one of {', '.join(map(str, spec['choices']))})"
    if spec["low"] is None and spec["high"] is None:
        return ""
    low = "" if spec["low"] is None else f"{spec['low']} ≤ "
    high = "" if spec["high"] is None else f" ≤ {spec['high']}"
    return f" ({low}value{high})"
