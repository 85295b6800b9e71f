"""Sentences with synthetic identifiers at known places, and candidate lists with known answers.

The lists calibrate and check the confidence. Their vectors are exact, stored with fewer bits, or
noisy. Half of the lists leave the true value out, so that the right answer is that no candidate is
true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.personal.confidence import CandidateSpace, Evidence, distances
from leakscope.core.audit.personal.confirmation import rank_of_first
from leakscope.core.audit.personal.kinds import (
    KINDS,
    Identifier,
    address_like,
    birth_date_like,
    card_like,
    draw_candidates,
    draw_one,
    email_like,
    iban_like,
    load_names,
    phone_like,
)
from leakscope.core.audit.personal.libraries import library
from leakscope.core.audit.personal.schemes import SCHEMES, format_like
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, no_progress

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


def _draw_name(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic name; return it with an empty scheme."""
    return (
        f"{draw_one(rng, load_names('first_names'))} {draw_one(rng, load_names('surnames'))}",
        "",
    )


def _draw_email(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic e-mail address; return it with an empty scheme."""
    domain = draw_one(rng, ("example.org", "mail.example.com", "example.co.uk", "example.de"))
    local = draw_one(rng, ("ada.quell", "aquell", "ada_quell84", "adaquell"))
    return email_like(f"{local}@{domain}", "", rng), ""


def _draw_phone(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic telephone number; return it with its region."""
    numbers, region = library("phonenumbers"), draw_one(rng, _PHONES)
    example = numbers.example_number_for_type(region, numbers.PhoneNumberType.MOBILE)
    form = numbers.PhoneNumberFormat.INTERNATIONAL
    return phone_like(numbers.format_number(example, form), region, rng), region


def _draw_national(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic national identifier; return it with its scheme."""
    name = draw_one(rng, tuple(name for name, scheme in SCHEMES.items() if scheme.has_checksum))
    return format_like(SCHEMES[name].layout, SCHEMES[name].draw(rng)), name


def _draw_address(rng: np.random.Generator) -> tuple[str, str]:
    """Draw a synthetic postal address; return it with its form."""
    form = draw_one(rng, tuple(_ADDRESSES))
    return address_like(_ADDRESSES[form], form, rng), form


_DRAWS: Mapping[str, Callable[[np.random.Generator], tuple[str, str]]] = {
    "name": _draw_name,
    "email": _draw_email,
    "phone": _draw_phone,
    "iban": lambda rng: (iban_like(draw_one(rng, _IBANS), "", rng), ""),
    "card": lambda rng: (card_like(draw_one(rng, _CARDS), "", rng), ""),
    "address": _draw_address,
    "national_id": _draw_national,
    "birth_date": lambda rng: (birth_date_like(draw_one(rng, _DATES), "", rng), ""),
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
        template = draw_one(rng, _TEMPLATES[kind])
        before = template.partition("{who}")[0].format(
            text=(text := carriers[(start + i) % len(carriers)])
        )
        found = Identifier(kind, len(before), len(before) + len(value), value, scheme)
        made.append(SyntheticText(template.format(text=text, who=value), found))
    return made


Change = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def _add_noise(norm: float) -> Change:
    """Return a function that adds isotropic Gaussian noise of a relative norm to a vector."""

    def changed(v: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw noise and return the vector with it."""
        size = norm * float(np.linalg.norm(v)) / np.sqrt(len(v))
        return v + rng.normal(0.0, size, len(v))

    return changed


def _round_to_int8(v: NDArray[np.float64], _: np.random.Generator) -> NDArray[np.float64]:
    """Round a vector to int8, scaled by its largest coordinate; return it as floats."""
    scale = float(np.abs(v).max()) / 127
    found: NDArray[np.float64] = np.round(v / scale) * scale
    return found


CONDITIONS: Mapping[str, Change] = {
    "exact": lambda v, _: v,
    "float16": lambda v, _: v.astype(np.float16).astype(np.float64),
    "int8": _round_to_int8,
    "noise 0.02": _add_noise(0.02),
    "noise 0.05": _add_noise(0.05),
    "noise 0.1": _add_noise(0.1),
    "noise 0.2": _add_noise(0.2),
    "noise 0.5": _add_noise(0.5),
    "noise 1.0": _add_noise(1.0),
    "noise 3.0": _add_noise(3.0),
}
"""How the attacker's vector was changed."""


@dataclass(frozen=True, eq=False)
class CalibrationList:
    """The evidence of one candidate list, with its known answer.

    Attributes
    ----------
    kind, condition : str
        Keys of KINDS and of CONDITIONS.
    text : int
        The number of its text.
    n : int
        Candidates.
    evidence : Evidence
    has_truth : bool
        Whether the list holds the true value.
    is_right : bool
        Whether the nearest candidate is the true value.
    """

    kind: str
    condition: str
    text: int
    n: int
    evidence: Evidence
    has_truth: bool
    is_right: bool


def calibration_lists(
    encoder: Encoder,
    texts: Sequence[SyntheticText],
    n_candidates: int,
    *,
    n_truths: int = 2,
    seed: int,
    on_progress: OnProgress = no_progress,
) -> list[CalibrationList]:
    """Encode candidates; build two lists per text, condition and true value: with and without it.

    Parameters
    ----------
    n_candidates : int
        Encoded for each text. A list has this many, a quarter or a twentieth of them, at random,
        and at least 21.
    n_truths : int
        Values that are the true one in turn: the identifier, then candidates drawn at random,
        which have the same distribution.
    seed : int
        Of the candidates, the noise and the lengths.
    """
    lists = []
    for number, made in enumerate(texts):
        on_progress(number / len(texts), f"{number} of {len(texts)} texts")
        found = made.identifier
        rng = np.random.default_rng([seed, number])
        values = (found.value, *draw_candidates(found, n_candidates, rng))
        before, after = made.text[: found.start], made.text[found.end :]
        vectors = encoder.encode([f"{before}{value}{after}" for value in values])
        truths = np.append(0, 1 + rng.permutation(len(values) - 1)[: n_truths - 1])
        for truth in truths.tolist():
            n = max(21, n_candidates // int(rng.choice([1, 4, 20])))
            chosen = np.delete(np.arange(len(values)), truth)[rng.permutation(len(values) - 1)]
            present = CandidateSpace.of(vectors[np.append(truth, chosen)[:n]])
            absent = CandidateSpace.of(vectors[chosen[:n]])
            for condition, change in CONDITIONS.items():
                seen = change(vectors[truth].astype(np.float64), rng).astype(np.float32)
                for space, has_truth in ((present, True), (absent, False)):
                    lists.append(
                        CalibrationList(
                            found.kind,
                            condition,
                            number,
                            len(space.rows),
                            Evidence.of(seen, space),
                            has_truth,
                            has_truth and rank_of_first(distances(seen, space.rows)) == 1,
                        )
                    )
    return lists
