"""Compiled loops of the trigram model: probabilities of n-grams, sentences and edits.

Numba infers the types; the docstrings state them. `tables` is what `LanguageModel.tables` returns.
"""

from __future__ import annotations

import numpy as np

from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END
from leakscope.core.compiled import njit

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(24)


@njit(nogil=True, cache=True)
def fill_table(keys, places):
    """Fill an open-addressed hash table of a power-of-two size with n keys ≥ 0.

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
def _lookup(key, keys, places):
    """Look up a key in a hash table; return its position in `keys`, or -1."""
    mask = np.uint64(len(places) - 1)
    at = (np.uint64(key) * _SPREAD >> _SHIFT) & mask
    while True:
        i = places[np.int64(at)]
        if i < 0 or keys[i] == key:
            return i
        at = (at + np.uint64(1)) & mask


@njit(nogil=True, cache=True, inline="always")
def _bigram_position(b, c, tables):
    """Return the position of the bigram (b, c), or -1."""
    return _lookup(np.int64(b) * len(tables[0]) + c, tables[2], tables[3])


@njit(nogil=True, cache=True, inline="always")
def _bigram_at(i, b, c, tables):
    """Return log P(c | b), given the bigram's position i in the model's arrays, or i = -1."""
    return tables[4][i] if i >= 0 else tables[1][b] + tables[0][c]


@njit(nogil=True, cache=True, inline="always")
def _trigram_at(i, a, b, c, less, tables):
    """Return log P(c | a b), given the position i of the bigram (a, b) and less = log P(c | b)."""
    if i < 0:
        return less  # no trigram begins with an unseen bigram
    size = len(tables[0])
    j = _lookup((np.int64(a) * size + b) * size + c, tables[6], tables[7])
    return tables[8][j] if j >= 0 else tables[5][i] + less


@njit(nogil=True, cache=True)
def _bigram(b, c, tables):
    """Return log P(c | b)."""
    return _bigram_at(_bigram_position(b, c, tables), b, c, tables)


@njit(nogil=True, cache=True)
def _trigram(a, b, c, tables):
    """Return log P(c | a b)."""
    i = _bigram_position(a, b, tables)
    if i < 0:
        return _bigram(b, c, tables)
    size = len(tables[0])
    j = _lookup((np.int64(a) * size + b) * size + c, tables[6], tables[7])
    return tables[8][j] if j >= 0 else tables[5][i] + _bigram(b, c, tables)


@njit(nogil=True, cache=True, inline="always")
def _token_at(tokens, i):
    """Return the token at position i of a sentence padded by BEGIN and END; -1 beyond the end."""
    if i < 0:
        return BEGIN
    if i < len(tokens):
        return tokens[i]
    return END if i == len(tokens) else -1


@njit(nogil=True, cache=True)
def _prefix_log_probabilities(tokens, tables):
    """Return the log P of each beginning of a sentence and of the whole, float64 (n + 2,)."""
    out = np.zeros(len(tokens) + 2)
    for i in range(len(tokens) + 1):
        own = _trigram(
            _token_at(tokens, i - 2), _token_at(tokens, i - 1), _token_at(tokens, i), tables
        )
        out[i + 1] = out[i] + own
    return out


@njit(nogil=True, cache=True)
def log_probabilities(flat, starts, tables, out):
    """Write log P of n sentences, stored end to end in `flat`, into `out`.

    Parameters
    ----------
    flat : int32 array, the tokens of all sentences in a row
    starts : int64 array (n + 1,)
    out : float64 array (n,)
    """
    for i in range(len(out)):
        out[i] = _prefix_log_probabilities(flat[starts[i] : starts[i + 1]], tables)[-1]


@njit(nogil=True, cache=True)
def next_scores(before, candidates, tables, out):
    """Write log P(c | a b) of each candidate c after each of m bigrams (a, b) into `out`.

    Parameters
    ----------
    before : int32 array (m, 2)
    candidates : int32 array (n,)
    out : float64 array (m, n)
    """
    for i in range(len(before)):
        a, b = before[i, 0], before[i, 1]
        ab = _bigram_position(a, b, tables)
        for k in range(len(candidates)):
            c = candidates[k]
            less = _bigram_at(_bigram_position(b, c, tables), b, c, tables)
            out[i, k] = _trigram_at(ab, a, b, c, less, tables)


@njit(nogil=True, cache=True)
def edit_scores(tokens, candidates, tables, insert, replace, delete):
    """Write the change of log P by each one-token edit into `insert`, `replace` and `delete`.

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
        ahead[k] = _bigram_position(candidates[k], _token_at(tokens, 0), tables)
    for i in range(n + 1):
        a, b = _token_at(tokens, i - 2), _token_at(tokens, i - 1)
        x, y, z = _token_at(tokens, i), _token_at(tokens, i + 1), _token_at(tokens, i + 2)
        ab = _bigram_position(a, b, tables)
        own = _trigram(a, b, x, tables)
        after = _trigram(b, x, y, tables) if y >= 0 else 0.0
        beyond = _trigram(x, y, z, tables) if z >= 0 else 0.0
        p_xy = _bigram(x, y, tables) if y >= 0 else np.float32(0.0)
        p_yz = _bigram(y, z, tables) if z >= 0 else np.float32(0.0)
        if i < n:
            delete[i] = _trigram(a, b, y, tables) - own - after - beyond
            if z >= 0:
                delete[i] += _trigram(b, y, z, tables)
        for k in range(len(candidates)):
            c = candidates[k]
            bc, cx = _bigram_position(b, c, tables), ahead[k]
            first = _trigram_at(ab, a, b, c, _bigram_at(bc, b, c, tables), tables)
            gain = first - own + _trigram_at(bc, b, c, x, _bigram_at(cx, c, x, tables), tables)
            if y >= 0:
                gain += _trigram_at(cx, c, x, y, p_xy, tables) - after
            insert[i, k] = gain
            if i == n:
                continue
            cy = ahead[k] = _bigram_position(c, y, tables)
            gain = first - own - after
            gain += _trigram_at(bc, b, c, y, _bigram_at(cy, c, y, tables), tables)
            if z >= 0:
                gain += _trigram_at(cy, c, y, z, p_yz, tables) - beyond
            replace[i, k] = gain if c != x else -1e6


@njit(nogil=True, cache=True)
def cut_scores(tokens, cuts, tables, out):
    """Write the change of log P when each of m phrases is deleted into `out`.

    Parameters
    ----------
    cuts : int32 array (m, 2)
        First and last + 1 of the phrase.
    out : float64 array (m,)
    """
    so_far = _prefix_log_probabilities(tokens, tables)
    for k in range(len(cuts)):
        first, end = cuts[k, 0], cuts[k, 1]
        last = min(end + 2, len(tokens) + 1)
        out[k] = so_far[first] - so_far[last]
        a, b = _token_at(tokens, first - 2), _token_at(tokens, first - 1)
        for i in range(end, last):
            c = _token_at(tokens, i)
            out[k] += _trigram(a, b, c, tables)
            a, b = b, c


@njit(nogil=True, cache=True)
def pair_scores(tokens, places, pairs, tables, out):
    """Write the change of log P when each of m token pairs is inserted at its position into `out`.

    Parameters
    ----------
    places : int32 array (m,)
    pairs : int32 array (m, 2)
    out : float64 array (m,)
    """
    for k in range(len(places)):
        i, c, d = places[k], pairs[k, 0], pairs[k, 1]
        a, b = _token_at(tokens, i - 2), _token_at(tokens, i - 1)
        x, y = _token_at(tokens, i), _token_at(tokens, i + 1)
        gain = _trigram(a, b, c, tables) + _trigram(b, c, d, tables)
        gain += _trigram(c, d, x, tables) - _trigram(a, b, x, tables)
        if y >= 0:
            gain += _trigram(d, x, y, tables) - _trigram(b, x, y, tables)
        out[k] = gain


@njit(nogil=True, cache=True)
def move_scores(tokens, moves, tables, out):
    """Write the change of log P by each of m moves of a phrase into `out`.

    A move exchanges two adjacent phrases, p … q − 1 and q … r − 1. Only the probabilities of the
    first two tokens of each phrase, and of the two after both, change.

    Parameters
    ----------
    moves : int32 array (m, 3)
        First and last + 1 of the phrase, and before which of the other tokens it is put.
    out : float64 array (m,)
    """
    n = len(tokens)
    so_far = _prefix_log_probabilities(tokens, tables)
    for k in range(len(moves)):
        first, end, to = np.int64(moves[k, 0]), np.int64(moves[k, 1]), np.int64(moves[k, 2])
        p, q, r = (to, first, end) if to < first else (first, end, to + end - first)
        gain = 0.0
        a, b = _token_at(tokens, p - 2), _token_at(tokens, p - 1)
        for start, stop in ((q, r), (p, q), (r, n + 1)):
            last = min(start + 2, stop)
            for i in range(start, last):
                c = _token_at(tokens, i)
                gain += _trigram(a, b, c, tables)
                a, b = b, c
            gain -= so_far[last] - so_far[start]
            if last < stop:
                a, b = _token_at(tokens, stop - 2), _token_at(tokens, stop - 1)
        out[k] = gain
