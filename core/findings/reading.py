"""Findings on the inversion of one sentence: a live one, or the shipped example."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.inversion.reading import Mark, Reading
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.sentence import (
    describe_scored,
    describe_untested,
    format_recall,
)
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.inversion import scores_beside_prior, word_scores
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import F1_EXPLAINED, provenance_facts
from leakscope.core.language import NOT_ENGLISH, language_evidence
from leakscope.core.results import RecoveredWord
from leakscope.core.results.provenance import Provenance
from leakscope.core.storage.artifacts import UNFIT, read_json, read_sealed
from leakscope.core.studies.inversion.listed_summary import describe_undefended
from leakscope.core.text import revealing_words, words_with_digits

EXAMPLE = ASSETS / "story" / "example.json"
SAMPLES = ASSETS / "samples" / "samples.json"
"""Sample sentences; people and events are invented."""
ATTACK = "search"
_OFFERED = "reconstruct"
"""The attack to try on words outside the vocabulary of the others."""
ENCODER = "minilm"
_REMEDY = "Create it again: python -m scripts.story_example"

_MOST_WRONG = 8


def strongest(readings: Sequence[Reading]) -> Reading:
    """Return the reading with the highest F1 among several attacks' readings of one text."""
    return max(readings, key=lambda reading: reading.scores.f1)


def sentence_finding(
    readings: Sequence[Reading], *, cost: str, commands: Sequence[str], with_text: bool = True
) -> Finding:
    """Build the finding on what the strongest of several attacks recovers from a sentence.

    Parameters
    ----------
    cost : str
        Cost of the strongest attack.
    commands : sequence of str
        Commands that repeat each reading.
    with_text : bool
        Whether the sentence and the recovered words may be shown.
    """
    best = strongest(readings)
    entry = INVERSION_ATTACKS[best.attack]
    has_words = len(readings) == 1 and with_text and bool(best.recovery.words)
    return Finding(
        title=format_recall(best.n_recovered, len(best.targets), len(best.unknown)),
        body="\n\n".join(_write_paragraphs(readings, with_text)),
        sentence=tuple((piece, mark.value) for piece, mark in best.pieces) if with_text else (),
        figure=word_scores(best) if has_words else scores_beside_prior(readings),
        alt="F1 by attack: "
        + ", ".join(
            f"{INVERSION_ATTACKS[r.attack].title} "
            + (f"{r.scores.f1:.0f}" if r.targets else "not scored")
            for r in readings
        )
        + f"; guessing {best.prior.f1:.0f}",
        table=Table(
            columns=("Attack", "Words recovered", "Wrong answers", "F1", "Guessing", "Needs"),
            rows=tuple(map(_reading_row, readings)),
        ),
        facts=(
            ("Data", "one sentence"),
            (
                "n",
                f"1 sentence; scores count {describe_scored(len(best.targets), len(best.unknown))}",
            ),
            ("Interval", "none: one sentence is an example, not a measurement"),
            ("Attacker", entry.title),
            ("Access", entry.access.needs),
            ("Cost", cost),
        ),
        commands=tuple(commands),
    )


def _write_paragraphs(readings: Sequence[Reading], with_text: bool) -> list[str]:
    """Write the finding on readings as paragraphs: recovery, wrong answers, untested words."""
    best = strongest(readings)
    is_foreign = language_evidence(best.text).is_unlike_english
    recovery = _describe_recovery(readings, is_foreign)
    not_tested = "" if is_foreign else untested(readings)
    return [*filter(None, (recovery, describe_wrong(best, with_text), not_tested))]


def _describe_recovery(readings: Sequence[Reading], is_foreign: bool) -> str:
    """Describe untested words, the best attack's recall and F1, guessing, and unread words."""
    best, n = strongest(readings), len(readings)
    names, numbers, others = _split_kinds(best.text, best.unknown)
    is_mostly = len(names) + len(numbers) > len(others) and not is_foreign
    kinds = "names and numbers" if is_mostly else ""
    parts = [describe_untested(len(best.targets), len(best.unknown), kinds)]
    title = INVERSION_ATTACKS[best.attack].title.lower()
    attack = f"the {title}"
    if n > 1:
        attack = f"the {'stronger' if n == 2 else 'strongest'} of {n} attacks (the {title})"
    if best.targets:
        f1 = _describe_f1(best.scores.f1, best.n_guessed, best.prior.f1)
        recall = f"{best.scores.recall:.0f} % of the words" if best.n_recovered else "no word"
        n_wrong = len(best.wrong)
        wrong = "no wrong word" if not n_wrong else f"{n_wrong} wrong word{'s' * (n_wrong > 1)}"
        parts.append(
            f"From the vector of this sentence, {attack} recovered {recall} and gave {wrong} {f1}"
        )
        if best.n_recovered <= best.n_guessed:
            parts.append("The attack did no better, which is no evidence of safety.")
    if best.unread:
        parts.append(
            f"The text is longer than the encoder reads: {len(best.unread)} different words are "
            "not in the vector and were not tested."
        )
    if is_foreign:
        parts.append(NOT_ENGLISH)
    return " ".join(filter(None, parts))


def _describe_f1(f1: float, n_guessed: int, guess: float) -> str:
    """Return the end of a sentence, “(F1 63).”, and a sentence on what guessing gets right."""
    return (
        f"(F1 **{f1:.0f}**). Guessing common words without the vector gets {n_guessed or 'none'} "
        f"right (F1 {guess:.0f})."
    )


def _split_kinds(
    text: str, words: AbstractSet[str]
) -> tuple[AbstractSet[str], AbstractSet[str], AbstractSet[str]]:
    """Split words of a text into three sets: likely names, words with digits, and the others."""
    numbers = words_with_digits(words)
    names = (revealing_words(text) & words) - numbers
    return names, numbers, words - names - numbers


def untested(readings: Sequence[Reading], *, is_defended: bool = False) -> str:
    """Describe how many words of each kind no attack could test, without quoting any; "" for none.

    Adds who may recover them from undefended vectors, unless `is_defended`.
    """
    unknown = frozenset.intersection(*(reading.unknown for reading in readings))
    kinds = ("capitalised (possibly names)", "with digits", "other")
    split = _split_kinds(readings[0].text, unknown)
    counted = [f"{len(words)} {kind}" for words, kind in zip(split, kinds, strict=True) if words]
    if not counted:
        return ""
    text = (
        f"**Not tested**: {', '.join(counted)}. The attacker's vocabulary does not contain them: "
        "treat them as leaked."
    )
    if is_defended:
        return text
    title = INVERSION_ATTACKS[_OFFERED].title
    if _OFFERED not in {reading.attack for reading in readings}:
        text += f" {title} (`{_OFFERED}`) has a larger vocabulary and may recover some."
    return f"{text} {describe_undefended()}".rstrip()


def describe_wrong(reading: Reading, with_words: bool) -> str:
    """Describe an attack's wrong answers, best scores first, and its precision; "" for none.

    Parameters
    ----------
    with_words : bool
        Whether the words may be shown: a wrong one may still be close to the typed text.
    """
    wrong = sorted(reading.wrong, key=lambda found: -found.score)
    n = reading.n_recovered + len(wrong)
    if not wrong:
        return "" if n else "The attack answers no word."
    are = "is" if len(wrong) == 1 else "are"
    text = f"{len(wrong)} of its {n} answers {are} wrong (precision {reading.scores.precision:.0f})"
    if not with_words:
        return f"{text}; the highest score of a wrong answer is {wrong[0].score:.2f}."
    named = [_format_wrong(found, reading.kin.get(found.word)) for found in wrong[:_MOST_WRONG]]
    left = len(wrong) - len(named)
    more = f", and {left} more" if left else ""
    return f"{text}. Wrong words, with their scores: {', '.join(named)}{more}."


def _format_wrong(found: RecoveredWord, kin: str | None) -> str:
    """Format a wrong word with its score, and the word of the text with the same stem."""
    near = f", same stem as {plain(kin)}" if kin else ""
    return f"{plain(found.word)} ({found.score:.2f}{near})"


def _reading_row(reading: Reading) -> tuple[str, ...]:
    """Return an attack's reading as table cells: title, recovered, wrong, F1, guessing, needs."""
    entry = INVERSION_ATTACKS[reading.attack]
    is_scored = bool(reading.targets)
    return (
        entry.title,
        f"{reading.n_recovered} of {len(reading.targets)}" if is_scored else "–",
        str(len(reading.wrong)),
        f"{reading.scores.f1:.0f}" if is_scored else "–",
        f"{reading.prior.f1:.0f}" if is_scored else "–",
        entry.access.needs,
    )


def sample_text() -> str:
    """Read the first sample sentence, which the overview shows.

    Raises
    ------
    ArtifactError
        The file of samples is missing, damaged, or without a sentence.
    """
    samples = read_json(SAMPLES)
    try:
        return str(samples[0]["text"])
    except UNFIT as error:
        raise ArtifactError(f"{SAMPLES} contains no sentence ({error!r}). Restore it.") from error


def example() -> Finding:
    """Read the stored example; build the finding on an invented sentence and recovered words.

    Raises
    ------
    ArtifactError
        The file is missing, damaged, or for another sentence; the message names a remedy.
    """
    found = read_sealed(EXAMPLE, _REMEDY)
    try:
        return _example_finding(found)
    except UNFIT as error:
        raise ArtifactError(f"{EXAMPLE} contains no reading ({error}). {_REMEDY}") from error


def _example_finding(found: dict[str, Any]) -> Finding:
    """Check the stored example's sentence, and build the finding from its record."""
    if found["of"]["text"] != sample_text():
        raise ArtifactError(f"{EXAMPLE} is for a sentence that is no longer shipped. {_REMEDY}")
    entry = INVERSION_ATTACKS[found["of"]["attack"]]
    n_unnamed = found["n_words"] - found["n_scored"]
    wrong = ", ".join(found["wrong"])
    beside = f" Wrong answers: {wrong}." if wrong else ""
    return Finding(
        title=format_recall(found["n_recovered"], found["n_scored"], n_unnamed),
        body=f"{describe_untested(found['n_scored'], n_unnamed)} An invented e-mail became "
        f"{found['dimension']:,} numbers. From these numbers alone, the {entry.title.lower()} "
        "recovered the marked words: "
        f"{_describe_f1(found['f1'], found['n_guessed'], found['prior_f1'])}{beside} "
        f"{F1_EXPLAINED}.".lstrip(),
        sentence=tuple((str(piece), Mark(mark).value) for piece, mark in found["pieces"]),
        facts=(
            ("Data", "one invented sentence"),
            ("n", f"1 sentence; scores count {describe_scored(found['n_scored'], n_unnamed)}"),
            ("Interval", "none: one sentence is an example, not a measurement"),
            ("Attacker", entry.title),
            ("Access", entry.access.needs),
            ("Cost", f"trained on {found['n_texts']:,} sentences; {found['n_queries']} queries"),
            *provenance_facts([_provenance(found)]),
        ),
        commands=(_invert_command(str(found["of"]["text"])),),
        live=(("text", str(found["of"]["text"])), ("attack", ATTACK)),
    )


def _invert_command(text: str) -> str:
    """Return the `leakscope invert` command that attacks a text."""
    arguments = ("invert", "--encoder", ENCODER, "--attack", ATTACK, "--text", text)
    return shlex.join(["leakscope", *arguments])


def _provenance(found: dict[str, Any]) -> Provenance:
    """Build the provenance (date, machine, versions) of the stored example."""
    return Provenance.from_dict(found["provenance"])
