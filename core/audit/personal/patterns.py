"""Regular expressions for dates and postal addresses, with named groups for their parts.

Each quantifier is bounded, so that no text takes long.
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

_MONTHS = (
    "January February March April May June July August September October November December",
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
MONTHS = tuple(tuple(line.split()) for line in _MONTHS)
"""The months in several languages, each from first to last."""

_NAMES = "|".join(sorted({name for line in MONTHS for name in line}, key=len, reverse=True))
_AROUND = r"(?<![\w/.-]){}(?![\w/]|[.-]\d)"

DATES = tuple(
    regex.compile(_AROUND.format(pattern), regex.IGNORECASE)
    for pattern in (
        r"(?P<year>(?:19|20)\d\d)(?P<separator>[-/.])(?P<month>\d{1,2})(?P=separator)"
        r"(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})(?P<separator>[-/.])(?P<month>\d{1,2})(?P=separator)"
        r"(?P<year>(?:19|20)\d\d|\d\d)",
        rf"(?P<day>\d{{1,2}})(?P<ordinal>st|nd|rd|th|\.)?(?: of| de)?[ -](?P<name>{_NAMES})\.?"
        r"(?: de)?[ ,-]{1,2}(?P<year>(?:19|20)\d\d)",
        rf"(?P<name>{_NAMES})\.? (?P<day>\d{{1,2}})(?P<ordinal>st|nd|rd|th)?,? "
        r"(?P<year>(?:19|20)\d\d)",
    )
)

BIRTH = regex.compile(
    r"\b(?:born|birth|birthday|birthdate|dob|d\.o\.b|geboren|geb|geburtsdatum|geburtstag|née?"
    r"|naissance|nat[oa]|nascita|nacid[oa]|nacimiento)\b",
    regex.IGNORECASE,
)
"""Words that mark a nearby date as a date of birth."""

_WORD = r"\p{Lu}[\p{L}'’-]{1,24}"
_CITY = rf"{_WORD}(?: {_WORD}){{0,2}}"
_UK_CODE = r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}"
_US_CODE = r"[A-Z]{2} \d{5}(?:-\d{4})?"

ADDRESSES: Mapping[str, regex.Pattern[str]] = {
    "en": regex.compile(
        rf"(?<![\w.,-])(?P<number>\d{{1,5}})[A-Za-z]? (?P<street>{_WORD}(?: {_WORD}){{0,2}}) "
        r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Square|Sq|Place|Pl|Terrace|Way"
        r"|Close|Crescent|Boulevard|Blvd|Gardens|Grove|Row|Highway)(?!\w)\.?"
        rf"(?:,? (?:Apt|Flat|Suite|Unit)\.? \w{{1,5}})?(?:, {_CITY},? (?:{_UK_CODE}|{_US_CODE}))?"
    ),
    "de": regex.compile(
        r"(?<!\w)(?P<street>\p{Lu}\p{Ll}{1,24}?)(?:straße|strasse|str\.|weg|allee|platz|gasse|damm"
        rf"|ufer) (?P<number>\d{{1,4}})[a-z]?(?!\w)(?:, \d{{4,5}} {_CITY})?"
    ),
    "de_two_words": regex.compile(
        rf"(?<!\w)(?P<street>{_WORD}) (?:Straße|Strasse|Allee|Platz|Weg) (?P<number>\d{{1,4}})"
        rf"[a-z]?(?!\w)(?:, \d{{4,5}} {_CITY})?"
    ),
    "fr": regex.compile(
        r"(?<!\w)(?P<number>\d{1,4})(?: bis| ter)?,? (?i:rue|avenue|boulevard|place|chemin|allée"
        r"|impasse|quai) (?:(?:de|du|des|la|le|les) |[dl]['’]){0,2}"
        rf"(?P<street>{_WORD}(?: {_WORD}){{0,2}})(?:, \d{{5}} {_CITY})?"
    ),
    "it_es": regex.compile(
        r"(?<!\w)(?:Via|Viale|Corso|Piazza|Largo|Calle|Avenida|Plaza|Paseo) "
        r"(?:(?:del|della|dei|degli|di|de|la|los|las|el) ){0,2}"
        rf"(?P<street>{_WORD}(?: {_WORD}){{0,2}}),? (?P<number>\d{{1,4}})(?!\w)"
        rf"(?:, \d{{5}} {_CITY})?"
    ),
}
"""Forms of addresses: a street with a number, and the town if it follows."""

_STREETS = {
    "en": (
        "Abbey Albert Ash Beech Bridge Canal Castle Cedar Chapel Cherry Church College Crown Dale "
        "Elm Forest Garden George Grange Green Grove Hazel Hill Holly King Lake Lime Manor Maple "
        "Market Meadow Mill North Oak Orchard Park Pine Poplar Prince Queen River Rose School "
        "South Spring Station Stone Sycamore Union Valley Victoria Walnut Water West Willow "
        "Windsor Wood York"
    ),
    "de": (
        "Ahorn Bahnhof Berg Birken Blumen Brunnen Buchen Burg Dorf Eichen Erlen Feld Flieder "
        "Forst Friedhof Garten Goethe Haupt Hof Industrie Kirch Linden Luisen Markt Mozart Mühlen "
        "Park Post Rathaus Ring Rosen Schiller Schloss Schul See Sonnen Stadt Stein Tal Tannen "
        "Ufer Wald Wasser Wiesen Ziegel"
    ),
    "fr": (
        "Gambetta Pasteur Voltaire Rousseau Molière Zola Verdun Strasbourg Lyon Nantes Bordeaux "
        "Victor-Hugo Jaurès Moulin Clemenceau Foch Leclerc Mozart Ravel Berlioz Carnot Thiers "
        "Lamartine Diderot Balzac Stendhal Flaubert Curie Ampère Lavoisier Monge Arago"
    ),
    "it_es": (
        "Roma Milano Torino Venezia Napoli Garibaldi Mazzini Cavour Verdi Dante Petrarca Galilei "
        "Marconi Volta Rossini Puccini Mayor Cervantes Goya Velázquez Colón Toledo Sevilla Granada "
        "Madrid Valencia Asturias Aragón Serrano Alcalá Bolívar Quevedo"
    ),
}
STREETS: Mapping[str, tuple[str, ...]] = {
    form: tuple(line.split()) for form, line in _STREETS.items()
}
"""Street names to draw from."""


def replace_groups(match: regex.Match[str], new: Mapping[str, str]) -> str:
    """Return the matched text with some of its named groups replaced.

    Examples
    --------
    >>> replace_groups(regex.search(r"(?P<a>x)-(?P<b>y)", "an x-y"), {"b": "z"})
    'x-z'
    """
    text, shift = match[0], match.start()
    for name in sorted(new, key=match.start, reverse=True):
        if match[name] is not None:
            start, end = match.start(name) - shift, match.end(name) - shift
            text = text[:start] + new[name] + text[end:]
    return text
