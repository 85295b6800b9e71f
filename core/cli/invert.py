"""Recover words of texts from their embeddings alone."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import (
    add_attack_arguments,
    add_encoder_arguments,
    attack_spec,
    encoder_spec,
)
from core.cli.behind import open_behind
from core.cli.defended import add_defence_argument, defence_spec
from core.cli.output import progress_line, show_json, show_note
from core.errors import InvalidInputError, StoppedError, StoppedSearch
from core.text import STOP_WORDS, check_text, numbers_of, word_set

if TYPE_CHECKING:
    from core.protocols import Encoder, InversionAttack, OnProgress
    from core.results import Recovery

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `invert`."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser, default="probe_mlc")
    parser.add_argument(
        "--text", action="append", required=True, metavar="TEXT", help="may be repeated"
    )
    parser.add_argument("--weights", type=Path, help="folder of an attack trained by `train`")
    add_defence_argument(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Invert each text and print the words. Typed texts are not written to disk."""
    texts = [_check(text, f"--text {i}") for i, text in enumerate(arguments.text, 1)]
    spec, defence = attack_spec(arguments), defence_spec(arguments)
    from core.encoders import load_encoder

    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        attack, encoder, notes = open_behind(spec, encoder, defence, arguments.weights, on_progress)
        told = {} if arguments.defence is None else {"defence": arguments.defence}
        head = {"encoder": encoder.name, **told, "attack": spec.name}
        answers: list[dict[str, Any]] = []
        for text in texts:
            answers.append({"text": text, **head, **_answer(attack, encoder, text, on_progress)})
            if answers[-1].get("stopped"):
                break
    _note_unknown_words(attack, answers)
    _note_other_languages(texts)
    for note in notes:
        show_note(note)
    if arguments.json:
        show_json(answers)
    else:
        _show(answers)
    if answers[-1].get("stopped"):
        raise StoppedError("the best so far was told")


def _check(text: str, name: str) -> str:
    check_text(text, name=name)
    if not word_set(text):
        raise InvalidInputError(
            f"{name} holds no word of two letters or digits, so there is nothing to recover."
        )
    return text


def _answer(
    attack: InversionAttack, encoder: Encoder, text: str, on_progress: OnProgress
) -> dict[str, Any]:
    """Encode and invert one text; the seconds are those of both."""
    from core.encoders.white_box import read_and_unread

    start = time.perf_counter()
    stopped: dict[str, Any] = {}
    try:
        (recovery,) = attack.invert(encoder, encoder.encode([text]), on_progress)
    except StoppedSearch as stop:  # it hands over the best that it had
        (recovery,), stopped = stop.answers, {"stopped": True}
    seconds = time.perf_counter() - start
    read, unread = read_and_unread(encoder, text)
    words = [{"word": found.word, "score": float(found.score)} for found in recovery.words]
    unnamed = sorted(_unnamed(attack, read) - recovery.word_set)
    return {
        **_sentence(recovery, text),
        "words": words,
        "encoded_words": sorted(read),
        "unread_words": sorted(unread - STOP_WORDS),
        "cannot_be_named": unnamed,
        "n_queries": recovery.n_queries,
        "seconds": seconds,
        **stopped,
    }


def _sentence(recovery: Recovery, text: str) -> dict[str, Any]:
    """Return the sentence that was read, where the attack reads one; what is not known is None."""
    if recovery.sentence is None:
        return {}
    told = {"cosine": recovery.sentence.cosine, "confidence": recovery.sentence.confidence}
    known = {name: None if math.isnan(value) else value for name, value in told.items()}
    sure = [{"word": w.word, "confidence": w.score} for w in recovery.sentence.words]
    found = {"sentence": recovery.sentence.text, **known, "sentence_words": sure}
    if sure:
        from core.attacks.inversion.reconstruct.confidence import (
            CALIBRATED_ON,
            why_not_calibrated,
        )

        found["confidence_calibrated_on"] = CALIBRATED_ON
        found["confidence_not_calibrated_because"] = why_not_calibrated(text) or None
    return found


def _unnamed(attack: InversionAttack, words: AbstractSet[str]) -> frozenset[str]:
    """Return those of the words that the attack has no name for; none where it lists no words."""
    vocabulary = getattr(attack, "vocabulary_", None)
    if vocabulary is None:
        return frozenset()
    return frozenset(words - vocabulary.stop_words - vocabulary.index.keys())


def _note_unknown_words(attack: InversionAttack, answers: list[dict[str, Any]]) -> None:
    vocabulary = getattr(attack, "vocabulary_", None)
    for i, answer in enumerate(answers, 1):
        if vocabulary is not None and vocabulary.index.keys().isdisjoint(answer["encoded_words"]):
            show_note(
                f"no word of --text {i} is among the {len(vocabulary):,} words that this attack "
                "can answer, so its answer is a guess."
            )


def _note_other_languages(texts: list[str]) -> None:
    from core.language import NOT_ENGLISH, language_evidence

    for i, text in enumerate(texts, 1):
        if language_evidence(text).is_unlike_english:
            show_note(f"--text {i}: {NOT_ENGLISH}")


def _show(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        true = frozenset(answer["encoded_words"])
        print(f"{answer['text']}\n  {answer['attack']} on {answer['encoder']}:")
        if "sentence" in answer:
            _show_sentence(answer)
        for found in answer["words"]:
            mark = "●" if found["word"] in true else "✗"
            print(f"  {mark} {found['word']:<24} {found['score']:8.3f}")
        _show_count(answer, true)
        print(f"  {answer['seconds']:.2f} s, {answer['n_queries']} queries\n")


def _show_sentence(answer: dict[str, Any]) -> None:
    """Print the sentence that was read, how near its vector is, and how often such are right."""
    known = {"cosine": "cosine {:.3f}", "confidence": "word for word in {:.0%} of such"}
    why = answer.get("confidence_not_calibrated_because")
    if why:
        del known["confidence"]
    told = [form.format(answer[name]) for name, form in known.items() if answer[name] is not None]
    print(f"  “{answer['sentence']}” {' · '.join(told)}".rstrip())
    if why:
        print(f"  How often such words are right: not calibrated on text like this ({why}).")
    elif answer["sentence_words"]:
        from core.attacks.inversion.reconstruct.confidence import ELSEWHERE

        sure = (f"{w['word']} {w['confidence']:.0%}" for w in answer["sentence_words"])
        print(f"  How often such words are right: {', '.join(sure)}")
        print(f"  Calibrated on {answer['confidence_calibrated_on']}. {ELSEWHERE}.")


def _show_count(answer: dict[str, Any], true: AbstractSet[str]) -> None:
    """Print how many words were read, and which no answer could have named."""
    from core.attacks.inversion.sentence import read_said

    said = {found["word"] for found in answer["words"]}
    words, unnamed = (true - STOP_WORDS) | (true & said), answer["cannot_be_named"]
    print(f"  {read_said(len(words & said), len(words) - len(unnamed), len(unnamed))}")
    if unnamed:
        print(f"  Not named: {', '.join(unnamed)}. That is no evidence of safety.")
    if set(unnamed) - numbers_of(unnamed):
        print("  The page of names (`leakscope serve`, /names) asks the encoder which of some "
              "candidates is in the vector.")  # fmt: skip
    if unread := answer["unread_words"]:
        print(f"  Beyond what the encoder reads, not tested: {', '.join(unread)}.")
