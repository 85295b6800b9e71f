"""Names of people found in a collection: in a column that names them, or in the text itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from core.errors import CoreError
from core.names.person import PersonName, parse_name
from core.text import STOP_WORDS, mark_words

__all__ = ["NAME_COLUMN", "find_names", "names_of_column"]

NAME_COLUMN = "person_names"
"""A column of this name lists the people that each row names."""

TITLES = frozenset(
    """
    mr mrs ms miss dr sir lord lady dame prof professor president minister chancellor secretary
    senator judge king queen prince princess pope captain coach
    """.split()  # noqa: SIM905 - a list literal would take 25 lines
)
"""What stands before a surname and is no first name."""

_PLACING = frozenset({"in", "at", "the"})
"""What stands before places and clubs, hardly ever before people."""
_MOST_PLACED = 0.1
_MOST_LOWER = 0.05
_LEAST_FOLLOWED = 0.5
_LEAST_ALONE = 0.3
_LEAST_OWN = 0.5


@dataclass
class _Counts:
    """How often words occur, with a capital and without, alone and in pairs."""

    lower: Counter[str]
    capital: Counter[str]
    followed: Counter[str]
    after_pair: Counter[str]
    pairs: Counter[tuple[str, str]]
    placed: Counter[tuple[str, str]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Counts:
        counts = cls(*(Counter() for _ in range(6)))
        for text in texts:
            counts.add(text)
        return counts

    def add(self, text: str) -> None:
        pieces = mark_words(text)
        at_words = [i for i, (_, word) in enumerate(pieces) if word is not None]
        follower: dict[int, int] = {
            i: j for i, j in pairwise(at_words)
            if j == i + 2 and pieces[i + 1][0] == " "
        }  # fmt: skip
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
    """Return the n people named most often in full, one a surname: a heuristic on bigrams.

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

    It misses names of one or three words, and takes some places and clubs for people: give the
    names where they are known.

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
    return piece[0].isupper() and piece[1:].islower() and piece.isalpha()


def _is_person(counts: _Counts, first: str, last: str) -> bool:
    is_plain = {first.lower(), last.lower()} & (STOP_WORDS | TITLES)
    return (
        not is_plain
        and counts.placed[first, last] <= _MOST_PLACED * counts.pairs[first, last]
        and all(counts.lower[w.lower()] <= _MOST_LOWER * counts.capital[w] for w in (first, last))
        and counts.pairs[first, last] >= _LEAST_OWN * counts.after_pair[last]
        and counts.followed[first] >= _LEAST_FOLLOWED * counts.capital[first]
        and counts.capital[last] - counts.after_pair[last] >= _LEAST_ALONE * counts.capital[last]
    )


def names_of_column(path: Path, n: int) -> tuple[PersonName, ...]:
    """Return the n people whom the column `person_names` lists most often; none without it.

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
        except CoreError:  # the column is not ours: what is no name is passed over
            continue
        found.setdefault(name.words, name)
        if len(found) == n:
            break
    return tuple(found.values())
