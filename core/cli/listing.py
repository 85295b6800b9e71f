"""List the encoders, attacks and defences with their settings, the corpora and the stories."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.output import show_json
from core.errors import InvalidInputError
from core.registry import Entry
from core.specs import settings_of

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `list`."""
    one = parser.add_mutually_exclusive_group()
    for what in ("attack", "encoder", "defence"):
        one.add_argument(f"--{what}", metavar="NAME", help=f"show this {what} and its settings")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print what there is."""
    from core.defences.registry import DEFENCES
    from core.defences.trained.registry import TRAINED_DEFENCES
    from core.encoders.registry import ENCODERS

    defences = {**DEFENCES, **TRAINED_DEFENCES}
    one = (
        _one("attack", arguments.attack, INVERSION_ATTACKS, _attack)
        or _one("encoder", arguments.encoder, ENCODERS, _encoder)
        or _chain(arguments.defence)
        or _one("defence", arguments.defence, defences, _defence)
    )
    data = one or {
        "encoders": _encoders(),
        "attacks": [_attack(name) for name in INVERSION_ATTACKS],
        "defences": [_defence(name) for name in defences],
        "private_training": _private_training(),
        "membership": _membership(),
        "under_noise": _under_noise(),
        "corpora": _corpora(),
        "sources": _sources(),
        "stories": _stories(),
    }
    if arguments.json:
        show_json(data)
    else:
        for section, entries in data.items():
            _show(section, entries)


def _one(
    what: str,
    name: str | None,
    registry: Mapping[str, Entry],
    tell: Callable[[str], dict[str, Any]],
) -> dict[str, list[dict[str, Any]]]:
    """Return the section of the one thing that was asked for; nothing where none was."""
    if name is None:
        return {}
    if name not in registry:
        known = ", ".join(registry)
        raise InvalidInputError(f"--{what} must be one of {known}, got {name!r}.")
    return {f"{what}s": [tell(name)]}


def _encoders() -> list[dict[str, Any]]:
    from core.encoders.registry import ENCODERS

    names = {n: f"{n}:{entry.argument}" if entry.argument else n for n, entry in ENCODERS.items()}
    return [{"name": names[name], "summary": ENCODERS[name].listed} for name in ENCODERS]


def _encoder(name: str) -> dict[str, Any]:
    from core.encoders.registry import ENCODERS, FITTED_ENCODERS

    settings = _settings(ENCODERS[name]) if name in FITTED_ENCODERS else []
    return {"name": name, **_about(ENCODERS[name]), "settings": settings}


def _corpora() -> list[dict[str, Any]]:
    from core.corpora import CORPORA

    return [{"name": name, "summary": source.summary} for name, source in CORPORA.items()]


def _sources() -> list[dict[str, Any]]:
    from core.audit.sources import SOURCES

    return [
        {"name": name, "summary": f"{entry.summary} {entry.example}"}
        for name, entry in SOURCES.items()
    ]


def _stories() -> list[dict[str, Any]]:
    from core.story.shipped import shipped_stories

    return [
        {"name": name, "summary": f"{story.title} {story.audience}."}
        for name, story in shipped_stories().items()
    ]


def _under_noise() -> list[dict[str, Any]]:
    from core.defences.trained.under_noise.registry import OBJECTIVES, READERS

    parts: dict[str, Mapping[str, Entry]] = {"network": READERS, "pretraining": OBJECTIVES}
    return [
        {"name": name, "part": part, **_about(entry)}
        for part, registry in parts.items()
        for name, entry in registry.items()
    ]


def _membership() -> list[dict[str, Any]]:
    from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS

    return [
        {
            "name": name,
            "summary": entry.summary,
            "reference": entry.reference,
            "level": entry.level,
            "needs": entry.needs,
        }
        for name, entry in CLASSIFIER_ATTACKS.items()
    ]


def _private_training() -> list[dict[str, Any]]:
    from core.defences.trained.private import PRIVATE_TRAININGS

    return [
        {"name": name, **_about(entry), "guarantee": entry.guarantee}
        for name, entry in PRIVATE_TRAININGS.items()
    ]


def _attack(name: str) -> dict[str, Any]:
    entry = INVERSION_ATTACKS[name]
    return {
        "name": name,
        **_about(entry),
        "access": entry.access.value,
        "is_live": entry.is_live,
        "score": entry.score,
        "settings": _settings(entry),
    }


def _defence(name: str) -> dict[str, Any]:
    from core.defences.registry import DEFENCES
    from core.defences.trained.registry import TRAINED_DEFENCES

    entry = {**DEFENCES, **TRAINED_DEFENCES}[name]
    return {
        "name": name,
        **_about(entry),
        "acts_on": entry.acts_on,
        "guarantee": entry.guarantee,
        "settings": _settings(entry),
    }


def _chain(told: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return the section of a chain of defences, the whole and each of its stages."""
    from core.defences.registry import entry_of, guarantee_of, stages_of
    from core.defences.told import read_defence

    if told is None or not {":", "+"} & set(told):
        return {}
    spec = read_defence(told)
    name = spec.name
    if len(stages_of(name)) == 1:
        return {"defences": [_defence(name)]}
    entry = entry_of(name)
    whole = {"name": told, **_about(entry), "acts_on": entry.acts_on,
             "guarantee": guarantee_of(spec)}  # fmt: skip
    return {"defences": [whole, *(_defence(stage) for stage in stages_of(name))]}


def _about(entry: Entry) -> dict[str, Any]:
    return {"summary": entry.summary, "reference": entry.reference, "cost": entry.cost}


def _settings(entry: Entry) -> list[dict[str, Any]]:
    parts = ("help", "low", "high", "choices", "paper", "at")
    return [
        {"name": key, "default": spec.default} | {part: spec.metadata[part] for part in parts}
        for key, spec in settings_of(entry.kind).items()
    ]


def _show(section: str, entries: list[dict[str, Any]]) -> None:
    print(section)
    width = max([12, *(len(entry["name"]) for entry in entries)])
    for entry in entries:
        print(f"  {entry['name']:<{width}} {entry['summary']}")
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
