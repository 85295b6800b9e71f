"""The language model's compiled loops: probabilities of n-grams, of sentences, and of edits.

Numba infers the types; the docstrings state them. `tables` is what `LanguageModel.tables` returns.
"""

from __future__ import annotations

import numpy as np

from core.attacks.inversion.reconstruct.tokens import BEGIN, END
from core.compiled import njit

__all__ = [
    "cut_scores",
    "edit_scores",
    "fill_table",
    "log_probabilities",
    "move_scores",
    "next_scores",
    "pair_scores",
]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(24)


@njit(nogil=True, cache=True)
def fill_table(keys, places):
    """Put n keys ≥ 0 into an open-addressed table of a power-of-two size.

    Parameters
    ----------
    keys : int64 array (n,)
    places : int32 array (m,), filled with -1; gets the position of the key that lies there
    """
    mask = np.uint64(len(places) - 1)
    for i in range(len(keys)):
        at = (np.uint64(keys[i]) * _SPREAD >> _SHIFT) & mask
        while places[np.int64(at)] >= 0:
            at = (at + np.uint64(1)) & mask
        places[np.int64(at)] = i


@njit(nogil=True, cache=True, inline="always")
def _find(key, keys, places):
    """Return the position of a key, or -1."""
    mask = np.uint64(len(places) - 1)
    at = (np.uint64(key) * _SPREAD >> _SHIFT) & mask
    while True:
        i = places[np.int64(at)]
        if i < 0 or keys[i] == key:
            return i
        at = (at + np.uint64(1)) & mask


@njit(nogil=True, cache=True, inline="always")
def _pair(b, c, tables):
    """Return the position of a pair, or -1."""
    return _find(np.int64(b) * len(tables[0]) + c, tables[2], tables[3])


@njit(nogil=True, cache=True, inline="always")
def _from_pair(i, b, c, tables):
    """Return log P(c | b), i the position of that pair."""
    return tables[4][i] if i >= 0 else tables[1][b] + tables[0][c]


@njit(nogil=True, cache=True, inline="always")
def _from_triple(i, a, b, c, less, tables):
    """Return log P(c | a b), i the position of the pair (a, b), `less` log P(c | b)."""
    if i < 0:
        return less  # no triple begins with a pair that never was
    size = len(tables[0])
    j = _find((np.int64(a) * size + b) * size + c, tables[6], tables[7])
    return tables[8][j] if j >= 0 else tables[5][i] + less


@njit(nogil=True, cache=True)
def _of_pair(b, c, tables):
    """Return log P(c | b)."""
    return _from_pair(_pair(b, c, tables), b, c, tables)


@njit(nogil=True, cache=True)
def _of_triple(a, b, c, tables):
    """Return log P(c | a b)."""
    i = _pair(a, b, tables)
    if i < 0:
        return _of_pair(b, c, tables)
    size = len(tables[0])
    j = _find((np.int64(a) * size + b) * size + c, tables[6], tables[7])
    return tables[8][j] if j >= 0 else tables[5][i] + _of_pair(b, c, tables)


@njit(nogil=True, cache=True, inline="always")
def _at(tokens, i):
    """Return the token at a place, as it stands between two BEGIN and an END; -1 beyond."""
    if i < 0:
        return BEGIN
    if i < len(tokens):
        return tokens[i]
    return END if i == len(tokens) else -1


@njit(nogil=True, cache=True)
def _of_sentence(tokens, tables):
    total = 0.0
    for i in range(len(tokens) + 1):
        total += _of_triple(_at(tokens, i - 2), _at(tokens, i - 1), _at(tokens, i), tables)
    return total


@njit(nogil=True, cache=True)
def log_probabilities(flat, starts, tables, out):
    """Write log P of n sentences.

    Parameters
    ----------
    flat : int32 array, the tokens of all sentences in a row
    starts : int64 array (n + 1,)
    out : float64 array (n,)
    """
    for i in range(len(out)):
        out[i] = _of_sentence(flat[starts[i] : starts[i + 1]], tables)


@njit(nogil=True, cache=True)
def next_scores(before, candidates, tables, out):
    """Write log P(c | a b) of each candidate c after each of m pairs.

    Parameters
    ----------
    before : int32 array (m, 2)
    candidates : int32 array (n,)
    out : float64 array (m, n)
    """
    for i in range(len(before)):
        a, b = before[i, 0], before[i, 1]
        ab = _pair(a, b, tables)
        for k in range(len(candidates)):
            c = candidates[k]
            less = _from_pair(_pair(b, c, tables), b, c, tables)
            out[i, k] = _from_triple(ab, a, b, c, less, tables)


@njit(nogil=True, cache=True)
def edit_scores(tokens, candidates, tables, insert, replace, delete):
    """Write by how much log P changes under every edit of a sentence of n tokens.

    Parameters
    ----------
    candidates : int32 array (m,)
    insert : float32 array (n + 1, m), a candidate before each place
    replace : float32 array (n, m), a candidate in each place; very low where it stands there
    delete : float32 array (n,)
    """
    n = len(tokens)
    ahead = np.empty(len(candidates), np.int64)  # where the pair (c, x) lies, c the candidate
    for k in range(len(candidates)):
        ahead[k] = _pair(candidates[k], _at(tokens, 0), tables)
    for i in range(n + 1):
        a, b = _at(tokens, i - 2), _at(tokens, i - 1)
        x, y, z = _at(tokens, i), _at(tokens, i + 1), _at(tokens, i + 2)
        ab = _pair(a, b, tables)
        own = _of_triple(a, b, x, tables)
        after = _of_triple(b, x, y, tables) if y >= 0 else 0.0
        beyond = _of_triple(x, y, z, tables) if z >= 0 else 0.0
        p_xy = _of_pair(x, y, tables) if y >= 0 else np.float32(0.0)
        p_yz = _of_pair(y, z, tables) if z >= 0 else np.float32(0.0)
        if i < n:
            delete[i] = _of_triple(a, b, y, tables) - own - after - beyond
            if z >= 0:
                delete[i] += _of_triple(b, y, z, tables)
        for k in range(len(candidates)):
            c = candidates[k]
            bc, cx = _pair(b, c, tables), ahead[k]
            first = _from_triple(ab, a, b, c, _from_pair(bc, b, c, tables), tables)
            gain = first - own + _from_triple(bc, b, c, x, _from_pair(cx, c, x, tables), tables)
            if y >= 0:
                gain += _from_triple(cx, c, x, y, p_xy, tables) - after
            insert[i, k] = gain
            if i == n:
                continue
            cy = ahead[k] = _pair(c, y, tables)
            gain = first - own - after
            gain += _from_triple(bc, b, c, y, _from_pair(cy, c, y, tables), tables)
            if z >= 0:
                gain += _from_triple(cy, c, y, z, p_yz, tables) - beyond
            replace[i, k] = gain if c != x else -1e6


@njit(nogil=True, cache=True)
def _so_far(tokens, tables):
    """Return log P of the first 0 … n + 1 tokens of a sentence and its end, float64 (n + 2,)."""
    out = np.zeros(len(tokens) + 2)
    for i in range(len(tokens) + 1):
        own = _of_triple(_at(tokens, i - 2), _at(tokens, i - 1), _at(tokens, i), tables)
        out[i + 1] = out[i] + own
    return out


@njit(nogil=True, cache=True)
def cut_scores(tokens, cuts, tables, out):
    """Write by how much log P changes when a phrase is left out.

    Parameters
    ----------
    cuts : int32 array (m, 2)
        First and last + 1 of the phrase.
    out : float64 array (m,)
    """
    so_far = _so_far(tokens, tables)
    for k in range(len(cuts)):
        first, end = cuts[k, 0], cuts[k, 1]
        last = min(end + 2, len(tokens) + 1)
        out[k] = so_far[first] - so_far[last]
        a, b = _at(tokens, first - 2), _at(tokens, first - 1)
        for i in range(end, last):
            c = _at(tokens, i)
            out[k] += _of_triple(a, b, c, tables)
            a, b = b, c


@njit(nogil=True, cache=True)
def pair_scores(tokens, places, pairs, tables, out):
    """Write by how much log P changes when two tokens are put before a place.

    Parameters
    ----------
    places : int32 array (m,)
    pairs : int32 array (m, 2)
    out : float64 array (m,)
    """
    for k in range(len(places)):
        i, c, d = places[k], pairs[k, 0], pairs[k, 1]
        a, b = _at(tokens, i - 2), _at(tokens, i - 1)
        x, y = _at(tokens, i), _at(tokens, i + 1)
        gain = _of_triple(a, b, c, tables) + _of_triple(b, c, d, tables)
        gain += _of_triple(c, d, x, tables) - _of_triple(a, b, x, tables)
        if y >= 0:
            gain += _of_triple(d, x, y, tables) - _of_triple(b, x, y, tables)
        out[k] = gain


@njit(nogil=True, cache=True)
def move_scores(tokens, moves, tables, out):
    """Write by how much log P changes when a phrase moves.

    A move exchanges two phrases that stand side by side, p … q − 1 and q … r − 1: what changes is
    how likely the first two tokens of each are, and the two that follow both.

    Parameters
    ----------
    moves : int32 array (m, 3)
        First and last + 1 of the phrase, and before which of the other tokens it is put.
    out : float64 array (m,)
    """
    n = len(tokens)
    so_far = _so_far(tokens, tables)
    for k in range(len(moves)):
        first, end, to = np.int64(moves[k, 0]), np.int64(moves[k, 1]), np.int64(moves[k, 2])
        p, q, r = (to, first, end) if to < first else (first, end, to + end - first)
        gain = 0.0
        a, b = _at(tokens, p - 2), _at(tokens, p - 1)
        for start, stop in ((q, r), (p, q), (r, n + 1)):
            last = min(start + 2, stop)
            for i in range(start, last):
                c = _at(tokens, i)
                gain += _of_triple(a, b, c, tables)
                a, b = b, c
            gain -= so_far[last] - so_far[start]
            if last < stop:
                a, b = _at(tokens, stop - 2), _at(tokens, stop - 1)
        out[k] = gain
