"""Whose turn it is: everybody in line gets one after the other, however much each has asked for."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

__all__ = ["Turns"]

_T = TypeVar("_T")


class Turns(Generic[_T]):
    """A line of owners, each with items of theirs in the order in which they came.

    Who had a turn goes to the end of the line when it is over.

    Examples
    --------
    >>> turns = Turns()
    >>> for owner, item in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")]:
    ...     turns.add(owner, item)
    >>> [turns.take() for _ in range(len(turns))]
    ['a1', 'b1', 'a2', 'a3']
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[_T]] = OrderedDict()
        self._serving: tuple[str, deque[_T]] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._lines()))

    def _lines(self) -> list[deque[_T]]:
        """Return the items by owner, in the order of their turns."""
        return [*self._waiting.values(), *([self._serving[1]] if self._serving else [])]

    def add(self, owner: str, item: _T) -> None:
        """Put an item behind the others of its owner."""
        if self._serving is not None and self._serving[0] == owner:
            self._serving[1].append(item)
        else:
            self._waiting.setdefault(owner, deque()).append(item)

    def count(self, owner: str) -> int:
        """Return how many items of an owner wait."""
        if self._serving is not None and self._serving[0] == owner:
            return len(self._serving[1])
        return len(self._waiting.get(owner, ()))

    def take(self) -> _T:
        """Return whose turn it is, and end the turn before."""
        self.finish()
        owner, items = self._waiting.popitem(last=False)
        self._serving = owner, items
        return items.popleft()

    def finish(self) -> None:
        """Send who had the turn to the end of the line."""
        if self._serving is not None and self._serving[1]:
            owner, items = self._serving
            self._waiting[owner] = items
        self._serving = None

    def remove(self, item: _T) -> None:
        """Take an item out of the line."""
        for owner, items in list(self._waiting.items()):
            if item in items:
                items.remove(item)
                if not items:
                    del self._waiting[owner]
        if self._serving is not None and item in self._serving[1]:
            self._serving[1].remove(item)

    def in_order(self) -> list[_T]:
        """Return all items as their turns will come if nobody joins or leaves."""
        lines = [deque(items) for items in self._lines()]
        order: list[_T] = []
        while any(lines):
            order += [items.popleft() for items in lines if items]
        return order
