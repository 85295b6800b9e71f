"""Rankings: which of many drawn texts a model most likely knows by heart. Higher is likelier."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_lower_case", "by_perplexity", "by_smaller", "by_zlib", "zlib_bits"]

_Bits = NDArray[np.float64]


def by_perplexity(bits: _Bits, n_tokens: _Bits) -> _Bits:
    """Return −P/n, which orders texts as their perplexity 2^(P/n) does, the lowest first.

    Implements Carlini et al. (2021), §4.2 (METHODS §4). Differs from the paper: nothing.

    Examples
    --------
    >>> by_perplexity(np.array([8.0]), np.array([4.0])).tolist()
    [-2.0]
    """
    return -bits / np.maximum(n_tokens, 1)


def by_smaller(bits: _Bits, bits_of_smaller: _Bits) -> _Bits:
    """Return P_small / P: what a smaller model finds unlikely, and this one does not.

    Implements Carlini et al. (2021), §5.2 “Small”: the ratio of log-perplexities. Differs from the
    paper: nothing.

    Examples
    --------
    >>> by_smaller(np.array([4.0]), np.array([12.0])).tolist()
    [3.0]
    """
    return bits_of_smaller / np.maximum(bits, 1e-9)


def by_zlib(bits: _Bits, texts: Sequence[str]) -> _Bits:
    """Return the bits that zlib needs of a text over its log-perplexity.

    Implements Carlini et al. (2021), §5.2 “zlib”. Differs from the paper: nothing.
    """
    return np.array([zlib_bits(text) for text in texts]) / np.maximum(bits, 1e-9)


def zlib_bits(text: str) -> float:
    """Return the length of a text compressed by zlib, in bits.

    Examples
    --------
    >>> zlib_bits("a" * 500) < zlib_bits("my card number is 281265, said the minister")
    True
    """
    return 8.0 * len(zlib.compress(text.encode(errors="replace")))


def by_lower_case(bits: _Bits, bits_of_lower: _Bits) -> _Bits:
    """Return P(lower-cased text) / P(text): what is known in one spelling alone.

    Implements Carlini et al. (2021), §5.2 “Lowercase”. Differs from the paper: nothing.

    Examples
    --------
    >>> by_lower_case(np.array([5.0]), np.array([10.0])).tolist()
    [2.0]
    """
    return bits_of_lower / np.maximum(bits, 1e-9)
