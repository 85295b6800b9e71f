"""Readings as HTML. Every piece of text goes through `escape`; nothing else builds markup.

The marks are shapes and colours of the style sheet; a hidden sentence tells screen readers the
same in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

from core.attacks.inversion.reading import Mark, Reading
from core.results import RecoveredWord, Sentence, SentenceStep
from core.said import percent_said
from core.text import mark_words

__all__ = [
    "explained_terms",
    "facts",
    "glossary",
    "label",
    "legend",
    "marked_passage",
    "marked_pieces",
    "marked_sentence",
    "ordered_words",
    "privatised_sentence",
    "quoted",
    "read_sentence",
    "read_words",
    "sentence_steps",
    "token_legend",
    "written",
    "written_from",
    "wrong_words",
]

_AS_READ = "The sentence as read"

_CLASSES = {
    Mark.RECOVERED: "ls-hit",
    Mark.MISSED: "ls-miss",
    Mark.UNKNOWN: "ls-unknown",
    Mark.STOP_WORD: "ls-stop",
    Mark.UNREAD: "ls-stop",
}


def marked_sentence(reading: Reading) -> str:
    """Return the text with each word marked by what became of it."""
    words = "".join(_piece(piece, mark) for piece, mark in reading.pieces)
    told = _told(reading)
    return f'<p class="ls-sentence" dir="auto">{words}</p><p class="ls-hidden">{told}</p>'


def _told(reading: Reading) -> str:
    """Return the marks in words; a word that cannot be scored is neither recovered nor missed."""
    read, missed, unknown = (
        reading.marked(mark) for mark in (Mark.RECOVERED, Mark.MISSED, Mark.UNKNOWN)
    )
    told = f"Recovered: {_listed(read)}. Missed: {_listed(missed)}."
    if unknown:
        told = told if read or missed else "None of its words can be scored."
        told += f" Outside the attack's vocabulary: {_listed(unknown)}."
    if reading.unread:
        told += " The rest of the text is beyond what the encoder reads."
    return told


def _piece(piece: str, mark: Mark) -> str:
    if mark is Mark.BETWEEN:
        return escape(piece)
    tag = "mark" if mark is Mark.RECOVERED else "span"
    return f'<{tag} class="{_CLASSES[mark]}" title="{escape(mark.value)}">{escape(piece)}</{tag}>'


def _listed(words: Sequence[str]) -> str:
    return escape(", ".join(words)) or "none"


def privatised_sentence(tokens: Sequence[str], changed: Sequence[str]) -> str:
    """Return a privatised text with each token marked as kept or changed, and what it was."""
    words = "".join(_token(old, new) for old, new in zip(tokens, changed, strict=True))
    kept = [new for old, new in zip(tokens, changed, strict=True) if old == new]
    told = f"{len(kept)} of {len(tokens)} tokens came back unchanged: {_listed(kept)}."
    return f'<p class="ls-sentence" dir="auto">{words.strip()}</p><p class="ls-hidden">{told}</p>'


def _token(old: str, new: str) -> str:
    joins = new.startswith("##")
    shown = escape(new.removeprefix("##"))
    space = "" if joins else " "
    if old == new:
        return f'{space}<mark class="ls-hit" title="came back unchanged">{shown}</mark>'
    told = escape(f"was {old}", quote=True)
    return f'{space}<span class="ls-miss" title="{told}">{shown}</span>'


def token_legend() -> str:
    """Return what the marks of a privatised text mean."""
    return (
        '<ul class="ls-legend" aria-label="What the marks mean">'
        '<li><span class="ls-hit">came back unchanged</span></li>'
        '<li><span class="ls-miss">changed</span></li></ul>'
    )


def legend(readings: Iterable[Reading]) -> str:
    """Return what the marks mean, those alone that occur."""
    seen = {mark for reading in readings for _, mark in reading.pieces}
    items = "".join(
        f'<li><span class="{_CLASSES[mark]}">{escape(mark.value)}</span></li>'
        for mark in _CLASSES
        if mark in seen
    )
    return f'<ul class="ls-legend" aria-label="What the marks mean">{items}</ul>'


def wrong_words(reading: Reading) -> str:
    """Return the answered words that are not in the text, struck; kin of a word stay readable."""
    if not reading.wrong:
        return '<p class="ls-label">No wrong guess.</p>'
    items = "".join(_wrong(found.word, reading.kin.get(found.word)) for found in reading.wrong)
    title = "Wrong guesses" + (" (≈ shares its stem with a word above)" if reading.kin else "")
    return f'{label(title)}<ul class="ls-words" aria-label="Wrong guesses">{items}</ul>'


def _wrong(word: str, kin: str | None) -> str:
    if kin is None:
        return f'<li class="ls-chip ls-wrong" dir="auto">{escape(word)}</li>'
    told = f"wrong, but shares its stem with {kin}"
    return f'<li class="ls-chip ls-kin" dir="auto" title="{escape(told)}">{escape(word)}</li>'


def ordered_words(reading: Reading) -> str:
    """Return the answered words numbered in the order in which the attack chose them."""
    hits = {w.word for w in reading.hits}
    items = "".join(_step(found, found.word in hits) for found in reading.recovery.words)
    return (
        f"{label('In the order in which it chose them')}"
        f'<ol class="ls-words ls-order" aria-label="Words in the order chosen">{items}</ol>'
    )


def written(said: str, true: str) -> str:
    """Return a sentence that an attack wrote, right words marked, and how many they are.

    Right words stand in the true text, each as often as there. Whether one also begins it, or
    follows the same word as there, is told by a line below it, and counted below the sentence.
    """
    known = [word for _, word in mark_words(true) if word is not None]
    pairs, left = set(pairwise(["", *known])), Counter(known)
    pieces, before, n, n_right, n_in_order = [], "", 0, 0, 0
    for piece, word in mark_words(said):
        if word is None:
            pieces.append(escape(piece))
            continue
        is_right = left[word] > 0
        is_in_order = is_right and (before, word) in pairs
        left[word] -= 1
        kind = "in the text, first or after the same word" if is_in_order else "in the text"
        hit = f'<mark class="ls-hit" title="{kind}">{escape(piece)}</mark>'
        hit = f"<u>{hit}</u>" if is_in_order else hit
        pieces.append(hit if is_right else escape(piece))
        n, n_right, n_in_order = n + 1, n_right + is_right, n_in_order + is_in_order
        before = word
    told = f"{n_right} of its {n} words are in the text, {n_in_order} of them first or after "
    told += "the same word"
    return f'<p class="ls-sentence" dir="auto">{"".join(pieces)}</p><p class="ls-label">{told}</p>'


def read_sentence(reading: Reading) -> str:
    """Return the sentence that an attack wrote, its words marked, and how near its vector came."""
    found = reading.recovery.sentence
    if found is None:
        return ""
    head = "The best sentence before it was stopped" if reading.is_unfinished else _AS_READ
    return written_from(found, reading.text, head) + _sureness(found, reading.text)


def written_from(found: Sentence, true: str, head: str) -> str:
    """Return a sentence that was written from a vector, and above it how near it came."""
    near = "" if math.isnan(found.cosine) else f", cosine {found.cosine:.3f} with the vector"
    return label(
        f"{head}{near}; underlined: first, or after the same word, as in the text"
    ) + written(found.text, true)


def _sureness(found: Sentence, text: str) -> str:
    """Return how often such a sentence and such words are right, or why that is not known."""
    if not found.words:
        return ""
    from core.attacks.inversion.reconstruct.confidence import (
        CALIBRATED_ON,
        ELSEWHERE,
        why_not_calibrated,
    )

    if why := why_not_calibrated(text):
        return label(
            f"How often such words are right: not calibrated on text like this ({why}). The "
            f"calibration is on {CALIBRATED_ON}."
        )
    words = "".join(
        f'<li class="ls-chip" dir="auto">{escape(word.word)} {percent_said(word.score)}</li>'
        for word in found.words
    )
    told = (
        "Without knowing the text the attacker can tell: of such sentences "
        f"{percent_said(found.confidence)} are right word for word; of such words, as often as "
        f"stands beside each. Calibrated on {CALIBRATED_ON}. {ELSEWHERE}"
    )
    return f'{label(told)}<ul class="ls-words" aria-label="How sure of each word">{words}</ul>'


def sentence_steps(steps: Sequence[SentenceStep], true: str) -> str:
    """Return sentences that a search went through, each with its cosine, its words marked."""
    items = "".join(
        f'<li><span class="ls-label">{_after(step)}</span>{written(step.text, true)}</li>'
        for step in steps
    )
    return f'<ol class="ls-steps" aria-label="How the sentence grew">{items}</ol>'


def _after(step: SentenceStep) -> str:
    if math.isnan(step.cosine):
        return "Before any query"
    return f"After {step.n_queries:,} queries, cosine {step.cosine:.3f}"


def _step(found: RecoveredWord, is_hit: bool) -> str:
    kind, told = ("ls-read", "recovered") if is_hit else ("ls-wrong", "wrong")
    word = f'<span class="ls-chip {kind}" dir="auto">{escape(found.word)}</span>'
    return f'<li>{word}<span class="ls-hidden"> {told}</span></li>'


def read_words(title: str, words: Sequence[str], none: str) -> str:
    """Return words that were read, under a heading; `none` where there are none."""
    if not words:
        return f'{label(title)}<p class="ls-label">{escape(none)}</p>'
    items = "".join(f'<li class="ls-chip ls-read" dir="auto">{escape(w)}</li>' for w in words)
    told = escape(title, quote=True)
    return f'{label(title)}<ul class="ls-words" aria-label="{told}">{items}</ul>'


def quoted(text: str) -> str:
    """Return a text without marks."""
    return f'<p class="ls-sentence" dir="auto">{escape(text)}</p>'


def facts(rows: Mapping[str, str]) -> str:
    """Return terms and their values."""
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows.items())
    return f'<dl class="ls-facts">{items}</dl>'


def explained_terms(terms: Mapping[str, str]) -> str:
    """Return terms that tell what they mean, to pointer, keyboard and screen reader alike."""
    items = "".join(
        f'<li><span class="ls-term" tabindex="0" role="note" data-told="{escape(told)}" '
        f'aria-label="{escape(term)}: {escape(told)}">{escape(term)}</span></li>'
        for term, told in terms.items()
    )
    return f'<ul class="ls-words ls-terms">{items}</ul>'


def glossary(rows: Mapping[str, str]) -> str:
    """Return terms with what they mean, as a list to read through."""
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows.items())
    return f'<dl class="ls-glossary">{items}</dl>'


def marked_passage(text: str, spans: Sequence[tuple[int, int]], told: str) -> str:
    """Return a text with what lies within spans marked; `told` says what the mark is of."""
    pieces, end = [], 0
    for start, stop in spans:
        marked = f'<mark class="ls-hit" title="{escape(told)}">{escape(text[start:stop])}</mark>'
        pieces += [escape(text[end:start]), marked]
        end = stop
    hidden = f'<p class="ls-hidden">{escape(told)}: {len(spans)}</p>' if spans else ""
    body = "".join(pieces) + escape(text[end:])
    return f'<p class="ls-sentence" dir="auto">{body}</p>{hidden}'


def marked_pieces(pieces: Sequence[tuple[str, str]]) -> str:
    """Return a sentence by its pieces and what became of each, in words; from anybody's file."""
    known = {mark.value: kind for mark, kind in _CLASSES.items()}
    known |= {"came back unchanged": "ls-hit", "changed": "ls-miss"}
    body = "".join(
        f'<span class="{known[mark]}" title="{escape(mark)}">{escape(piece)}</span>'
        if mark in known
        else escape(piece)
        for piece, mark in pieces
    )
    read = [piece for piece, mark in pieces if known.get(mark) == "ls-hit"]
    return (
        f'<p class="ls-sentence" dir="auto">{body}</p>'
        f'<p class="ls-hidden">Recovered: {_listed(read)}.</p>'
    )


def label(text: str) -> str:
    """Return a small heading."""
    return f'<p class="ls-label">{escape(text)}</p>'
