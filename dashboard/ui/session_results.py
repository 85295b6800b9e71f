"""A small cache of results in the visitor's session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


@dataclass(frozen=True)
class SessionCache(Generic[_K, _V]):
    """A cache of at most `most` results in the session; the oldest is dropped first."""

    name: str
    most: int

    def get(self, key: _K) -> _V | None:
        """Return the cached value of a key, or None."""
        return self._store().get(key)

    def add(self, key: _K, value: _V) -> _V:
        """Cache a value under a key and return the value."""
        store = self._store()
        store[key] = value
        while len(store) > self.most:
            store.popitem(last=False)
        return value

    def once(self, key: _K, make: Callable[[], _V]) -> _V:
        """Return a key's cached value, or compute it by `make` and cache it."""
        found = self.get(key)
        return self.add(key, make()) if found is None else found

    def _store(self) -> OrderedDict[_K, _V]:
        """Return the ordered dictionary in the session that holds this cache."""
        found: OrderedDict[_K, _V] = st.session_state.setdefault(self.name, OrderedDict())
        return found
