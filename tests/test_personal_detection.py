"""Personal data in texts: what is found, what is drawn instead of it, and what is never done."""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from leakscope.core.audit.personal.detection import find_personal_data, redact
from leakscope.core.audit.personal.kinds import KINDS, Identifier, draw_candidates
from leakscope.core.audit.personal.libraries import library
from leakscope.core.audit.personal.schemes import SCHEMES, format_like
from leakscope.core.audit.personal.synthetic import SyntheticText, synthetic_texts
from leakscope.core.errors import InvalidInputError, MissingDependencyError

pytest.importorskip("presidio_analyzer")
phonenumbers = pytest.importorskip("phonenumbers")
iban, luhn = pytest.importorskip("stdnum.iban"), pytest.importorskip("stdnum.luhn")

CARRIERS = [
    "The minister rejected calls for an inquiry into the sale of the company.",
    "We met at the station, and it rained.",
    "Thank you for your order of 14 May.",
]


def share_found(made: list[SyntheticText]) -> float:
    """Return how many identifiers were found exactly where they are, as what they are."""
    found = [find_personal_data(each.text) for each in made]
    return float(
        np.mean(
            [
                any(
                    (one.kind, one.start, one.end)
                    == (each.identifier.kind, each.identifier.start, each.identifier.end)
                    for one in mine
                )
                for each, mine in zip(made, found, strict=True)
            ]
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_at_least_95_percent_of_500_identifiers_are_found(kind: str) -> None:
    assert share_found(synthetic_texts(kind, CARRIERS, 500, seed=7)) >= 0.95


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_each_scheme_of_national_identifiers_is_found(scheme: str) -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(60):
        value = format_like(SCHEMES[scheme].layout, SCHEMES[scheme].draw(rng))
        word = SCHEMES[scheme].context[0]
        found = find_personal_data(f"The {word} is {value}, as you know.")
        hits += any(one.value == value and one.scheme == scheme for one in found)
    assert hits >= 57


@pytest.mark.parametrize(
    ("kind", "value"),
    [  # published examples
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("iban", "GB29NWBK60161331926819"),
        ("iban", "FR14 2004 1010 0505 0001 3M02 606"),
        ("card", "4111 1111 1111 1111"),
        ("card", "3782 822463 10005"),
        ("national_id", "12345678Z"),
        ("national_id", "943 476 5919"),
        ("national_id", "131052-308T"),
        ("national_id", "RSSMRA85T10A562S"),
        ("national_id", "86095742719"),
        ("phone", "+44 20 7946 0958"),
        ("phone", "(212) 555-0142"),
        ("email", "ada.quell+news@example.co.uk"),
        ("address", "221B Baker Street, London, NW1 6XE"),
        ("address", "Hauptstraße 12, 10115 Berlin"),
        ("address", "12 rue de la Paix, 75002 Paris"),
        ("name", "Dana Quellbrook"),
    ],
)
def test_known_examples_are_found(kind: str, value: str) -> None:
    text = f"It is written here: {value}."
    found = [one for one in find_personal_data(text) if one.value == value]
    assert [one.kind for one in found] == [kind]
    assert text[found[0].start : found[0].end] == value


def test_a_number_whose_checksum_fails_is_not_found() -> None:
    for value in ("DE88 3704 0044 0532 0130 00", "4111 1111 1111 1112", "12345678A"):
        found = find_personal_data(f"It is written here: {value}.")
        assert not {"iban", "card", "national_id"} & {one.kind for one in found}


def test_a_date_is_of_birth_only_beside_a_word_that_says_so() -> None:
    assert not find_personal_data("The shop closes on 3 March 1984.")
    (found,) = find_personal_data("he was born on 3 March 1984.")
    assert (found.kind, found.value) == ("birth_date", "3 March 1984")


def test_parts_of_a_longer_identifier_are_not_found_beside_it() -> None:
    text = "Pay to DE89 3704 0044 0532 0130 00 or write to ada.quell@example.org."
    found = find_personal_data(text)
    assert [one.kind for one in found] == ["iban", "email"]
    assert redact(text, found) == "Pay to [IBAN] or write to [e-mail address]."


def test_identifiers_late_in_a_long_text_are_found_where_they_are() -> None:
    text = "the rain fell on the sea " * 90
    for at in (590, 1187, 2000):
        written = f"{text[:at]} DE89 3704 0044 0532 0130 00 {text[at:]}"
        (found,) = find_personal_data(written)
        assert written[found.start : found.end] == "DE89 3704 0044 0532 0130 00"


@pytest.mark.parametrize("kind", list(KINDS))
def test_candidates_are_of_the_same_form_and_never_the_true_value(kind: str) -> None:
    for made in synthetic_texts(kind, CARRIERS, 12, seed=11):
        true = made.identifier
        drawn = draw_candidates(true, 80, np.random.default_rng(5))
        assert drawn == draw_candidates(true, 80, np.random.default_rng(5))
        assert drawn != draw_candidates(true, 80, np.random.default_rng(6))
        assert len(set(drawn)) == len(drawn) == 80 and true.value not in drawn
        for value in drawn:
            if kind == "iban":
                assert iban.is_valid(value, check_country=False) and value[:2] == true.value[:2]
            elif kind == "card":
                digits = value.replace(" ", "").replace("-", "")
                assert luhn.is_valid(digits) and value[:6] == true.value[:6]
            elif kind == "phone":
                parsed = phonenumbers.parse(value, true.scheme)
                assert phonenumbers.is_valid_number(parsed)
                assert (
                    parsed.country_code == phonenumbers.parse(true.value, true.scheme).country_code
                )
            elif kind == "national_id":
                assert SCHEMES[true.scheme].is_valid(value)
            elif kind == "email":
                assert value.partition("@")[2] == true.value.partition("@")[2]
        if kind in ("iban", "card", "phone", "national_id"):
            shapes = {"".join("0" if c.isalnum() else c for c in v) for v in (*drawn, true.value)}
            assert len(shapes) == 1


def test_candidates_are_found_by_the_same_rules() -> None:
    for kind in KINDS:
        (made, *_) = synthetic_texts(kind, ["We met at the station."], 1, seed=2)
        before = made.text[: made.identifier.start]
        after = made.text[made.identifier.end :]
        for value in draw_candidates(made.identifier, 20, np.random.default_rng(0)):
            found = find_personal_data(before + value + after)
            assert value in [one.value for one in found if one.kind == kind]


def hostile() -> Iterator[str]:
    for part in (
        "a",
        "a.",
        "1",
        "12 ",
        "Aa ",
        "a@",
        "12 Aa Bb Cc Dd ",
        "DE89 3704 ",
        "555-0142 ",
        "((",
        "1-",
        "Xx-",
        "\x01\x02a",
        "é",
        "\u202e1",
        "＋４４ ",
    ):
        yield (part * (20_000 // len(part)))[:20_000]
    yield "".join(f"Aq{chr(97 + i % 26)}{chr(97 + i // 26)}x Bzy. " for i in range(650))


@pytest.mark.slow
def test_hostile_texts_take_bounded_time() -> None:
    find_personal_data("Load the libraries 1 first@example.org.")
    for text in hostile():
        start = time.process_time()
        for one in find_personal_data(text):
            assert text[one.start : one.end] == one.value
        assert time.process_time() - start < 30


def test_texts_that_cannot_be_encoded_are_refused() -> None:
    for text in ("", "a\0b", "x" * 20_001):
        with pytest.raises(InvalidInputError):
            find_personal_data(text)


def test_nothing_is_logged_sent_or_printed(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    caplog.set_level(logging.DEBUG)
    text = "Mail ada.quell@example.org, DE89 3704 ÄÖ00 0000, 4111 1111 1111 1111."
    found = find_personal_data(text)
    assert {"email", "card"} <= {one.kind for one in found}
    out = caplog.text + "".join(capfd.readouterr()) + repr(found)
    for value in ("quell", "3704", "4111"):
        assert value not in out


def test_the_value_is_not_in_the_repr() -> None:
    assert "Quell" not in repr(Identifier("name", 0, 9, "Ada Quell"))


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingDependencyError, match=r"pip install presidio-analyzer==\d"):
        library("presidio_analyzer")
