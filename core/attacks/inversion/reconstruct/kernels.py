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


@njit(nogil=True, cache=True)
def _of_pair(b, c, tables):
    """Return log P(c | b)."""
    single, single_backoff, pair_keys, pair_places, pair = tables[:5]
    i = _find(np.int64(b) * len(single) + c, pair_keys, pair_places)
    if i >= 0:
        return pair[i]
    return single_backoff[b] + single[c]


@njit(nogil=True, cache=True)
def _of_triple(a, b, c, tables):
    """Return log P(c | a b)."""
    pair_keys, pair_places, pair_backoff = tables[2], tables[3], tables[5]
    triple_keys, triple_places, triple = tables[6:]
    before = np.int64(a) * len(tables[0]) + b
    i = _find(before * len(tables[0]) + c, triple_keys, triple_places)
    if i >= 0:
        return triple[i]
    j = _find(before, pair_keys, pair_places)
    backoff = pair_backoff[j] if j >= 0 else np.float32(0.0)
    return backoff + _of_pair(b, c, tables)


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
def next_scores(a, b, candidates, tables, out):
    """Write log P(c | a b) of each candidate c into `out`, float64 array (n,)."""
    for k in range(len(candidates)):
        out[k] = _of_triple(a, b, candidates[k], tables)


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
    for i in range(n + 1):
        a, b = _at(tokens, i - 2), _at(tokens, i - 1)
        x, y, z = _at(tokens, i), _at(tokens, i + 1), _at(tokens, i + 2)
        own = _of_triple(a, b, x, tables)
        after = _of_triple(b, x, y, tables) if y >= 0 else 0.0
        beyond = _of_triple(x, y, z, tables) if z >= 0 else 0.0
        if i < n:
            delete[i] = _of_triple(a, b, y, tables) - own - after - beyond
            if z >= 0:
                delete[i] += _of_triple(b, y, z, tables)
        for k in range(len(candidates)):
            c = candidates[k]
            first = _of_triple(a, b, c, tables)
            gain = first + _of_triple(b, c, x, tables) - own
            if y >= 0:
                gain += _of_triple(c, x, y, tables) - after
            insert[i, k] = gain
            if i == n:
                continue
            if c == x:
                replace[i, k] = -1e6
                continue
            gain = first + _of_triple(b, c, y, tables) - own - after
            if z >= 0:
                gain += _of_triple(c, y, z, tables) - beyond
            replace[i, k] = gain


@njit(nogil=True, cache=True)
def cut_scores(tokens, cuts, tables, out):
    """Write by how much log P changes when a phrase is left out.

    Parameters
    ----------
    cuts : int32 array (m, 2)
        First and last + 1 of the phrase.
    out : float64 array (m,)
    """
    now = _of_sentence(tokens, tables)
    for k in range(len(cuts)):
        first, end = cuts[k, 0], cuts[k, 1]
        changed = np.concatenate((tokens[:first], tokens[end:]))
        out[k] = _of_sentence(changed, tables) - now


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

    Parameters
    ----------
    moves : int32 array (m, 3)
        First and last + 1 of the phrase, and before which of the other tokens it is put.
    out : float64 array (m,)
    """
    now = _of_sentence(tokens, tables)
    changed = np.empty_like(tokens)
    for k in range(len(moves)):
        moved(tokens, moves[k, 0], moves[k, 1], moves[k, 2], changed)
        out[k] = _of_sentence(changed, tables) - now


@njit(nogil=True, cache=True)
def moved(tokens, first, end, to, out):
    """Write the sentence with tokens first … end − 1 put before the `to`-th of the others."""
    at, rest = 0, 0
    for i in range(len(tokens) + 1):
        if i < len(tokens) and first <= i < end:
            continue
        if rest == to:
            for j in range(first, end):
                out[at] = tokens[j]
                at += 1
        if i < len(tokens):
            out[at] = tokens[i]
            at += 1
        rest += 1
