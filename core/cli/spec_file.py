"""A command's arguments from a file: `study --spec FILE.json`, `fit --spec FILE.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.cli import study
from core.cli.arguments import Parser
from core.errors import InvalidInputError, similar
from core.store import read_whole
from core.studies.registry import STUDIES

__all__ = ["with_spec"]

_SUFFIX = ".spec.json"
_MOST_BYTES = 2**20


def with_spec(argv: Sequence[str]) -> list[str]:
    """Return the arguments with those of the file of `--spec` put first, so that others win.

    The file holds an object: the names of arguments with their values, and for a study its name
    under `study`, such as {"study": "encoders", "encoders": ["tfidf"], "set": {"epochs": 6}}.
    Without `--out`, a study's NAME.spec.json is the spec of NAME.json.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or holds something else; or no such study.

    Examples
    --------
    >>> with_spec(["list"])
    ['list']
    """
    given = [part for word in argv for part in _apart(word)]
    if given[:1] == ["study"]:
        _check_name(given[1:2])
    if given[:1] not in (["study"], ["fit"]) or "--spec" not in given:
        return given
    place = given.index("--spec")
    if place + 1 == len(given):
        raise InvalidInputError("--spec takes a file in JSON.")
    path = Path(given[place + 1])
    rest = given[1:place] + given[place + 2 :]
    spec = _read(path)
    if given[0] == "fit":
        return ["fit", *_arguments(spec, "fit", _options_of_fit(), path), *rest]
    name = [str(spec.pop("study"))] if "study" in spec else []
    if rest and not rest[0].startswith("-"):
        asked = rest.pop(0)
        if name and study.study_name(asked) != study.study_name(name[0]):
            raise InvalidInputError(
                f"--spec: {path} is of the study {name[0]}, not of {asked}. Leave out the name, or "
                "give another file."
            )
        name = [asked]
    _check_name(name)
    if not name:
        raise InvalidInputError(f"--spec: {path} names no study: give `study`, or NAME before.")
    if path.name.endswith(_SUFFIX) and "--out" not in rest:
        spec.setdefault("out", str(path.with_name(path.name.removesuffix(_SUFFIX) + ".json")))
    known = study.options_of(study.study_name(name[0]))
    return ["study", *name, *_arguments(spec, name[0], known, path), *rest]


def _apart(word: str) -> list[str]:
    """Return `--spec=FILE` as the two words that it stands for, and any other word as it is."""
    return ["--spec", word.removeprefix("--spec=")] if word.startswith("--spec=") else [word]


def _check_name(words: Sequence[str]) -> None:
    for word in words:
        if not word.startswith("-") and study.study_name(word) not in STUDIES:
            raise InvalidInputError(
                f"the study must be one of {', '.join(STUDIES)}, got {word!r}."
                + similar(word, STUDIES)
            )


def _options_of_fit() -> list[str]:
    from core.cli import fit

    parser = Parser(add_help=False)
    fit.add_arguments(parser)
    return [option for action in parser._actions for option in action.option_strings]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_whole(path, _MOST_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInputError(f"--spec: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--spec: {path} is not text in UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"--spec: {path} is not JSON: {error.msg} in line {error.lineno}."
        ) from error
    except (ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInputError(f"--spec: {path} cannot be read: {told}.") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"--spec: {path} must hold an object with the arguments.")
    return found


def _arguments(spec: dict[str, Any], command: str, known: list[str], path: Path) -> Iterator[str]:
    for name, value in spec.items():
        option = "--" + name.replace("_", "-")
        if option not in known:
            near = similar(option, known).replace("--", "").replace("-", "_")
            raise InvalidInputError(f"--spec: {path}: {command} has no argument {name!r}.{near}")
        if isinstance(value, bool):
            yield option if value else option.replace("--", "--no-", 1)
        elif isinstance(value, dict):
            for key, setting in value.items():
                for each in _listed(setting):
                    yield from (option, f"{key}={each}")
        elif value is None or any(isinstance(v, dict | list | None) for v in _listed(value)):
            raise InvalidInputError(
                f"--spec: {name} in {path} must be a word, a number, true or false, a list of "
                "these, or settings with their values."
            )
        elif value == []:
            raise InvalidInputError(
                f"--spec: {name} in {path} is an empty list: name what it should hold, or leave it "
                "out for what is usual."
            )
        else:
            yield from (option, *map(str, _listed(value)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
