"""List the encoders, attacks and defences with their settings, the corpora and the stories."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.cli.shared.output import show_json
from leakscope.core.corpora import CORPORA
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import DEFENCES, entry_of, guarantee_of
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.encoders.registry import ENCODERS, FITTED_ENCODERS
from leakscope.core.errors import InvalidInputError
from leakscope.core.registry import Entry
from leakscope.core.specs import settings_of

EXAMPLE = "leakscope list --attack search"
WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `list` to its parser."""
    one = parser.add_mutually_exclusive_group()
    for what in ("attack", "encoder", "defence"):
        one.add_argument(f"--{what}", metavar="NAME", help=f"show this {what} and its settings")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print all that can be chosen by name, or the requested entries with their settings."""
    defences = {**DEFENCES, **TRAINED_DEFENCES}
    one = (
        _describe_requested("attack", arguments.attack, INVERSION_ATTACKS, _attack_details)
        or _describe_requested("encoder", arguments.encoder, ENCODERS, _encoder_details)
        or _describe_chain(arguments.defence)
        or _describe_requested("defence", arguments.defence, defences, _defence_details)
    )
    data = one or {
        "encoders": _list_encoders(),
        "attacks": [_attack_details(name) for name in INVERSION_ATTACKS],
        "defences": [_defence_details(name) for name in defences],
        "private_training": _list_private_trainings(),
        "membership": _list_membership_attacks(),
        "under_noise": _list_noise_trainings(),
        "corpora": _list_corpora(),
        "sources": _list_sources(),
        "stories": _list_stories(),
    }
    if arguments.json:
        show_json(data)
    else:
        for section, entries in data.items():
            _print_section(section, entries)


def _describe_requested(
    what: str,
    name: str | None,
    registry: Mapping[str, Entry],
    tell: Callable[[str], dict[str, Any]],
) -> dict[str, list[dict[str, Any]]]:
    """Describe the requested registry entry under its section's name; {} if none is requested."""
    if name is None:
        return {}
    if name not in registry:
        known = ", ".join(registry)
        raise InvalidInputError(f"--{what} must be one of {known}, got {name!r}.")
    return {f"{what}s": [tell(name)]}


def _list_encoders() -> list[dict[str, Any]]:
    """Return each encoder's name and summary as dictionaries."""
    names = {n: f"{n}:{entry.argument}" if entry.argument else n for n, entry in ENCODERS.items()}
    return [{"name": names[name], "summary": ENCODERS[name].listed} for name in ENCODERS]


def _encoder_details(name: str) -> dict[str, Any]:
    """Return an encoder's name, summary and settings as a dictionary."""
    settings = _setting_details(ENCODERS[name]) if name in FITTED_ENCODERS else []
    return {"name": name, **_summary_fields(ENCODERS[name]), "settings": settings}


def _list_corpora() -> list[dict[str, Any]]:
    """Return each bundled corpus's name and summary as dictionaries."""
    return [{"name": name, "summary": source.summary} for name, source in CORPORA.items()]


def _list_sources() -> list[dict[str, Any]]:
    """Return each kind of vector source, with its summary and an example, as dictionaries."""
    from leakscope.core.audit.sources import SOURCES

    return [
        {"name": name, "summary": f"{entry.summary} {entry.example}"}
        for name, entry in SOURCES.items()
    ]


def _list_stories() -> list[dict[str, Any]]:
    """Return each shipped story's name and title as dictionaries."""
    from leakscope.core.story.shipped import shipped_stories

    return [
        {"name": name, "summary": f"{story.title} {story.audience}."}
        for name, story in shipped_stories().items()
    ]


def _list_noise_trainings() -> list[dict[str, Any]]:
    """Return the networks and pretraining objectives for training on noisy vectors."""
    parts: dict[str, Mapping[str, Entry]] = {"network": READERS, "pretraining": OBJECTIVES}
    return [
        {"name": name, "part": part, **_summary_fields(entry)}
        for part, registry in parts.items()
        for name, entry in registry.items()
    ]


def _list_membership_attacks() -> list[dict[str, Any]]:
    """Return the membership attacks on classifiers, with what each needs."""
    fields = ("summary", "reference", "level", "needs")
    return [
        {"name": name} | {field: getattr(entry, field) for field in fields}
        for name, entry in CLASSIFIER_ATTACKS.items()
    ]


def _list_private_trainings() -> list[dict[str, Any]]:
    """Return the methods of differentially private training, with their guarantees."""
    from leakscope.core.defences.trained.private import PRIVATE_TRAININGS

    return [
        {"name": name, **_summary_fields(entry), "guarantee": entry.guarantee}
        for name, entry in PRIVATE_TRAININGS.items()
    ]


def _attack_details(name: str) -> dict[str, Any]:
    """Return an inversion attack's access, score and settings as a dictionary."""
    entry = INVERSION_ATTACKS[name]
    return {
        "name": name,
        **_summary_fields(entry),
        "access": entry.access.value,
        "is_live": entry.is_live,
        "score": entry.score,
        "settings": _setting_details(entry),
    }


def _defence_details(name: str) -> dict[str, Any]:
    """Return a defence's guarantee and settings as a dictionary."""
    entry = {**DEFENCES, **TRAINED_DEFENCES}[name]
    return {
        "name": name,
        **_summary_fields(entry),
        "acts_on": entry.acts_on,
        "guarantee": entry.guarantee,
        "settings": _setting_details(entry),
    }


def _describe_chain(given: str | None) -> dict[str, list[dict[str, Any]]]:
    """Describe a defence given as a chain: the whole chain, then each stage; {} if it is none."""
    if given is None or not {":", "+"} & set(given):
        return {}
    spec = read_defence(given)
    name = spec.name
    if len(stages_of(name)) == 1:
        return {"defences": [_defence_details(name)]}
    entry = entry_of(name)
    whole = {
        "name": given,
        **_summary_fields(entry),
        "acts_on": entry.acts_on,
        "guarantee": guarantee_of(spec),
    }
    return {"defences": [whole, *(_defence_details(stage) for stage in stages_of(name))]}


def _summary_fields(entry: Entry) -> dict[str, Any]:
    """Return an entry's summary, reference and cost."""
    return {"summary": entry.summary, "reference": entry.reference, "cost": entry.cost}


def _setting_details(entry: Entry) -> list[dict[str, Any]]:
    """Return for each setting of an entry's class its name, default, range and help."""
    parts = ("help", "low", "high", "choices", "paper", "at")
    return [
        {"name": key, "default": spec.default} | {part: spec.metadata[part] for part in parts}
        for key, spec in settings_of(entry.kind).items()
    ]


def _print_section(section: str, entries: list[dict[str, Any]]) -> None:
    """Print a section's entries, each with its settings."""
    print(section)
    width = max([12, *(len(entry["name"]) for entry in entries)])
    for entry in entries:
        print(f"  {entry['name']:<{width}} {entry['summary']}")
        for spec in entry.get("settings", []):
            print(
                f"      {spec['name']} = {spec['default']!r}: {spec['help']}{_format_range(spec)}"
            )
    print()


def _format_range(spec: dict[str, Any]) -> str:
    """Format a setting's choices or range in brackets; "" if it has neither."""
    if spec["choices"] is not None:
        return f" (one of {', '.join(map(str, spec['choices']))})"
    if spec["low"] is None and spec["high"] is None:
        return ""
    low = "" if spec["low"] is None else f"{spec['low']} ≤ "
    high = "" if spec["high"] is None else f" ≤ {spec['high']}"
    return f" ({low}value{high})"
