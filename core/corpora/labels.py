"""Labels that are probably meant to be one: alike but for blanks, case, Unicode form or a `.0`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["alike_labels", "alike_note"]

_MOST_NAMED = 3
_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def alike_labels(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of labels that differ in blanks, case, Unicode form or a `.0` alone.

    A label that only looks like a missing value, such as `NA`, is a label like any other.

    Parameters
    ----------
    labels : iterable of str
        Each as often as it occurs.

    Returns
    -------
    list of tuple of str
        Of at least two different labels each, in the order in which they come.

    Examples
    --------
    >>> alike_labels(["anna", "Anna ", "berta", "1", "1.0", "NA"])
    [('anna', 'Anna '), ('1', '1.0')]
    """
    found: dict[str, dict[str, None]] = {}
    for label in dict.fromkeys(labels):
        found.setdefault(_folded(label), {})[label] = None
    return [tuple(group) for group in found.values() if len(group) > 1]


def alike_note(labels: Iterable[str], *, what: str, are_merged: bool = False) -> str:
    """Return one note that names the labels that are alike; empty where there are none.

    Parameters
    ----------
    what : str
        What they are, in the plural, such as "labels".
    are_merged : bool
        Whether each group is read as one label; else its labels are separate ones.

    Examples
    --------
    >>> alike_note(["anna", "anna "], what="labels")
    "labels 'anna' and 'anna ' are alike but for blanks, case, Unicode form or a `.0`, and are \
separate here: write each in one way if they are meant to be one"
    >>> alike_note(["anna", "berta"], what="labels")
    ''
    """
    groups = alike_labels(labels)
    if not groups:
        return ""
    named = "; ".join(" and ".join(map(_shown, group)) for group in groups[:_MOST_NAMED])
    more = f"; and {len(groups) - _MOST_NAMED} more such groups" if groups[_MOST_NAMED:] else ""
    read = (
        "are read as one"
        if are_merged
        else "are separate here: write each in one way if they are meant to be one"
    )
    return (
        f"{what} {named}{more} are alike but for blanks, case, Unicode form or a `.0`, and {read}"
    )


def _folded(label: str) -> str:
    text = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def _shown(label: str) -> str:
    """Return a label in quotes, what is not seen in it escaped, cut where it is long."""
    told = ascii(label) if unicodedata.normalize("NFC", label) != label else repr(label)
    return told if len(told) <= 40 else f"{told[:39]}…"
