"""A study's arguments from a file: `study --spec FILE.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.cli import study
from core.errors import InvalidInputError, similar

__all__ = ["with_spec"]


def with_spec(argv: Sequence[str]) -> list[str]:
    """Return the arguments with those of the file of `--spec` put first, so that others win.

    The file holds an object: `study`, the study's name, and the names of its arguments with
    their values, such as {"study": "inversion", "encoders": ["tfidf"], "set": {"epochs": 6}}.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or holds something else.

    Examples
    --------
    >>> with_spec(["list"])
    ['list']
    """
    given = list(argv)
    if given[:1] != ["study"] or "--spec" not in given:
        return given
    place = given.index("--spec")
    if place + 1 == len(given):
        raise InvalidInputError("--spec takes a file in JSON.")
    path = Path(given[place + 1])
    rest = given[1:place] + given[place + 2 :]
    spec = _read(path)
    name = [str(spec.pop("study"))] if "study" in spec else []
    if rest and not rest[0].startswith("-"):
        name = [rest.pop(0)]
    return ["study", *name, *_arguments(spec, path), *rest]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInputError(f"--spec: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--spec: {path} is not text in UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"--spec: {path} is not JSON: {error.msg} in line {error.lineno}."
        ) from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"--spec: {path} must hold an object with the study's arguments.")
    return found


def _arguments(spec: dict[str, Any], path: Path) -> Iterator[str]:
    known = _Options()
    study.add_arguments(known)  # type: ignore[arg-type]
    for name, value in spec.items():
        option = "--" + name.replace("_", "-")
        if option not in known.names:
            near = similar(option, known.names).replace("--", "").replace("-", "_")
            raise InvalidInputError(f"--spec: {path}: a study has no argument {name!r}.{near}")
        if isinstance(value, bool):
            yield option if value else option.replace("--", "--no-", 1)
        elif isinstance(value, dict):
            for key, setting in value.items():
                yield from (option, f"{key}={setting}")
        elif value is None or any(isinstance(v, dict | list | None) for v in _listed(value)):
            raise InvalidInputError(
                f"--spec: {name} in {path} must be a word, a number, true or false, a list of "
                "these, or settings with their values."
            )
        else:
            yield from (option, *map(str, _listed(value)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class _Options:
    """Stands where a parser would, and notes the options that it is given."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def add_argument(self, *names: str, **_: Any) -> None:
        self.names.update(names)

    def add_argument_group(self, _: str) -> _Options:
        return self
