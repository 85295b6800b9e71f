"""The kinds of personal data that are detected, and how replacement values are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from leakscope.core.audit.personal.candidates import (
    address_like,
    birth_date_like,
    card_like,
    email_like,
    iban_like,
    name_like,
    national_like,
    phone_like,
)


@dataclass(frozen=True)
class Entry:
    """Registry entry of a kind of personal data.

    Attributes
    ----------
    title, plural : str
    has_checksum : bool
        Whether some of its digits follow from the others, so that few other numbers pass for one.
        Of national identifiers it depends on the scheme.
    draw : callable
        Another value of the kind: of the value, its scheme and a Generator.
    """

    title: str
    plural: str
    has_checksum: bool
    draw: Callable[[str, str, np.random.Generator], str]


KINDS: Mapping[str, Entry] = {
    "name": Entry("name", "names of people", False, name_like),
    "email": Entry("e-mail address", "e-mail addresses", False, email_like),
    "phone": Entry("telephone number", "telephone numbers", False, phone_like),
    "iban": Entry("IBAN", "IBANs", True, iban_like),
    "card": Entry("card number", "card numbers", True, card_like),
    "address": Entry("postal address", "postal addresses", False, address_like),
    "national_id": Entry("national identifier", "national identifiers", True, national_like),
    "birth_date": Entry("date of birth", "dates of birth", False, birth_date_like),
}


@dataclass(frozen=True)
class Identifier:
    """Personal data found in a text. Its `repr` omits the value, since it may end up in a log.

    Attributes
    ----------
    kind : str
        A key of KINDS.
    start, end : int
        Where it is: `text[start:end]`.
    value : str
        As it is written there.
    scheme : str
        What else its candidates share: the region of a telephone number, the scheme of a national
        identifier, the form of an address.
    """

    kind: str
    start: int
    end: int
    value: str = field(repr=False)
    scheme: str = ""


def draw_candidates(identifier: Identifier, n: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw up to n different values of the same kind and form, never the true one.

    Fewer where no more are found in 20 n draws. Values are the same where their letters and digits
    are, in any case.
    """
    seen = {_fold_value(identifier.value)}
    found: list[str] = []
    draw = KINDS[identifier.kind].draw
    for _ in range(20 * n):
        if len(found) == n:
            break
        value = draw(identifier.value, identifier.scheme, rng)
        if (signs := _fold_value(value)) not in seen:
            seen.add(signs)
            found.append(value)
    return tuple(found)


def _fold_value(value: str) -> str:
    """Return the letters and digits of a value, case-folded."""
    return "".join(sign for sign in value.casefold() if sign.isalnum())
