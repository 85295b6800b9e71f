"""Sentences with synthetic identifiers at known places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leakscope.core.audit.personal.candidates import (
    address_like,
    birth_date_like,
    card_like,
    email_like,
    iban_like,
    load_names,
    phone_like,
)
from leakscope.core.audit.personal.kinds import KINDS, Identifier
from leakscope.core.audit.personal.libraries import library
from leakscope.core.audit.personal.schemes import SCHEMES, format_like
from leakscope.core.errors import InvalidInputError

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "name": ("{text} Please ask {who}.", "{text} The letter was written by {who}."),
    "email": ("{text} Write to {who}.", "My address is {who}. {text}"),
    "phone": ("{text} Call me on {who}.", "My number is {who}. {text}"),
    "iban": ("{text} Please pay to {who}.", "The account is {who}. {text}"),
    "card": ("{text} The card is {who}.", "Charge {who}, please. {text}"),
    "address": ("{text} She lives at {who}.", "Send it to {who}. {text}"),
    "national_id": ("{text} The identity number is {who}.", "Identity number {who}. {text}"),
    "birth_date": ("{text} He was born on {who}.", "Date of birth: {who}. {text}"),
}

_IBANS = (
    "DE89 3704 0044 0532 0130 00",
    "GB29 NWBK 6016 1331 9268 19",
    "FR7630006000011234567890189",
    "IT60 X054 2811 1010 0000 0123 456",
    "NL91 ABNA 0417 1643 00",
    "AT61 1904 3002 3457 3201",
    "CH93 0076 2011 6238 5295 7",
    "ES9121000418450200051332",
)
_CARDS = ("4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "6011000000000004")
_PHONES = ("US", "GB", "DE", "FR", "IT", "ES", "NL", "CH", "IN", "BR")
_ADDRESSES = {
    "en": "12 Mill Road, Leeds, LS1 4AB",
    "de": "Hauptstraße 12, 10115 Berlin",
    "fr": "12 rue Pasteur, 75001 Paris",
    "it_es": "Via Roma 12, 00100 Roma",
}
_DATES = (
    "12/03/1984",
    "1984-03-12",
    "12.03.1984",
    "12 March 1984",
    "March 12, 1984",
    "12th May 1984",
)


def _draw_one(rng: np.random.Generator, of: Sequence[str]) -> str:
    """Draw one element of a sequence at random."""
    return of[int(rng.integers(len(of)))]


def _name(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic name."""
    return (
        f"{_draw_one(rng, load_names('first_names'))} {_draw_one(rng, load_names('surnames'))}",
        "",
    )


def _email(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic e-mail address."""
    domain = _draw_one(rng, ("example.org", "mail.example.com", "example.co.uk", "example.de"))
    local = _draw_one(rng, ("ada.quell", "aquell", "ada_quell84", "adaquell"))
    return email_like(f"{local}@{domain}", "", rng), ""


def _phone(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic telephone number, with its region."""
    numbers, region = library("phonenumbers"), _draw_one(rng, _PHONES)
    example = numbers.example_number_for_type(region, numbers.PhoneNumberType.MOBILE)
    form = numbers.PhoneNumberFormat.INTERNATIONAL
    return phone_like(numbers.format_number(example, form), region, rng), region


def _national(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic national identifier, with its scheme."""
    name = _draw_one(rng, tuple(name for name, scheme in SCHEMES.items() if scheme.has_checksum))
    return format_like(SCHEMES[name].layout, SCHEMES[name].draw(rng)), name


def _address(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic postal address, with its form."""
    form = _draw_one(rng, tuple(_ADDRESSES))
    return address_like(_ADDRESSES[form], form, rng), form


_DRAWS: Mapping[str, Callable[[np.random.Generator], tuple[str, str]]] = {
    "name": _name,
    "email": _email,
    "phone": _phone,
    "iban": lambda rng: (iban_like(_draw_one(rng, _IBANS), "", rng), ""),
    "card": lambda rng: (card_like(_draw_one(rng, _CARDS), "", rng), ""),
    "address": _address,
    "national_id": _national,
    "birth_date": lambda rng: (birth_date_like(_draw_one(rng, _DATES), "", rng), ""),
}


@dataclass(frozen=True)
class SyntheticText:
    """A sentence with one synthetic identifier.

    Attributes
    ----------
    text : str
    identifier : Identifier
        What is in it, and where.
    """

    text: str
    identifier: Identifier


def synthetic_texts(
    kind: str, carriers: Sequence[str], n: int, *, seed: int
) -> list[SyntheticText]:
    """Build n sentences, each a carrier sentence with a synthetic identifier added.

    National identifiers come from the schemes with a checksum.

    Parameters
    ----------
    kind : str
        A key of KINDS.
    carriers : sequence of str
        Sentences; they are taken in turn, from a place that is drawn.
    seed : int

    Raises
    ------
    InvalidInputError
        No such kind, or no carrier.
    """
    if kind not in KINDS:
        raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if not carriers:
        raise InvalidInputError("carriers must contain at least one sentence, got none.")
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    start = int(rng.integers(len(carriers)))
    made = []
    for i in range(n):
        value, scheme = _DRAWS[kind](rng)
        template = _draw_one(rng, _TEMPLATES[kind])
        before = template.partition("{who}")[0].format(
            text=(text := carriers[(start + i) % len(carriers)])
        )
        found = Identifier(kind, len(before), len(before) + len(value), value, scheme)
        made.append(SyntheticText(template.format(text=text, who=value), found))
    return made
