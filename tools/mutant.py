"""A fault planted on purpose, with the tests that must detect it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A planted fault: the change to a file, and the tests that must detect it.

    Attributes
    ----------
    name : str
        What goes wrong.
    old, new : str
        What stands in the file, once, and what is put there.
    tests : tuple of str
        As pytest takes them.
    excuse : str
        Why no test can notice it, where none can.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    excuse: str = ""
