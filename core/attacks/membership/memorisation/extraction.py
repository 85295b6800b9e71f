"""Extraction: draw texts from a model, rank them, and see whether a canary is among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.memorisation import rankings
from core.attacks.membership.memorisation.canaries import Canary
from core.attacks.membership.memorisation.network import Network
from core.attacks.membership.memorisation.perplexity import log_perplexities
from core.attacks.membership.memorisation.samplers import draw_texts
from core.attacks.membership.memorisation.tokens import Tokens

__all__ = ["RANKINGS", "SAMPLERS", "Extraction", "extract", "holds", "scores_of"]

SAMPLERS = ("top_k", "temperature", "prefix")
RANKINGS = ("perplexity", "smaller", "zlib", "lower_case")
_SHOWN = 5


@dataclass(frozen=True)
class Extraction:
    """What one sampler brought out.

    Attributes
    ----------
    n_texts : int
        Different texts drawn.
    found : tuple of int
        Of each canary, in how many of the texts drawn it stands; repetitions count.
    n_drawn : int
        Texts drawn.
    places : dict of str to tuple of (int or None)
        By ranking, of each canary, the place of the first text that holds it; None where none does.
    first : dict of str to tuple of str
        By ranking, the first texts.
    """

    sampler: str
    n_texts: int
    n_drawn: int
    found: tuple[int, ...]
    places: dict[str, tuple[int | None, ...]]
    first: dict[str, tuple[str, ...]]


def extract(
    models: tuple[Network, Network],
    tokens: Tokens,
    canaries: Sequence[Canary],
    *,
    sampler: str,
    n: int,
    max_length: int,
    seed: int,
) -> Extraction:
    """Draw n texts by one sampler and rank those that differ, in each of four ways.

    Parameters
    ----------
    models : (Network, Network)
        The model, and one of fewer units, trained on the same texts.
    sampler : str
        With `prefix` who asks knows how each canary begins; with others, nothing.
    """
    known = [canary.prefix for canary in canaries] if sampler == "prefix" else [""]
    prefixes = [known[i % len(known)] for i in range(n)]
    drawn = draw_texts(models[0], tokens, sampler, prefixes, max_length=max_length, seed=seed)
    texts = [text for text in dict.fromkeys(drawn) if text.strip()]
    held = [[holds(tokens, text, canary.text) for text in texts] for canary in canaries]
    counts = Counter(drawn)
    found = tuple(
        sum(counts[text] for text, is_held in zip(texts, row, strict=True) if is_held)
        for row in held
    )
    places: dict[str, tuple[int | None, ...]] = {}
    first: dict[str, tuple[str, ...]] = {}
    for name, scores in (scores_of(models, tokens, texts, max_length) if texts else {}).items():
        order = np.argsort(-scores, kind="stable").tolist()
        places[name] = tuple(
            next((place for place, i in enumerate(order, 1) if row[i]), None) for row in held
        )
        first[name] = tuple(texts[i] for i in order[:_SHOWN])
    return Extraction(sampler, len(texts), len(drawn), found, places, first)


def scores_of(
    models: tuple[Network, Network], tokens: Tokens, texts: Sequence[str], max_length: int
) -> Mapping[str, NDArray[np.float64]]:
    """Return the score of each text by each ranking, higher for what is likelier known by heart.

    Parameters
    ----------
    models : (Network, Network)
        The model, and one of fewer units.
    """
    network, smaller = models
    bits = log_perplexities(network, tokens, texts, max_length)
    of_smaller = log_perplexities(smaller, tokens, texts, max_length)
    lower = log_perplexities(network, tokens, [text.lower() for text in texts], max_length)
    lengths = np.array([len(tokens.encode(text)[:max_length]) for text in texts], dtype=np.float64)
    return {
        "perplexity": rankings.by_perplexity(bits, lengths),
        "smaller": rankings.by_smaller(bits, of_smaller),
        "zlib": rankings.by_zlib(bits, texts),
        "lower_case": rankings.by_lower_case(bits, lower),
    }


def holds(tokens: Tokens, text: str, canary: str) -> bool:
    """Return whether the tokens of a canary stand in a text, one after the other."""
    whole = " ".join(map(str, tokens.encode(text)))
    return f" {' '.join(map(str, tokens.encode(canary)))} " in f" {whole} "
