"""The kinds of personal data that are detected, and how replacement values are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import regex

from leakscope.core.assets import ASSETS
from leakscope.core.audit.personal.libraries import library
from leakscope.core.audit.personal.patterns import ADDRESSES, DATES, MONTHS, STREETS, replace_groups
from leakscope.core.audit.personal.schemes import SCHEMES, digits, format_like

FOLDER = ASSETS / "personal"


@lru_cache(maxsize=2)
def load_names(file: str) -> tuple[str, ...]:
    """Load a shipped list of names, `first_names` or `surnames`, as a tuple in order."""
    lines = (FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(dict.fromkeys(w for line in lines if line[:1] != "#" for w in line.split()))


def draw_one(rng: np.random.Generator, of: Sequence[str]) -> str:
    """Draw one element of a sequence at random."""
    return of[int(rng.integers(len(of)))]


def name_like(value: str, _: str, rng: np.random.Generator) -> str:
    """Draw a random name with as many parts as the given one.

    Initials stay initials and particles stay; a single word becomes a surname or a first name.
    """
    words = value.split()
    found = []
    for i, word in enumerate(words):
        if len(word.rstrip(".")) == 1:
            new = draw_one(rng, tuple("ABCDEFGHJKLMNPRSTW")) + "." * word.endswith(".")
        elif word.islower() and not value.islower():
            new = word
        elif len(words) == 1:
            new = draw_one(rng, load_names("surnames") + load_names("first_names"))
        else:
            new = draw_one(rng, load_names("first_names" if i < len(words) - 1 else "surnames"))
        found.append(new)
    written = " ".join(found)
    return written.upper() if value.isupper() else written.lower() if value.islower() else written


def email_like(value: str, _: str, rng: np.random.Generator) -> str:
    """Draw a random e-mail address at the same domain, with a similar local part."""
    local, _, domain = value.rpartition("@")
    first, last = draw_one(rng, load_names("first_names")), draw_one(rng, load_names("surnames"))
    end = regex.search(r"\d{0,12}$", local)
    n_digits = len(end[0]) if end else 0
    separator = regex.search(r"(?<=\w)[._+-](?=\w)", local)
    if separator:
        new = first + separator[0] + last
    else:
        new = (first if rng.integers(2) else first[0]) + last
    new += digits(rng, n_digits)
    return f"{new.lower() if local.islower() else new}@{domain}"


def phone_like(value: str, region: str, rng: np.random.Generator) -> str:
    """Draw a valid telephone number of the same region and format; the given one if none is found.

    The country and area codes stay, as far as they are not among the last seven digits.
    """
    phonenumbers = library("phonenumbers")
    whole = phonenumbers.parse(value, region)
    extension = len(whole.extension or "")
    places = [i for i, sign in enumerate(value) if sign.isdigit()]
    places = places[: len(places) - extension]
    last = places[-min(7, len(str(whole.national_number)) - 2) :]
    signs = list(value)
    for _ in range(200):
        for i, digit in zip(last, digits(rng, len(last)), strict=True):
            signs[i] = digit
        if phonenumbers.is_valid_number(phonenumbers.parse("".join(signs), region)):
            return "".join(signs)
    return value  # no other number was found, and the true value cannot be a candidate


def iban_like(value: str, _: str, rng: np.random.Generator) -> str:
    """Draw an IBAN of the same country with valid check digits (ISO 13616).

    Letters, which name the bank in some countries, stay. Check digits that some countries have
    within the account number are not kept.
    """
    compact = "".join(sign for sign in value.upper() if sign.isalnum())
    account = "".join(digits(rng, 1) if sign.isdigit() else sign for sign in compact[4:])
    country = compact[:2]
    check = library("stdnum.iban").calc_check_digits(f"{country}00{account}")
    return format_like(value, f"{country}{check}{account}")


def card_like(value: str, _: str, rng: np.random.Generator) -> str:
    """Draw a card number of the same issuer (first six digits) that passes Luhn's test."""
    compact = "".join(sign for sign in value if sign.isdigit())
    number = compact[:6] + digits(rng, len(compact) - 7)
    return format_like(value, number + str(library("stdnum.luhn").calc_check_digit(number)))


def national_like(value: str, scheme: str, rng: np.random.Generator) -> str:
    """Draw a valid national identifier of the same scheme in the same format."""
    drawn = SCHEMES[scheme].draw(rng)
    n_signs = sum(sign.isalnum() for sign in value)
    if scheme == "se_personnummer" and n_signs == 12:  # the century is included
        drawn = "19" + drawn
    if scheme == "es_dni" and n_signs < len(drawn):
        return value  # seven digits and a letter: an old form, not drawn
    return format_like(value, drawn)


def birth_date_like(value: str, _: str, rng: np.random.Generator) -> str:
    """Draw a date from 1930 to 2009, written in the format of the given one."""
    match = next(m for pattern in DATES if (m := pattern.fullmatch(value)))
    parts = match.groupdict()
    born = date(1930, 1, 1) + timedelta(days=int(rng.integers(0, 80 * 365)))
    is_padded = all(len(parts.get(part) or "00") == 2 for part in ("day", "month"))
    width = 2 if is_padded else 1
    day, month = f"{born.day:0{width}}", f"{born.month:0{width}}"
    if int(parts.get("month") or 0) > 12:  # the month comes first
        day, month = month, day
    new = {"day": day, "year": f"{born.year}"[-len(parts["year"]) :]}
    if name := parts.get("name"):
        line = next(line for line in MONTHS if name.lower() in map(str.lower, line))
        written = line[born.month - 1]
        new["name"] = (
            written.upper()
            if name.isupper()
            else written.lower()
            if name.islower()
            else written.capitalize()
        )
        new["day"] = f"{born.day:0{1 + parts['day'].startswith('0')}}"
        if parts.get("ordinal") not in (None, "."):
            new["ordinal"] = _ordinal(born.day)
    else:
        new["month"] = month
    return replace_groups(match, new)


def _ordinal(day: int) -> str:
    """Return the English ordinal suffix of a day of the month: st, nd, rd or th."""
    return "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def address_like(value: str, form: str, rng: np.random.Generator) -> str:
    """Draw an address of the same form and town, with another street and number."""
    match = ADDRESSES[form].fullmatch(value)
    assert match is not None
    street = draw_one(rng, STREETS["en" if form == "en" else form.removesuffix("_two_words")])
    number = str(int(rng.integers(1, 200)))
    return replace_groups(match, {"street": street, "number": number})


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
    """Draw up to n different values of an identifier's kind and form, never the true one.

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
