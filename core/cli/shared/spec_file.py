"""Read a command's arguments from a file: `study --spec FILE.json`, `fit --spec FILE.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from leakscope.core.cli.shared.arguments import Parser
from leakscope.core.errors import InvalidInputError, similar

_SUFFIX = ".spec.json"
_MOST_BYTES = 2**20


def with_spec(argv: Sequence[str]) -> list[str]:
    """Replace `--spec FILE` in the command line by that file's arguments; typed ones win.

    The file holds an object: the names of arguments with their values, and for a study its name
    under `study`, such as {"study": "encoders", "encoders": ["tfidf"], "set": {"epochs": 6}}.
    Without `--out`, a study's NAME.spec.json is the spec of NAME.json.

    Raises
    ------
    InvalidInputError
        The file cannot be read or holds something else, or there is no such study.

    Examples
    --------
    >>> with_spec(["list"])
    ['list']
    """
    given = [part for word in argv for part in _split_option(word)]
    if given[:1] == ["study"]:
        _check_study_name(given[1:2])
    if given[:1] not in (["study"], ["fit"]) or "--spec" not in given:
        return given
    place = given.index("--spec")
    if place + 1 == len(given):
        raise InvalidInputError("--spec takes a JSON file.")
    path = Path(given[place + 1])
    rest = given[1:place] + given[place + 2 :]
    spec = _read_spec(path)
    if given[0] == "fit":
        return ["fit", *_spec_arguments(spec, "fit", _fit_options(), path), *rest]
    name = [str(spec.pop("study"))] if "study" in spec else []
    if rest and not rest[0].startswith("-"):
        typed = rest.pop(0)
        if name and typed != name[0]:
            raise InvalidInputError(
                f"--spec: {path} belongs to the study {name[0]}, not to {typed}. Leave out the "
                "name, or give another file."
            )
        name = [typed]
    _check_study_name(name)
    if not name:
        raise InvalidInputError(
            f"--spec: {path} names no study. Add `study` to it, or type NAME before --spec."
        )
    if path.name.endswith(_SUFFIX) and "--out" not in rest:
        spec.setdefault("out", str(path.with_name(path.name.removesuffix(_SUFFIX) + ".json")))
    from leakscope.core.cli import study

    known = study.options_of(name[0])
    return ["study", *name, *_spec_arguments(spec, name[0], known, path), *rest]


def _split_option(word: str) -> list[str]:
    """Split `--spec=FILE` into two words; return any other word as a list of one."""
    return ["--spec", word.removeprefix("--spec=")] if word.startswith("--spec=") else [word]


def _check_study_name(words: Sequence[str]) -> None:
    """Raise InvalidInputError if a word, unless it is an option, is not a study's name."""
    from leakscope.core.studies.registry import STUDIES

    for word in words:
        if not word.startswith("-") and word not in STUDIES:
            raise InvalidInputError(
                f"the study must be one of {', '.join(STUDIES)}, got {word!r}."
                + similar(word, STUDIES)
            )


def _fit_options() -> list[str]:
    """Return all options of the command `fit`."""
    from leakscope.core.cli import fit

    parser = Parser(add_help=False)
    fit.add_arguments(parser)
    return [option for action in parser._actions for option in action.option_strings]


def _read_spec(path: Path) -> dict[str, Any]:
    """Read the JSON object of a spec file, or raise InvalidInputError with the reason."""
    from leakscope.core.storage.artifacts import read_whole

    try:
        found = json.loads(read_whole(path, _MOST_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInputError(f"--spec: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--spec: {path} is not UTF-8 text. Save it as UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"--spec: {path} is not JSON: {error.msg} in line {error.lineno}."
        ) from error
    except (ValueError, RecursionError) as error:
        text = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInputError(f"--spec: {path} cannot be read: {text}.") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"--spec: {path} must contain a JSON object with the arguments.")
    return found


def _spec_arguments(
    spec: dict[str, Any], command: str, known: list[str], path: Path
) -> Iterator[str]:
    """Check a spec's entries and yield them as command-line words."""
    for name, value in spec.items():
        option = "--" + name.replace("_", "-")
        if option not in known:
            near = similar(option, known).replace("--", "").replace("-", "_")
            raise InvalidInputError(f"--spec: {path}: {command} has no argument {name!r}.{near}")
        if isinstance(value, bool):
            yield option if value else option.replace("--", "--no-", 1)
        elif isinstance(value, dict):
            for key, setting in value.items():
                for each in _as_list(setting):
                    yield from (option, f"{key}={each}")
        elif value is None or any(isinstance(v, dict | list | None) for v in _as_list(value)):
            raise InvalidInputError(
                f"--spec: {name} in {path} must be a word, a number, true or false, a list of "
                "these, or settings with their values."
            )
        elif value == []:
            raise InvalidInputError(
                f"--spec: {name} in {path} is an empty list. Fill it, or leave it out to use the "
                "default."
            )
        else:
            yield from (option, *map(str, _as_list(value)))


def _as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]
