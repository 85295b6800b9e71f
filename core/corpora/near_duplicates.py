"""Find texts that nearly repeat a known text, or that a known text nearly contains.

Who has learnt a text knows one that differs from it by a word or two, and a short one that stands
in it. What is read of such a text says little about texts that were never seen, so that none may
be under attack.
docs/decisions/0016-texts-that-nearly-repeat-others.md says why the threshold is what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import words

SHINGLE_WORDS = 3
"""Number of consecutive words in a shingle."""

THRESHOLD = 0.25
"""Jaccard similarity of shingle sets from which one text nearly repeats the other."""

CONTAINED = 0.8
"""Share of a text's shingles found in one known text from which the text counts as contained. A
higher similarity threshold raises it as well."""

N_HASHES = 256
"""Number of MinHash values."""

MISSED = 0.005
"""Maximum probability that a pair exactly at the threshold is not compared."""

Shingles = frozenset[tuple[str, ...]]


def near_duplicates(
    texts: Sequence[str],
    known: Iterable[str],
    threshold: float = THRESHOLD,
    *,
    n_words: int = SHINGLE_WORDS,
) -> frozenset[int]:
    """Return the indices of texts that nearly repeat a known text, or are nearly contained in one.

    Implements Broder (1997): the resemblance |A ∩ B| / |A ∪ B| of two texts' sets of w-shingles,
    with candidates by MinHash in bands (`datasketch`), each compared exactly; and the containment
    |A ∩ B| / |A| of a text A in a known text B, counted exactly in an index of the shingles.
    Differs from the paper: shingles are of words as `leakscope.core.text` has them. The few texts
    lie in the index, the many known ones pass by, and those are left out before they are hashed of
    whose shingles a smaller share than the threshold is in any text: they can resemble none. A text
    of a single shingle, such as "he said that", is not contained by the longer ones that it stands
    in: language repeats three words. It goes where it is all, or nearly all, that a known text
    says.

    Parameters
    ----------
    texts : sequence of str
        Some hundreds or thousands.
    known : iterable of str
        Any number of texts; they are processed one after another.
    threshold : float
        Resemblance from which a text counts as a repetition, in (0, 1]. Containment counts from
        CONTAINED, or from this where it is more.
    n_words : int
        Words per shingle.

    Raises
    ------
    InvalidInputError
        A threshold or a length outside its range.

    References
    ----------
    A. Broder: On the resemblance and containment of documents. SEQUENCES 1997.

    Examples
    --------
    >>> sorted(near_duplicates(["A dog barked at Bo.", "It rained."], ["a dog barked at Bo!"]))
    [0]
    >>> sorted(
    ...     near_duplicates(["A dog barked at Bo."], ["They say that a dog barked at Bo, once."])
    ... )
    [0]
    """
    if not 0 < threshold <= 1 or n_words < 1:
        raise InvalidInputError(
            f"threshold must be above 0 and at most 1, and n_words at least 1; got {threshold} "
            f"and {n_words}."
        )
    sought = [shingles(text, n_words) for text in texts]
    found, passed = _find_contained_and_candidates(
        sought, (shingles(text, n_words) for text in known), threshold
    )
    return frozenset(found | _find_resembling(sought, passed, threshold, found))


def shingles(text: str, n_words: int = SHINGLE_WORDS) -> Shingles:
    """Return the set of runs of n_words words in a text; a shorter text is a single run.

    Examples
    --------
    >>> sorted(shingles("My dog barks, my dog sleeps", 2))
    [('barks', 'my'), ('dog', 'barks'), ('dog', 'sleeps'), ('my', 'dog')]
    """
    found = words(text)
    if not found:
        return frozenset()
    if len(found) < n_words:
        return frozenset([tuple(found)])
    return frozenset(zip(*(found[start:] for start in range(n_words)), strict=False))


def similarity(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard similarity of two shingle sets; 0 if both are empty.

    Examples
    --------
    >>> similarity(frozenset([("a",), ("b",)]), frozenset([("b",), ("c",)]))
    0.3333333333333333
    """
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def containment(one: Shingles, other: Shingles) -> float:
    """Return the share of the first shingle set that is in the second; 0 if the first is empty.

    Examples
    --------
    >>> containment(frozenset([("a",), ("b",)]), frozenset([("b",), ("c",), ("d",)]))
    0.5
    """
    return len(one & other) / len(one) if one else 0.0


def _find_contained_and_candidates(
    sought: Sequence[Shingles], known: Iterable[Shingles], threshold: float
) -> tuple[set[int], list[Shingles]]:
    """Return the indices of texts contained in a known text, and known texts to compare further.

    These are the ones of |A ∩ B| ≥ t |A ∪ B| ≥ t |B|, A being any text and B the known one.
    """
    every = frozenset(chain.from_iterable(sought))
    rows: dict[tuple[str, ...], list[int]] = {shingle: [] for shingle in every}
    for row, own in enumerate(sought):
        for shingle in own if len(own) > 1 else ():
            rows[shingle].append(row)
    least = max(threshold, CONTAINED)
    found: set[int] = set()
    passed = []
    for theirs in known:
        shared = theirs & every
        if not shared:
            continue
        counts = Counter(row for shingle in shared for row in rows[shingle])
        found.update(row for row, n in counts.items() if n / len(sought[row]) >= least)
        if len(shared) >= threshold * len(theirs):
            passed.append(theirs)
    return found, passed


def _find_resembling(
    sought: Sequence[Shingles], passed: Sequence[Shingles], threshold: float, known: set[int]
) -> set[int]:
    """Return the indices of texts similar enough to a candidate text, found by MinHash LSH."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=N_HASHES, params=_bands(threshold))
    for row, hashed in enumerate(
        MinHash.generator(map(_encode_shingles, sought), num_perm=N_HASHES)
    ):
        if sought[row] and row not in known:
            index.insert(row, hashed)
    found: set[int] = set()
    signatures = MinHash.generator(map(_encode_shingles, passed), num_perm=N_HASHES)
    for theirs, hashed in zip(passed, signatures, strict=True):
        for row in index.query(hashed):
            if row not in found and similarity(sought[row], theirs) >= threshold:
                found.add(row)
    return found


def _encode_shingles(found: Shingles) -> list[bytes]:
    """Return each shingle of a set as a byte string, for MinHash."""
    return [" ".join(shingle).encode() for shingle in found]


def _bands(threshold: float) -> tuple[int, int]:
    """Return the LSH (bands, rows) that miss a pair at the threshold with probability ≤ MISSED.

    A pair of similarity s shares a band of r values, of b, with probability 1 - (1 - s^r)^b.
    """
    for n_rows in range(N_HASHES, 1, -1):
        n_bands = N_HASHES // n_rows
        if n_bands > 1 and (1 - threshold**n_rows) ** n_bands <= MISSED:
            return n_bands, n_rows
    return N_HASHES, 1
