"""What a session keeps of what it has seen: a few of a kind, for it alone, until it ends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

__all__ = ["Kept"]

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


@dataclass(frozen=True)
class Kept(Generic[_K, _V]):
    """Results by what identifies them, under a name in the session; the oldest gives way."""

    name: str
    most: int

    def get(self, key: _K) -> _V | None:
        """Return what was kept, None for nothing."""
        return self._store().get(key)

    def add(self, key: _K, value: _V) -> _V:
        """Keep and return a value."""
        store = self._store()
        store[key] = value
        while len(store) > self.most:
            store.popitem(last=False)
        return value

    def once(self, key: _K, make: Callable[[], _V]) -> _V:
        """Return what was kept, or make and keep it."""
        found = self.get(key)
        return self.add(key, make()) if found is None else found

    def _store(self) -> OrderedDict[_K, _V]:
        found: OrderedDict[_K, _V] = st.session_state.setdefault(self.name, OrderedDict())
        return found
