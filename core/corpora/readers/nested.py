"""Access fields of nested records by dotted names: `payload.text`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEEPEST = 8
"""Maximum nesting depth of named fields; deeper objects stay one value."""


def leaf_names(record: Mapping[str, Any], depth: int = 1) -> Iterator[str]:
    """Yield the dotted name of every leaf field of a nested record.

    Examples
    --------
    >>> list(leaf_names({"id": 1, "payload": {"text": "a", "at": {"page": 2}}, "gap": {}}))
    ['id', 'payload.text', 'payload.at.page', 'gap']
    """
    for name, value in record.items():
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            yield from (f"{name}.{inner}" for inner in leaf_names(value, depth + 1))
        else:
            yield name


def get_leaf(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a nested record's field by its dotted name; None if missing.

    Examples
    --------
    >>> get_leaf({"payload": {"text": "a"}}, "payload.text"), get_leaf({"a.b": 1}, "a.b")
    ('a', 1)
    """
    found = _holder(record, name)
    return None if found is None else found[0][found[1]]


def set_leaf(record: dict[str, Any], name: str, value: Any) -> None:
    """Set the value of an existing field of a nested record by its dotted name.

    Raises
    ------
    KeyError
        The record has no such field.
    """
    found = _holder(record, name)
    if found is None:
        raise KeyError(name)
    found[0][found[1]] = value


def _holder(record: Any, name: str) -> tuple[Any, str] | None:
    """Return the innermost object with a dotted field, and the field's name in it; None if none."""
    if name in record:
        return record, name
    end = name.find(".")
    while end >= 0:
        inner = record.get(name[:end])
        found = _holder(inner, name[end + 1 :]) if isinstance(inner, Mapping) else None
        if found is not None:
            return found
        end = name.find(".", end + 1)
    return None
