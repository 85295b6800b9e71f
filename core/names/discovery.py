"""Find names of people in a collection: in a column that lists them, or in the texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import regex

from leakscope.core.errors import CoreError
from leakscope.core.names.person import PersonName, contains_name, parse_name
from leakscope.core.text import STOP_WORDS, mark_words, word_set

NAME_COLUMN = "person_names"
"""Name of the column that lists the people that each row mentions."""

TITLES = frozenset(
    """
    mr mrs ms miss dr sir lord lady dame prof professor president minister chancellor secretary
    senator judge king queen prince princess pope captain coach
    frau herr madame monsieur mme signor signora señor señora
    """.split()  # noqa: SIM905 - a list literal would take 25 lines
)
"""Titles before a surname; they are not first names."""

_CALENDAR = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december
    """.split()  # noqa: SIM905 - a list literal would take 19 lines
)
"""Words that are capitalised in English but are hardly ever names."""

_PARTICLES = frozenset("van der den de di da del della von la le al bin ten ter".split())  # noqa: SIM905
"""Lower-case words within a surname."""

_NAME_WORD = regex.compile(r"\p{Lu}[\p{L}\p{M}]*(?:['’‐-]\p{L}[\p{L}\p{M}]*)*")

_PLACING = frozenset({"in", "at", "the"})
"""Words that precede places and clubs, but hardly ever people."""
_MOST_PLACED = 0.1
_MOST_LOWER = 0.05
_LEAST_FOLLOWED = 0.5
_LEAST_ALONE = 0.3
_LEAST_OWN = 0.5


@dataclass
class _Counts:
    """Counts of capitalised and lower-case words, and of capitalised pairs."""

    lower: Counter[str]
    capital: Counter[str]
    followed: Counter[str]
    after_pair: Counter[str]
    pairs: Counter[tuple[str, str]]
    placed: Counter[tuple[str, str]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Counts:
        """Count the words and capitalised pairs of all texts."""
        counts = cls(*(Counter() for _ in range(6)))
        for text in texts:
            counts.add(text)
        return counts

    def add(self, text: str) -> None:
        """Add the words and capitalised pairs of one text to the counts."""
        pieces = mark_words(text)
        at_words = [i for i, (_, word) in enumerate(pieces) if word is not None]
        follower: dict[int, int] = {
            i: j for i, j in pairwise(at_words) if j == i + 2 and pieces[i + 1][0] == " "
        }
        for rank, i in enumerate(at_words):
            piece = pieces[i][0]
            if not _is_capitalised(piece):
                self.lower[piece.lower()] += piece.islower()
                continue
            self.capital[piece] += rank > 0  # a sentence starts with a capital in any case
            j = follower.get(i)
            if piece.lower() in TITLES:
                continue
            if j is not None and _is_capitalised(pieces[j][0]):
                self.followed[piece] += rank > 0
                self.after_pair[pieces[j][0]] += 1
                pair = (piece, pieces[j][0])
                self.pairs[pair] += 1
                self.placed[pair] += rank > 0 and pieces[at_words[rank - 1]][1] in _PLACING


def find_names(texts: Sequence[str], n: int) -> tuple[PersonName, ...]:
    """Find the n people most often named by first and last name in texts, by a heuristic.

    Two capitalised words in a row are taken for a person where

    - neither is written without a capital in more than 5 % of its occurrences (`Prime Minister`
      falls out);
    - the first is followed by a capitalised word in at least half of its occurrences within
      sentences (`Vienna Airport` falls out);
    - the pair follows `in`, `at` or `the` in at most 10 % (`Aston Villa` falls out);
    - the second stands without such a word before it, a title aside, in at least 30 % of its
      occurrences, as surnames do in news (`New York` falls out);
    - the first is what stands before the second in at least half of the pairs that it ends (a
      surname that several people share is nobody's own).

    It misses names of one or three words, and mistakes some places and clubs for people. Pass the
    names if you know them.

    Parameters
    ----------
    texts : sequence of str
        Sentences, in their own capitals.
    """
    counts = _Counts.of(texts)
    found: dict[str, PersonName] = {}
    ranked = sorted(counts.pairs.items(), key=lambda item: (-item[1], item[0]))
    for (first, last), n_pairs in ranked:
        if n_pairs < 2 or len(found) == n:
            break
        if last not in found and _is_person(counts, first, last):
            found[last] = PersonName(last, first)
    return tuple(found.values())


def _is_capitalised(piece: str) -> bool:
    """Return whether a word is one capital followed by lower-case letters."""
    return piece[0].isupper() and piece[1:].islower() and piece.isalpha()


def _is_person(counts: _Counts, first: str, last: str) -> bool:
    """Return whether a capitalised pair is probably a person's name, by its counts."""
    is_plain = {first.lower(), last.lower()} & (STOP_WORDS | TITLES)
    return (
        not is_plain
        and counts.placed[first, last] <= _MOST_PLACED * counts.pairs[first, last]
        and all(counts.lower[w.lower()] <= _MOST_LOWER * counts.capital[w] for w in (first, last))
        and counts.pairs[first, last] >= _LEAST_OWN * counts.after_pair[last]
        and counts.followed[first] >= _LEAST_FOLLOWED * counts.capital[first]
        and counts.capital[last] - counts.after_pair[last] >= _LEAST_ALONE * counts.capital[last]
    )


def likely_names(
    text: str, unknown: Collection[str], missed: Collection[str] = ()
) -> tuple[PersonName, ...]:
    """Find probable names of people in one text, for a user to confirm.

    Two capitalised words or more in a row, and single ones that are `unknown` or `missed`. Left
    out are numbers, e-mail addresses, words in capitals alone (IBAN), titles, days and months;
    after `in`, `at` or `the` single words and those that are all known; and the first word of a
    sentence, unless it is unknown and the text has no other. In a text without capitals each
    unknown word that has letters alone is one.

    Parameters
    ----------
    text : str
    unknown, missed : collection of str
        Lower-case words that no attack can answer, as names often are, and that none did answer.

    Examples
    --------
    >>> text = "Please call Dana Quellbrook on 555 0142, IBAN DE89 3704, by Friday."
    >>> [name.full for name in likely_names(text, {"quellbrook", "0142", "iban", "de89", "3704"})]
    ['Dana Quellbrook']
    >>> [name.full for name in likely_names("Please ask John Smith in New York.", ())]
    ['John Smith']
    """
    text = normalize("NFKC", text)
    if not any(c.isupper() for c in text):
        written = [
            p for p, w in mark_words(text) if w and p.isalpha() and word_set(p) & set(unknown)
        ]
        return _parse_all(text, written)
    inner, first = [], []
    for run in _capitalised_runs(text):
        words, rest = (word_set(" ".join(each)) for each in (run.words, run.words[run.is_start :]))
        is_rare, n_rest = not words.isdisjoint(unknown), len(run.words) - run.is_start
        is_placed = run.before in _PLACING and (not is_rare or n_rest == 1)
        if not is_placed and (n_rest > 1 or not rest.isdisjoint({*unknown, *missed})):
            inner.append(" ".join(run.words[run.is_start :]))
        elif run.is_start and is_rare:
            first.append(" ".join(run.words))
    return _parse_all(text, inner) or _parse_all(text, first)


@dataclass
class _CapitalisedRun:
    """A run of capitalised words: whether it starts a sentence, and the word before it."""

    words: list[str]
    is_start: bool
    before: str


def _capitalised_runs(text: str) -> list[_CapitalisedRun]:
    """Find the runs of capitalised words of a text, without titles and calendar words."""
    runs: list[_CapitalisedRun] = []
    is_open, is_start, before = False, True, ""
    for chunk in text.split():
        bare = regex.sub(r"^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$|['’]s\W*$", "", chunk)
        is_written_so = not bare.isupper() or text.isupper()
        is_none = bare.lower() in TITLES | _CALENDAR
        if _NAME_WORD.fullmatch(bare) and is_written_so and not is_none:
            if not is_open:
                runs.append(_CapitalisedRun([], is_start, before))
            runs[-1].words.append(bare)
            is_open = True
        elif is_open and bare in _PARTICLES:
            runs[-1].words.append(bare)
        else:
            is_open = False
        is_open = is_open and chunk[-1].isalnum()
        is_start = chunk[-1] in ".?!"
        before = bare.lower()
    return runs


def _parse_all(text: str, written: Sequence[str]) -> tuple[PersonName, ...]:
    """Parse strings as names, one per surname; skip what is no name or not in the text."""
    found: dict[frozenset[str], PersonName] = {}
    for each in written:
        try:
            name = parse_name(each)
        except CoreError:
            continue
        if contains_name(text, name):
            found.setdefault(name.words, name)
    return tuple(found.values())


def names_in_column(path: Path, n: int) -> tuple[PersonName, ...]:
    """Read a Parquet file's `person_names` column; return the n people listed most often.

    Names of one word are left out: they may be first names.
    """
    if path.suffix != ".parquet" or not path.is_file():
        return ()
    import pyarrow.parquet as parquet

    if NAME_COLUMN not in parquet.read_schema(path).names:
        return ()
    rows = parquet.read_table(path, columns=[NAME_COLUMN])[NAME_COLUMN].to_pylist()
    written = Counter(str(name) for row in rows for name in row or () if len(str(name).split()) > 1)
    found: dict[frozenset[str], PersonName] = {}
    for text, _ in sorted(written.items(), key=lambda item: (-item[1], item[0])):
        try:
            name = parse_name(text)
        except CoreError:  # the column is not ours: skip what is not a name
            continue
        found.setdefault(name.words, name)
        if len(found) == n:
            break
    return tuple(found.values())
