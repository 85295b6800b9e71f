"""A fair queue: owners take turns, however many items each has queued."""

from __future__ import annotations

from copy import copy
from typing import Generic, TypeVar

_T = TypeVar("_T")
_Owner = tuple[str, ...]


class FairQueue(Generic[_T]):
    """A fair queue of items, round-robin over shares (such as offices) and over owners within them.

    Who had a turn goes to the end of the line when it is over, and so does their share.

    Examples
    --------
    >>> turns = FairQueue()
    >>> for owner, item in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")]:
    ...     turns.add(owner, item)
    >>> [turns.take() for _ in range(len(turns))]
    ['a1', 'b1', 'a2', 'a3']
    >>> for owner, share in [("a", "one"), ("b", "one"), ("c", "two")]:
    ...     turns.add(owner, owner, share=share)
    >>> [turns.take() for _ in range(len(turns))]
    ['a', 'c', 'b']
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[_Owner, _T]] = []
        self._serving: _Owner | None = None
        self._places: dict[_Owner, int] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, owner: str, item: _T, *, share: str = "") -> None:
        """Queue an item behind its owner's others; without a share, the owner is its own share."""
        key = (share or owner, owner)
        for line in (key[:1], key):
            if line not in self._places:
                self._to_end(line)
        self._waiting.append((key, item))

    def count(self, owner: str) -> int:
        """Return how many items of an owner are queued."""
        return sum(key[1] == owner for key, _ in self._waiting)

    def count_of_share(self, share: str) -> int:
        """Return how many items of a share are queued."""
        return sum(key[0] == share for key, _ in self._waiting)

    def take(self) -> _T:
        """Remove and return the next item, ending the previous turn."""
        self.finish()
        places = self._places
        at = min(
            range(len(self._waiting)),
            key=lambda i: (places[self._waiting[i][0][:1]], places[self._waiting[i][0]]),
        )
        self._serving, item = self._waiting.pop(at)
        return item

    def finish(self) -> None:
        """End the current turn: its owner and share move to the end."""
        if self._serving is not None:
            for line in (self._serving[:1], self._serving):
                self._to_end(line)
        self._serving = None
        self._forget()

    def remove(self, item: _T) -> None:
        """Remove an item from the queue."""
        self._waiting = [(key, other) for key, other in self._waiting if other is not item]
        self._forget()

    def in_order(self) -> list[_T]:
        """Return all queued items in the order in which they would be served."""
        line = copy(self)
        line._waiting, line._places = [*self._waiting], {**self._places}
        return [line.take() for _ in range(len(self))]

    def _to_end(self, line: _Owner) -> None:
        """Move an owner or a share to the end."""
        self._last += 1
        self._places[line] = self._last

    def _forget(self) -> None:
        """Drop the positions of owners and shares without queued items."""
        keys = {key for key, _ in self._waiting} | ({self._serving} if self._serving else set())
        kept = {line for key in keys for line in (key[:1], key)}
        self._places = {line: place for line, place in self._places.items() if line in kept}
