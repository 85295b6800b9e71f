"""Recover words of texts from their embeddings alone."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.arguments import (
    add_attack_arguments,
    add_encoder_arguments,
    attack_spec,
    encoder_spec,
)
from leakscope.core.cli.shared.defended import add_defence_argument, defence_spec, open_behind
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.errors import InvalidInputError, StoppedError, StoppedSearch
from leakscope.core.text import STOP_WORDS, check_text, word_set, words_with_digits

if TYPE_CHECKING:
    from leakscope.core.protocols import Encoder, InversionAttack, OnProgress
    from leakscope.core.results import Recovery

EXAMPLE = 'leakscope invert --text "The patient was given insulin."'
WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `invert` to its parser."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser, default="probe_mlc")
    parser.add_argument(
        "--text",
        action="append",
        required=True,
        metavar="TEXT",
        help="text to attack; may be repeated",
    )
    parser.add_argument("--weights", type=Path, help="folder of an attack trained by `train`")
    add_defence_argument(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Encode and invert each text, and print the recovered words. Texts are not written to disk."""
    texts = [_check_has_word(text, f"--text {i}") for i, text in enumerate(arguments.text, 1)]
    spec, defence = attack_spec(arguments), defence_spec(arguments)
    from leakscope.core.encoders import load_encoder

    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        attack, encoder, notes = open_behind(spec, encoder, defence, arguments.weights, on_progress)
        record = {} if arguments.defence is None else {"defence": arguments.defence}
        head = {"encoder": encoder.name, **record, "attack": spec.name}
        answers: list[dict[str, Any]] = []
        for text in texts:
            answers.append(
                {"text": text, **head, **_invert_text(attack, encoder, text, on_progress)}
            )
            if answers[-1].get("stopped"):
                break
    _note_unknown_words(attack, answers)
    _note_other_languages(texts)
    for note in notes:
        show_note(note)
    if arguments.json:
        show_json(answers)
    else:
        _print_answers(answers)
    if answers[-1].get("stopped"):
        raise StoppedError("the best result so far was printed")


def _check_has_word(text: str, name: str) -> str:
    """Return a text unchanged, or raise InvalidInputError if it is invalid or has no word."""
    check_text(text, name=name)
    if not word_set(text):
        raise InvalidInputError(
            f"{name} holds no word of two letters or digits, so there is nothing to recover. Give "
            "another text."
        )
    return text


def _invert_text(
    attack: InversionAttack, encoder: Encoder, text: str, on_progress: OnProgress
) -> dict[str, Any]:
    """Encode and invert one text; return the recovered words, and the seconds for both."""
    from leakscope.core.encoders.white_box import read_and_unread

    start = time.perf_counter()
    stopped: dict[str, Any] = {}
    try:
        (recovery,) = attack.invert(encoder, encoder.encode([text]), on_progress)
    except StoppedSearch as stop:  # it holds the best answers so far
        (recovery,), stopped = stop.answers, {"stopped": True}
    seconds = time.perf_counter() - start
    read, unread = read_and_unread(encoder, text)
    words = [{"word": found.word, "score": float(found.score)} for found in recovery.words]
    unnamed = sorted(_words_outside_vocabulary(attack, read) - recovery.word_set)
    return {
        **_sentence_record(recovery, text),
        "words": words,
        "encoded_words": sorted(read),
        "unread_words": sorted(unread - STOP_WORDS),
        "cannot_be_named": unnamed,
        "n_queries": recovery.n_queries,
        "seconds": seconds,
        **stopped,
    }


def _sentence_record(recovery: Recovery, text: str) -> dict[str, Any]:
    """Return the reconstructed sentence and its confidence for JSON; {} if there is none."""
    if recovery.sentence is None:
        return {}
    record = {"cosine": recovery.sentence.cosine, "confidence": recovery.sentence.confidence}
    known = {name: None if math.isnan(value) else value for name, value in record.items()}
    sure = [{"word": w.word, "confidence": w.score} for w in recovery.sentence.words]
    found = {"sentence": recovery.sentence.text, **known, "sentence_words": sure}
    if sure:
        from leakscope.core.attacks.inversion.reconstruct.confidence import (
            CALIBRATED_ON,
            why_not_calibrated,
        )

        found["confidence_calibrated_on"] = CALIBRATED_ON
        found["confidence_not_calibrated_because"] = why_not_calibrated(text) or None
    return found


def _words_outside_vocabulary(attack: InversionAttack, words: AbstractSet[str]) -> frozenset[str]:
    """Return the words that are not in the attack's vocabulary; none if it has no vocabulary."""
    vocabulary = getattr(attack, "vocabulary_", None)
    if vocabulary is None:
        return frozenset()
    return frozenset(words - vocabulary.stop_words - vocabulary.index.keys())


def _note_unknown_words(attack: InversionAttack, answers: list[dict[str, Any]]) -> None:
    """Print a note for each text none of whose words is in the attack's vocabulary."""
    vocabulary = getattr(attack, "vocabulary_", None)
    for i, answer in enumerate(answers, 1):
        if vocabulary is not None and vocabulary.index.keys().isdisjoint(answer["encoded_words"]):
            show_note(
                f"no word of --text {i} is in the attack's vocabulary of {len(vocabulary):,} "
                "words, so the answer is a guess."
            )


def _note_other_languages(texts: list[str]) -> None:
    """Print a note for each text that does not look like English."""
    from leakscope.core.language import NOT_ENGLISH, language_evidence

    for i, text in enumerate(texts, 1):
        if language_evidence(text).is_unlike_english:
            show_note(f"--text {i}: {NOT_ENGLISH}")


def _print_answers(answers: list[dict[str, Any]]) -> None:
    """Print each text with its recovered words, marked as right or wrong."""
    for answer in answers:
        true = frozenset(answer["encoded_words"])
        print(f"{answer['text']}\n  {answer['attack']} on {answer['encoder']}:")
        if "sentence" in answer:
            _print_sentence(answer)
        for found in answer["words"]:
            mark = "●" if found["word"] in true else "✗"
            print(f"  {mark} {found['word']:<24} {found['score']:8.3f}")
        _print_recall(answer, true)
        print(f"  {answer['seconds']:.2f} s, {answer['n_queries']} queries\n")


def _print_sentence(answer: dict[str, Any]) -> None:
    """Print the reconstructed sentence, its vector's cosine to the target, and its confidence."""
    known = {"cosine": "cosine {:.3f}", "confidence": "word for word in {:.0%} of such"}
    why = answer.get("confidence_not_calibrated_because")
    if why:
        del known["confidence"]
    parts = [form.format(answer[name]) for name, form in known.items() if answer[name] is not None]
    print(f"  “{answer['sentence']}” {' · '.join(parts)}".rstrip())
    if why:
        print(
            f"  How often such words are right is not known: not calibrated on such text ({why})."
        )
    elif answer["sentence_words"]:
        from leakscope.core.attacks.inversion.reconstruct.confidence import ELSEWHERE

        sure = (f"{w['word']} {w['confidence']:.0%}" for w in answer["sentence_words"])
        print(f"  How often such words are right: {', '.join(sure)}")
        print(f"  Calibrated on {answer['confidence_calibrated_on']}. {ELSEWHERE}.")


def _print_recall(answer: dict[str, Any], true: AbstractSet[str]) -> None:
    """Print how many of a text's words were recovered, and which could not be tested."""
    from leakscope.core.attacks.inversion.sentence import format_recall

    answered = {found["word"] for found in answer["words"]}
    words, unnamed = (true - STOP_WORDS) | (true & answered), answer["cannot_be_named"]
    print(f"  {format_recall(len(words & answered), len(words) - len(unnamed), len(unnamed))}")
    if unnamed:
        print(
            f"  Outside the vocabulary, not tested: {', '.join(unnamed)}. They are not proven safe."
        )
    if set(unnamed) - words_with_digits(unnamed):
        print(
            "  The page Names (`leakscope serve`, /names) tests which of several candidate names a "
            "vector contains."
        )
    if unread := answer["unread_words"]:
        print(f"  Beyond the encoder's input limit, not tested: {', '.join(unread)}.")
