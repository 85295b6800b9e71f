"""Attack answers and other results as HTML; every text is escaped here.

The style sheet gives each mark a shape and a colour; a hidden sentence describes the marks to
screen readers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

from leakscope.core.attacks.inversion.reading import Mark, Reading
from leakscope.core.formatting import format_percent
from leakscope.core.results import Sentence, SentenceStep
from leakscope.core.text import mark_words

_AS_READ = "The reconstructed sentence"

_CLASSES = {
    Mark.RECOVERED: "ls-hit",
    Mark.MISSED: "ls-miss",
    Mark.UNKNOWN: "ls-unknown",
    Mark.STOP_WORD: "ls-stop",
    Mark.UNREAD: "ls-stop",
}


def marked_sentence(reading: Reading) -> str:
    """Return a reading's text as HTML, each word marked as recovered, missed or not scored."""
    words = "".join(_piece(piece, mark) for piece, mark in reading.pieces)
    hidden = _describe_marks(reading)
    return f'<p class="ls-sentence" dir="auto">{words}</p><p class="ls-hidden">{hidden}</p>'


def _describe_marks(reading: Reading) -> str:
    """List for screen readers which words were recovered, missed or not scored, escaped."""
    read, missed, unknown = (
        reading.marked(mark) for mark in (Mark.RECOVERED, Mark.MISSED, Mark.UNKNOWN)
    )
    sentences = f"Recovered: {_join_words(read)}. Missed: {_join_words(missed)}."
    if unknown:
        sentences = sentences if read or missed else "None of its words can be scored."
        sentences += f" Outside the attack's vocabulary: {_join_words(unknown)}."
    if reading.unread:
        sentences += " The rest of the text exceeds the encoder's input limit."
    return sentences


def _piece(piece: str, mark: Mark) -> str:
    """Return a piece of text, escaped, as HTML in the style of its mark."""
    if mark is Mark.BETWEEN:
        return escape(piece)
    tag = "mark" if mark is Mark.RECOVERED else "span"
    return f'<{tag} class="{_CLASSES[mark]}" title="{escape(mark.value)}">{escape(piece)}</{tag}>'


def _join_words(words: Sequence[str]) -> str:
    """Return words joined by commas and escaped; "none" if there are none."""
    return escape(", ".join(words)) or "none"


def privatised_sentence(tokens: Sequence[str], changed: Sequence[str]) -> str:
    """Return a privatised text as HTML, its tokens marked as changed or unchanged."""
    words = "".join(_token(old, new) for old, new in zip(tokens, changed, strict=True))
    kept = [new for old, new in zip(tokens, changed, strict=True) if old == new]
    hidden = f"{len(kept)} of {len(tokens)} tokens came back unchanged: {_join_words(kept)}."
    return f'<p class="ls-sentence" dir="auto">{words.strip()}</p><p class="ls-hidden">{hidden}</p>'


def _token(old: str, new: str) -> str:
    """Return a released token as HTML; a changed one shows the original on hover."""
    joins = new.startswith("##")
    shown = escape(new.removeprefix("##"))
    space = "" if joins else " "
    if old == new:
        return f'{space}<mark class="ls-hit" title="came back unchanged">{shown}</mark>'
    title = escape(f"was {old}", quote=True)
    return f'{space}<span class="ls-miss" title="{title}">{shown}</span>'


def token_legend() -> str:
    """Return the legend (unchanged, changed) of a privatised text as HTML."""
    return _legend({"came back unchanged": "ls-hit", "changed": "ls-miss"})


def legend(readings: Iterable[Reading]) -> str:
    """Return the legend of the marks that occur in the readings, as HTML."""
    seen = {mark for reading in readings for _, mark in reading.pieces}
    return _legend({mark.value: kind for mark, kind in _CLASSES.items() if mark in seen})


def _legend(marks: Mapping[str, str]) -> str:
    """Return a legend as HTML, from a mapping of each mark's meaning to its style class."""
    items = "".join(
        f'<li><span class="{kind}">{escape(meaning)}</span></li>' for meaning, kind in marks.items()
    )
    return f'<ul class="ls-legend" aria-label="What the marks mean">{items}</ul>'


def wrong_words(reading: Reading) -> str:
    """Return a reading's wrong words as an HTML list; those with a true word's stem are marked."""
    if not reading.wrong:
        return '<p class="ls-label">The attacker gave no wrong word.</p>'
    items = ""
    for word in (found.word for found in reading.wrong):
        kind, title = "ls-wrong", ""
        if true_word := reading.kin.get(word):
            about = escape(f"wrong, but shares its stem with {true_word}")
            kind, title = "ls-kin", f' title="{about}"'
        items += f'<li class="ls-chip {kind}" dir="auto"{title}>{escape(word)}</li>'
    title = "Wrong guesses" + (" (≈ shares its stem with a word above)" if reading.kin else "")
    return f'{label(title)}<ul class="ls-words" aria-label="Wrong guesses">{items}</ul>'


def counted_words(title: str, counts: Iterable[tuple[str, int]]) -> str:
    """Return (word, number of texts) pairs as an HTML list below a title."""
    items = "".join(
        f'<li class="ls-chip ls-read" dir="auto">{escape(word)} <small>{n:,}</small></li>'
        for word, n in counts
    )
    return f'{label(title)}<ul class="ls-words" aria-label="{escape(title)}">{items}</ul>'


def ordered_words(reading: Reading) -> str:
    """Return a reading's answered words as a numbered HTML list, in the attack's order."""
    hits = {w.word for w in reading.hits}
    items = ""
    for word in (found.word for found in reading.recovery.words):
        kind, outcome = ("ls-read", "recovered") if word in hits else ("ls-wrong", "wrong")
        chip = f'<span class="ls-chip {kind}" dir="auto">{escape(word)}</span>'
        items += f'<li>{chip}<span class="ls-hidden"> {outcome}</span></li>'
    return (
        f"{label('In the order chosen by the attack')}"
        f'<ol class="ls-words ls-order" aria-label="Words in the order chosen">{items}</ol>'
    )


def scored_sentence(answer: str, true: str) -> str:
    """Return an attack's sentence as HTML, words of the true text marked, with their count.

    A word is right if the true text contains it at least as often. Right words that also begin the
    text or follow the same word as there are underlined and counted separately.
    """
    known = [word for _, word in mark_words(true) if word is not None]
    pairs, left = set(pairwise(["", *known])), Counter(known)
    pieces, before, n, n_right, n_in_order = [], "", 0, 0, 0
    for piece, word in mark_words(answer):
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
    count = f"{n_right} of its {n} words are in the text, {n_in_order} of them first or after "
    count += "the same word"
    return f'<p class="ls-sentence" dir="auto">{"".join(pieces)}</p><p class="ls-label">{count}</p>'


def reconstructed_sentence(reading: Reading) -> str:
    """Return a reading's reconstructed sentence as HTML, with cosine and calibration."""
    found = reading.recovery.sentence
    if found is None:
        return ""
    head = "The best sentence before the search was stopped" if reading.is_unfinished else _AS_READ
    return sentence_with_cosine(found, reading.text, head) + _calibration(found, reading.text)


def sentence_with_cosine(found: Sentence, true: str, head: str) -> str:
    """Return a reconstructed sentence as HTML, its cosine to the vector in the heading."""
    near = "" if math.isnan(found.cosine) else f", cosine {found.cosine:.3f} to the vector"
    return label(
        f"{head}{near}; underlined words are first, or follow the same word, as in the text"
    ) + scored_sentence(found.text, true)


def _calibration(found: Sentence, text: str) -> str:
    """Return as HTML how often such sentences and words are right, or why that is unknown."""
    if not found.words:
        return ""
    from leakscope.core.attacks.inversion.reconstruct.confidence import (
        CALIBRATED_ON,
        ELSEWHERE,
        why_not_calibrated,
    )

    if why := why_not_calibrated(text):
        return label(
            "How often such words are right is not known: the attack was not calibrated on text "
            f"like this ({why}). It was calibrated on {CALIBRATED_ON}."
        )
    words = "".join(
        f'<li class="ls-chip" dir="auto">{escape(word.word)} {format_percent(word.score)}</li>'
        for word in found.words
    )
    heading = (
        "The attacker can estimate this without the text. "
        f"{format_percent(found.confidence)} of such sentences are right word for word. Beside "
        f"each word: how often such a word is right. Calibrated on {CALIBRATED_ON}. {ELSEWHERE}"
    )
    return f'{label(heading)}<ul class="ls-words" aria-label="Confidence in each word">{words}</ul>'


def sentence_steps(steps: Sequence[SentenceStep], true: str) -> str:
    """Return the sentence at each search step as an HTML list, with cosines and marked words."""
    items = ""
    for step in steps:
        when = (
            "Before the first query"
            if math.isnan(step.cosine)
            else f"After {step.n_queries:,} queries, cosine {step.cosine:.3f}"
        )
        items += f'<li><span class="ls-label">{when}</span>{scored_sentence(step.text, true)}</li>'
    return f'<ol class="ls-steps" aria-label="Steps of the search">{items}</ol>'


def recovered_words(title: str, words: Sequence[str], none: str) -> str:
    """Return words as an HTML list under a heading; for no words, the text `none`."""
    if not words:
        return f'{label(title)}<p class="ls-label">{escape(none)}</p>'
    items = "".join(f'<li class="ls-chip ls-read" dir="auto">{escape(w)}</li>' for w in words)
    name = escape(title, quote=True)
    return f'{label(title)}<ul class="ls-words" aria-label="{name}">{items}</ul>'


def plain_paragraph(text: str) -> str:
    """Return a text, escaped, as an HTML paragraph without marks."""
    return f'<p class="ls-sentence" dir="auto">{escape(text)}</p>'


def description_list(rows: Mapping[str, str], kind: str = "ls-facts") -> str:
    """Return a mapping of labels to texts as an HTML description list of a style class."""
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows.items())
    return f'<dl class="{kind}">{items}</dl>'


def explained_terms(terms: Mapping[str, str]) -> str:
    """Return terms as an HTML list, each with its explanation on hover and focus."""
    items = "".join(
        f'<li><span class="ls-term" tabindex="0" role="note" data-told="{escape(meaning)}" '
        f'aria-label="{escape(term)}: {escape(meaning)}">{escape(term)}</span></li>'
        for term, meaning in terms.items()
    )
    return f'<ul class="ls-words ls-terms">{items}</ul>'


def glossary(rows: Mapping[str, str]) -> str:
    """Return a mapping of terms to explanations as an HTML list."""
    return description_list(rows, "ls-glossary")


def marked_passage(text: str, spans: Sequence[tuple[int, int]], meaning: str) -> str:
    """Return a text as HTML with the given spans marked; `meaning` describes the marks."""
    pieces, end = [], 0
    for start, stop in spans:
        marked = f'<mark class="ls-hit" title="{escape(meaning)}">{escape(text[start:stop])}</mark>'
        pieces += [escape(text[end:start]), marked]
        end = stop
    hidden = f'<p class="ls-hidden">{escape(meaning)}: {len(spans)}</p>' if spans else ""
    body = "".join(pieces) + escape(text[end:])
    return f'<p class="ls-sentence" dir="auto">{body}</p>{hidden}'


def marked_pieces(pieces: Sequence[tuple[str, str]]) -> str:
    """Return (text, mark) pairs of a story file as HTML; unknown marks are ignored."""
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
        f'<p class="ls-hidden">Recovered: {_join_words(read)}.</p>'
    )


def label(text: str) -> str:
    """Return a text, escaped, as a small HTML heading."""
    return f'<p class="ls-label">{escape(text)}</p>'
