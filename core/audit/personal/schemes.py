"""Numbering schemes of national identifiers: detection, validation and random values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from leakscope.core.audit.personal.libraries import library


@dataclass(frozen=True)
class Scheme:
    """The numbering scheme of a national identifier.

    Attributes
    ----------
    title : str
    recognizer : str
        Presidio's class that finds it; empty where `pattern` does.
    check : str
        The module of python-stdnum that knows its rules; empty where there is none.
    has_checksum : bool
        Whether some of its signs follow from the others.
    attempt : callable
        Draws one at random, without separators; it may fail the check.
    layout : str
        How it is usually written: each # is one of its signs.
    pattern : str
        A regular expression, where presidio has none.
    context : tuple of str
        Words that name it, in lower case.
    """

    title: str
    recognizer: str
    check: str
    has_checksum: bool
    attempt: Callable[[np.random.Generator], str]
    layout: str
    pattern: str = ""
    context: tuple[str, ...] = ()

    def draw(self, rng: np.random.Generator) -> str:
        """Draw a valid identifier at random, without separators."""
        while not self.is_valid(found := self.attempt(rng)):
            pass
        return found

    def is_valid(self, value: str) -> bool:
        """Return whether a value passes python-stdnum's check; True if it has none."""
        return not self.check or bool(library(f"stdnum.{self.check}").is_valid(value))


def digits(rng: np.random.Generator, n: int) -> str:
    """Draw n random digits, as a string."""
    return "".join(map(str, rng.integers(0, 10, n).tolist()))


def _draw_letters(rng: np.random.Generator, n: int, of: str) -> str:
    """Draw n random letters from the string `of`."""
    return "".join(of[i] for i in rng.integers(0, len(of), n).tolist())


def _draw_day(rng: np.random.Generator) -> date:
    """Draw a date from 1930 to 1999, a century that every scheme writes the same."""
    return date(1930, 1, 1) + timedelta(days=int(rng.integers(0, 70 * 365)))


def _draw_us_ssn(rng: np.random.Generator) -> str:
    """Draw a US social security number, possibly an invalid one."""
    return f"{rng.integers(1, 900):03}{rng.integers(1, 100):02}{rng.integers(1, 10_000):04}"


def _draw_gb_nino(rng: np.random.Generator) -> str:
    """Draw a UK national insurance number."""
    first, second = "ABCEGHJKLMNPRSTWXYZ", "ABCEGHJKLMNPRSTWXYZ"
    while (prefix := _draw_letters(rng, 1, first) + _draw_letters(rng, 1, second)) in _NINO_UNUSED:
        pass
    return prefix + digits(rng, 6) + _draw_letters(rng, 1, "ABCD")


_NINO_UNUSED = {"BG", "GB", "NK", "KN", "NT", "TN", "ZZ"}


def _draw_es_dni(rng: np.random.Generator) -> str:
    """Draw a Spanish DNI."""
    number = digits(rng, 8)
    return number + str(library("stdnum.es.dni").calc_check_digit(number))


def _draw_es_nie(rng: np.random.Generator) -> str:
    """Draw a Spanish NIE."""
    number = _draw_letters(rng, 1, "XYZ") + digits(rng, 7)
    return number + str(library("stdnum.es.nie").calc_check_digit(number))


def _draw_it_cf(rng: np.random.Generator) -> str:
    """Draw an Italian codice fiscale."""
    consonants, born = "BCDFGLMNPRSTVZ", _draw_day(rng)
    number = (
        _draw_letters(rng, 6, consonants)
        + f"{born:%y}{'ABCDEHLMPRST'[born.month - 1]}{born.day + 40 * int(rng.integers(2)):02}"
        + _draw_letters(rng, 1, "ABCDEFGHILM")
        + f"{rng.integers(1, 900):03}"
    )
    return number + str(library("stdnum.it.codicefiscale").calc_check_digit(number))


def _draw_de_idnr(rng: np.random.Generator) -> str:
    """Draw a German tax number: ten digits of which one occurs twice, and a check digit."""
    order = rng.permutation(10).tolist()
    order[int(rng.integers(1, 10))] = order[0]
    number = "".join(map(str, order))
    if number[0] == "0":
        number = number[::-1]
    return number + str(library("stdnum.iso7064.mod_11_10").calc_check_digit(number))


def _draw_pl_pesel(rng: np.random.Generator) -> str:
    """Draw a Polish PESEL, possibly an invalid one."""
    number = f"{_draw_day(rng):%y%m%d}" + digits(rng, 4)
    return number + str(library("stdnum.pl.pesel").calc_check_digit(number))


def _draw_fi_hetu(rng: np.random.Generator) -> str:
    """Draw a Finnish personal identity code."""
    born, serial = f"{_draw_day(rng):%d%m%y}", f"{rng.integers(2, 900):03}"
    return f"{born}-{serial}" + "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(born + serial) % 31]


def _draw_se_personnummer(rng: np.random.Generator) -> str:
    """Draw a Swedish personal identity number."""
    number = f"{_draw_day(rng):%y%m%d}" + digits(rng, 3)
    return number + str(library("stdnum.luhn").calc_check_digit(number))


def _draw_in_aadhaar(rng: np.random.Generator) -> str:
    """Draw an Indian Aadhaar number."""
    number = str(rng.integers(2, 10)) + digits(rng, 10)
    return number + str(library("stdnum.verhoeff").calc_check_digit(number))


def _draw_fr_nir(rng: np.random.Generator) -> str:
    """Draw a French NIR."""
    born, place = f"{_draw_day(rng):%y%m}", int(rng.integers(21, 96))
    number = f"{rng.integers(1, 3)}{born}{place:02}{rng.integers(1, 900):03}"
    number += f"{rng.integers(1, 900):03}"
    return number + str(library("stdnum.fr.nir").calc_check_digits(number))


def _draw_gb_nhs(rng: np.random.Generator) -> str:
    """Draw an NHS number, possibly an invalid one."""
    number = str(rng.integers(4, 8)) + digits(rng, 8)
    check = (11 - sum((10 - i) * int(sign) for i, sign in enumerate(number))) % 11
    return number + str(check)  # a check of 10 is not valid, and is drawn again


SCHEMES: Mapping[str, Scheme] = {
    "us_ssn": Scheme(
        "US social security number",
        "UsSsnRecognizer",
        "us.ssn",
        False,
        _draw_us_ssn,
        "###-##-####",
        context=("ssn", "social security", "social-security"),
    ),
    "gb_nino": Scheme(
        "UK national insurance number",
        "UkNinoRecognizer",
        "",
        False,
        _draw_gb_nino,
        "## ## ## ## #",
        context=("national insurance", "nino", "ni number"),
    ),
    "gb_nhs": Scheme(
        "NHS number",
        "NhsRecognizer",
        "gb.nhs",
        True,
        _draw_gb_nhs,
        "### ### ####",
        context=("nhs", "health service"),
    ),
    "es_dni": Scheme(
        "Spanish DNI",
        "EsNifRecognizer",
        "es.dni",
        True,
        _draw_es_dni,
        "#########",
        context=("dni", "nif", "documento nacional"),
    ),
    "es_nie": Scheme(
        "Spanish NIE",
        "EsNieRecognizer",
        "es.nie",
        True,
        _draw_es_nie,
        "#########",
        context=("nie",),
    ),
    "it_cf": Scheme(
        "Italian codice fiscale",
        "ItFiscalCodeRecognizer",
        "it.codicefiscale",
        True,
        _draw_it_cf,
        "################",
        context=("codice fiscale", "fiscal code", "tax code"),
    ),
    "de_idnr": Scheme(
        "German tax identification number",
        "DeTaxIdRecognizer",
        "de.idnr",
        True,
        _draw_de_idnr,
        "###########",
        context=("steuer", "idnr", "tax id", "tax identification"),
    ),
    "pl_pesel": Scheme(
        "Polish PESEL",
        "PlPeselRecognizer",
        "pl.pesel",
        True,
        _draw_pl_pesel,
        "###########",
        context=("pesel",),
    ),
    "fi_hetu": Scheme(
        "Finnish personal identity code",
        "FiPersonalIdentityCodeRecognizer",
        "fi.hetu",
        True,
        _draw_fi_hetu,
        "######-####",
        context=("hetu", "henkilötunnus", "personal identity code"),
    ),
    "se_personnummer": Scheme(
        "Swedish personal identity number",
        "SePersonnummerRecognizer",
        "se.personnummer",
        True,
        _draw_se_personnummer,
        "######-####",
        context=("personnummer", "personal identity number"),
    ),
    "in_aadhaar": Scheme(
        "Aadhaar",
        "InAadhaarRecognizer",
        "in_.aadhaar",
        True,
        _draw_in_aadhaar,
        "#### #### ####",
        context=("aadhaar", "uidai"),
    ),
    "fr_nir": Scheme(
        "French NIR",
        "",
        "fr.nir",
        True,
        _draw_fr_nir,
        "# ## ## ## ### ### ##",
        pattern=r"(?<!\w)[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d"
        r"(?!\w)",
        context=("nir", "sécurité sociale", "securite sociale"),
    ),
}
"""The national identifiers to look for."""


def format_like(shape: str, compact: str) -> str:
    """Return `shape` with its letters, digits and # replaced by the characters of `compact`.

    Examples
    --------
    >>> format_like("###-##-####", "123456789"), format_like("ab 12", "CD34")
    ('123-45-6789', 'cd 34')
    """
    signs = iter(sign for sign in compact if sign.isalnum())
    return "".join(
        (new.lower() if sign.islower() else new)
        if (sign.isalnum() or sign == "#") and (new := next(signs, ""))
        else sign
        for sign in shape
    )
