"""Rule-based detection of personal data in texts, with presidio, phonenumbers and our rules.

No model is used. Personal data written in a form that the rules do not know is missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import regex

from leakscope.core.audit.personal.kinds import KINDS, Identifier, load_names
from leakscope.core.audit.personal.libraries import domain_reader, library, presidio_recognizers
from leakscope.core.audit.personal.patterns import ADDRESSES, BIRTH, DATES
from leakscope.core.audit.personal.schemes import SCHEMES
from leakscope.core.language import FREQUENT_WORDS
from leakscope.core.names.discovery import likely_names
from leakscope.core.text import STOP_WORDS, check_text, word_set

REGIONS = ("US", "GB", "DE", "FR", "IT", "ES")
"""Regions whose telephone numbers are found without a country code."""

_NEAR = 60
"""Characters before a number that are searched for a word that names its kind."""

_WINDOW, _STEP = 600, 450
"""Texts are searched in overlapping parts of this size, so that no pattern takes long."""

_SURE_SCORE = 0.5
"""Presidio's score from which a number without a checksum needs no naming word."""


_PHONE = regex.compile(r"\b(?:call|tel|telephone|telefon|phone|mobile|mobil|cell|fax)", regex.I)


@dataclass(frozen=True)
class _Hit:
    """An identifier that one rule found, and whether its form or context is certain.

    Attributes
    ----------
    is_certain : bool
        Whether its form, or a word before it, names its kind.
    """

    found: Identifier
    is_certain: bool


def find_personal_data(
    text: str, *, regions: Sequence[str] = REGIONS, kinds: Sequence[str] = tuple(KINDS)
) -> tuple[Identifier, ...]:
    """Find the personal data in a text, in order and without overlaps.

    If rules find overlapping parts, the longest is taken; among equally long ones the one whose
    form or context names its kind, then one with a checksum.

    Parameters
    ----------
    text : str
    regions : sequence of str
        Whose telephone numbers are found without a country code, as ISO 3166 has them.
    kinds : sequence of str
        Of KINDS.

    Raises
    ------
    InvalidInputError
        The text is empty, damaged or too long.
    MissingDependencyError
        A library is not installed.
    """
    check_text(text)
    hits = list(_find_names(text)) if "name" in kinds else []
    for start in range(0, max(1, len(text) - _WINDOW + _STEP), _STEP):
        part = text[start : start + _WINDOW]
        is_last = start + _WINDOW >= len(text)
        for hit in _find_hits(part, regions, kinds):
            found = hit.found
            # A match at an inner edge may be cut; the next part contains all of it.
            if (found.start or not start) and (found.end < len(part) or is_last):
                moved = replace(found, start=found.start + start, end=found.end + start)
                hits.append(_Hit(moved, hit.is_certain))
    hits.sort(
        key=lambda hit: (
            hit.found.start - hit.found.end,
            not hit.is_certain,
            not KINDS[hit.found.kind].has_checksum,
            hit.found.start,
        )
    )
    taken: list[Identifier] = []
    free = bytearray(b"\1" * len(text))
    for hit in hits:
        start, end = hit.found.start, hit.found.end
        if all(free[start:end]):
            free[start:end] = bytes(end - start)
            taken.append(hit.found)
    return tuple(sorted(taken, key=lambda found: found.start))


def redact(text: str, identifiers: Sequence[Identifier]) -> str:
    """Return a text with each identifier replaced by its kind in brackets.

    Parameters
    ----------
    identifiers : sequence of Identifier
        Of `find_personal_data(text)`; what it misses stays in the text.

    Examples
    --------
    >>> redact("Ask Ada Quell.", [Identifier("name", 4, 13, "Ada Quell")])
    'Ask [name].'
    """
    for found in sorted(identifiers, key=lambda found: -found.start):
        text = f"{text[: found.start]}[{KINDS[found.kind].title}]{text[found.end :]}"
    return text


def _find_hits(text: str, regions: Sequence[str], kinds: Sequence[str]) -> Iterator[_Hit]:
    """Yield the identifiers, except names, that each rule finds in a text."""
    if "email" in kinds and "@" in text:
        yield from _find_by_presidio("email", "EmailRecognizer", text)
    if not any(sign.isdigit() for sign in text):
        return
    if "iban" in kinds:
        yield from _find_by_presidio("iban", "IbanRecognizer", text)
    if "card" in kinds:
        yield from _find_by_presidio("card", "CreditCardRecognizer", text)
    if "national_id" in kinds:
        for scheme in SCHEMES:
            yield from _find_national_ids(scheme, text)
    if "phone" in kinds:
        yield from _find_phones(text, regions)
    if "address" in kinds:
        for form, pattern in ADDRESSES.items():
            for match in pattern.finditer(text):
                yield _Hit(Identifier("address", match.start(), match.end(), match[0], form), False)
    if "birth_date" in kinds:
        yield from _find_birth_dates(text)


@lru_cache(maxsize=32)
def _load_recognizer(name: str) -> Any:
    """Load a presidio recogniser by class name; that of e-mail addresses is kept offline."""
    module = presidio_recognizers()
    if name != "EmailRecognizer":
        return getattr(module, name)()
    base: Any = module.EmailRecognizer

    class OfflineEmailRecognizer(base):
        """Presidio's recogniser, without its network request for the list of domains."""

        def validate_result(self, pattern_text: str) -> bool:
            """Return whether the address ends in a known domain."""
            return bool(domain_reader()(pattern_text.rpartition("@")[2]).fqdn)

    return OfflineEmailRecognizer()


def _find_spans(name: str, text: str) -> Iterator[tuple[int, int, float]]:
    """Run a presidio recogniser; yield start, end and score of matches that are whole words."""
    recognizer = _load_recognizer(name)
    for found in recognizer.analyze(text, recognizer.supported_entities):
        before, after = text[: found.start][-1:], text[found.end :][:1]
        if not (before.isalnum() or after.isalnum()):
            yield found.start, found.end, found.score


def _find_by_presidio(kind: str, name: str, text: str) -> Iterator[_Hit]:
    """Run a presidio recogniser on a text; yield its matches as identifiers of a kind."""
    for start, end, _ in _find_spans(name, text):
        yield _Hit(Identifier(kind, start, end, text[start:end]), True)


def _find_national_ids(name: str, text: str) -> Iterator[_Hit]:
    """Yield a text's valid national identifiers of one scheme."""
    scheme = SCHEMES[name]
    if scheme.pattern:
        pattern = regex.compile(scheme.pattern)
        spans = [(*match.span(), _SURE_SCORE) for match in pattern.finditer(text)]
    else:
        spans = list(_find_spans(scheme.recognizer, text))
    for start, end, score in spans:
        value = text[start:end]
        if not scheme.is_valid(value):
            continue
        before = text[max(0, start - _NEAR) : start].lower()
        is_named = any(word in before for word in scheme.context)
        if is_named or scheme.has_checksum or score >= _SURE_SCORE:
            yield _Hit(Identifier("national_id", start, end, value, name), is_named)


def _find_phones(text: str, regions: Sequence[str]) -> Iterator[_Hit]:
    """Yield a text's telephone numbers of the given regions."""
    phonenumbers = library("phonenumbers")
    seen: set[tuple[int, int]] = set()
    for region in regions:
        for match in phonenumbers.PhoneNumberMatcher(text, region):
            if (span := (match.start, match.end)) not in seen:
                seen.add(span)
                before = text[max(0, match.start - _NEAR) : match.start]
                is_phone = match.raw_string[0] in "+(" or _PHONE.search(before) is not None
                yield _Hit(Identifier("phone", *span, match.raw_string, region), is_phone)


def _find_birth_dates(text: str) -> Iterator[_Hit]:
    """Yield a text's dates that have a word for birth near them."""
    for pattern in DATES:
        for match in pattern.finditer(text):
            start, end = match.span()
            parts = match.groupdict()
            day, month = int(parts["day"]), int(parts.get("month") or 1)
            is_day = 1 <= min(day, month) <= 12 and max(day, month) <= 31
            is_near = BIRTH.search(text[max(0, start - _NEAR) : start]) or BIRTH.search(
                text[end : end + _NEAR // 2]
            )
            if is_day and is_near:
                yield _Hit(Identifier("birth_date", start, end, match[0]), True)


def _find_names(text: str) -> Iterator[_Hit]:
    """Yield a text's runs of capitalised words that are likely names.

    In a text without capitals: a common first name followed by an uncommon word. See
    `leakscope.core.names.discovery`.
    """
    if any(sign.isupper() for sign in text):
        words = word_set(text)
        unknown = {word for word in words - FREQUENT_WORDS - STOP_WORDS if word.isalpha()}
        wanted = {name.full for name in likely_names(text, unknown)}
        if not wanted:
            return
        spelt = (
            regex.escape(name).replace(r"\ ", r"\s{1,3}")
            for name in sorted(wanted, key=len, reverse=True)
        )
        pattern = rf"(?<![\p{{L}}\p{{N}}])(?:{'|'.join(spelt)})(?![\p{{L}}\p{{N}}])"
        for match in regex.finditer(pattern, text):
            yield _Hit(Identifier("name", match.start(), match.end(), match[0]), False)
        return
    first = _load_first_names()
    for match in regex.finditer(r"\b(\p{Ll}{2,20}) (\p{Ll}{2,20})\b", text, overlapped=True):
        if match[1] in first and match[2] not in FREQUENT_WORDS | STOP_WORDS:
            yield _Hit(Identifier("name", match.start(), match.end(), match[0]), False)


@lru_cache(maxsize=1)
def _load_first_names() -> frozenset[str]:
    """Load the shipped first names as a set, in lower case and without stop words."""
    return frozenset(name.lower() for name in load_names("first_names")) - STOP_WORDS
