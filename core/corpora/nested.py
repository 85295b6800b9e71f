"""Columns of nested records: `payload.text` names the field `text` of the object `payload`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["leaf_names", "leaf_of", "set_leaf"]

_DEEPEST = 8
"""Objects inside each other whose fields are named; what lies deeper stays one value."""


def leaf_names(record: Mapping[str, Any], depth: int = 1) -> Iterator[str]:
    """Yield the name of every field of a record, those of objects in it behind a dot.

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


def leaf_of(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field by its name; None where the record has no such field.

    Examples
    --------
    >>> leaf_of({"payload": {"text": "a"}}, "payload.text"), leaf_of({"a.b": 1}, "a.b")
    ('a', 1)
    """
    found = _holder(record, name)
    return None if found is None else found[0][found[1]]


def set_leaf(record: dict[str, Any], name: str, value: Any) -> None:
    """Replace the value of a field that the record has, by its name.

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
    """Return the object that holds a field, and the field's name in it."""
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
