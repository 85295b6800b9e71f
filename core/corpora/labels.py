"""Find labels that differ only in white space, case, Unicode form or a trailing `.0`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_MOST_NAMED = 3
_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def near_identical_labels(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of labels that differ only in white space, case, Unicode form or a `.0`.

    A label that only looks like a missing value, such as `NA`, is a label like any other.

    Parameters
    ----------
    labels : iterable of str
        Each as often as it occurs.

    Returns
    -------
    list of tuple of str
        Groups of at least two labels, in order of appearance.

    Examples
    --------
    >>> near_identical_labels(["anna", "Anna ", "berta", "1", "1.0", "NA"])
    [('anna', 'Anna '), ('1', '1.0')]
    """
    found: dict[str, dict[str, None]] = {}
    for label in dict.fromkeys(labels):
        found.setdefault(_normalise(label), {})[label] = None
    return [tuple(group) for group in found.values() if len(group) > 1]


def near_identical_note(labels: Iterable[str], *, what: str, are_merged: bool = False) -> str:
    """Return a note that names the near-identical ones of labels; empty if there are none.

    Parameters
    ----------
    what : str
        What they are, in the plural, such as "labels".
    are_merged : bool
        Whether each group is read as one label; else its labels are separate ones.

    Examples
    --------
    >>> near_identical_note(["anna", "anna "], what="labels")
    "labels 'anna' and 'anna ' differ only in blanks, case, Unicode form or a `.0`, and are \
treated as separate: write them the same way if they mean the same"
    >>> near_identical_note(["anna", "berta"], what="labels")
    ''
    """
    groups = near_identical_labels(labels)
    if not groups:
        return ""
    named = "; ".join(" and ".join(map(_quote, group)) for group in groups[:_MOST_NAMED])
    more = f"; and {len(groups) - _MOST_NAMED} more such groups" if groups[_MOST_NAMED:] else ""
    read = (
        "are treated as one"
        if are_merged
        else "are treated as separate: write them the same way if they mean the same"
    )
    return f"{what} {named}{more} differ only in blanks, case, Unicode form or a `.0`, and {read}"


def _normalise(label: str) -> str:
    """Return a label with white space, case, Unicode form and a trailing `.0` normalised."""
    text = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def _quote(label: str) -> str:
    """Return a label in quotes, with invisible characters escaped, shortened to 40 characters."""
    told = ascii(label) if unicodedata.normalize("NFC", label) != label else repr(label)
    return told if len(told) <= 40 else f"{told[:39]}…"
