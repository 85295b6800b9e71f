"""Extraction attack: sample texts from a model, rank them, and look for canaries.

The scores of the rankings (`by_*`) are higher for texts that are more likely memorised.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.membership.memorisation.canaries import Canary
from leakscope.core.attacks.membership.memorisation.network import Network, select_states
from leakscope.core.attacks.membership.memorisation.perplexity import log_perplexities
from leakscope.core.attacks.membership.memorisation.tokens import Tokens

SAMPLERS = ("top_k", "temperature", "prefix")
RANKINGS = ("perplexity", "smaller", "zlib", "lower_case")
_SHOWN = 5
TOP_K = 40
_HOT, _COOLING = 10.0, 20
_AT_ONCE = 256


@dataclass(frozen=True)
class Extraction:
    """The result of one sampler: how often each canary was drawn, and its ranks.

    Attributes
    ----------
    n_texts : int
        Distinct texts drawn.
    found : tuple of int
        The number of drawn texts that hold each canary; repetitions count.
    n_drawn : int
        Texts drawn.
    places : dict of str to tuple of (int or None)
        By ranking, the rank of the first text that holds each canary; None if none does.
    first : dict of str to tuple of str
        By ranking, the top texts.
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
    """Sample n texts from a model, rank the distinct ones in four ways and look for canaries.

    Parameters
    ----------
    models : (Network, Network)
        The model, and a smaller one trained on the same texts.
    sampler : str
        With `prefix` the attacker knows how each canary begins.
    """
    known = [canary.prefix for canary in canaries] if sampler == "prefix" else [""]
    prefixes = [known[i % len(known)] for i in range(n)]
    drawn = draw_texts(models[0], tokens, sampler, prefixes, max_length=max_length, seed=seed)
    texts = [text for text in dict.fromkeys(drawn) if text.strip()]
    held = [[contains_canary(tokens, text, canary.text) for text in texts] for canary in canaries]
    counts = Counter(drawn)
    found = tuple(
        sum(counts[text] for text, is_held in zip(texts, row, strict=True) if is_held)
        for row in held
    )
    places: dict[str, tuple[int | None, ...]] = {}
    first: dict[str, tuple[str, ...]] = {}
    for name, scores in (
        ranking_scores(models, tokens, texts, max_length) if texts else {}
    ).items():
        order = np.argsort(-scores, kind="stable").tolist()
        places[name] = tuple(
            next((place for place, i in enumerate(order, 1) if row[i]), None) for row in held
        )
        first[name] = tuple(texts[i] for i in order[:_SHOWN])
    return Extraction(sampler, len(texts), len(drawn), found, places, first)


def ranking_scores(
    models: tuple[Network, Network], tokens: Tokens, texts: Sequence[str], max_length: int
) -> Mapping[str, NDArray[np.float64]]:
    """Score texts by each ranking (by name), higher for texts that are likelier memorised.

    Parameters
    ----------
    models : (Network, Network)
        The model, and a smaller one.
    """
    network, smaller = models
    bits = log_perplexities(network, tokens, texts, max_length)
    of_smaller = log_perplexities(smaller, tokens, texts, max_length)
    lower = log_perplexities(network, tokens, [text.lower() for text in texts], max_length)
    lengths = np.array([len(tokens.encode(text)[:max_length]) for text in texts], dtype=np.float64)
    return {
        "perplexity": by_perplexity(bits, lengths),
        "smaller": by_smaller(bits, of_smaller),
        "zlib": by_zlib(bits, texts),
        "lower_case": by_lower_case(bits, lower),
    }


def contains_canary(tokens: Tokens, text: str, canary: str) -> bool:
    """Return whether a canary's tokens occur consecutively among a text's tokens."""
    whole = " ".join(map(str, tokens.encode(text)))
    return f" {' '.join(map(str, tokens.encode(canary)))} " in f" {whole} "


_Bits = NDArray[np.float64]


def by_perplexity(bits: _Bits, n_tokens: _Bits) -> _Bits:
    """Score texts by low perplexity: −P/n, so the lowest perplexity 2^(P/n) ranks first.

    Implements Carlini et al. (2021), §4.2 (METHODS §4). Differs from the paper: nothing.

    Examples
    --------
    >>> by_perplexity(np.array([8.0]), np.array([4.0])).tolist()
    [-2.0]
    """
    return -bits / np.maximum(n_tokens, 1)


def by_smaller(bits: _Bits, bits_of_smaller: _Bits) -> _Bits:
    """Score texts by the ratio of a smaller model's log-perplexity to the model's, P_small / P.

    Implements Carlini et al. (2021), §5.2 “Small”: the ratio of log-perplexities. Differs from the
    paper: nothing.

    Examples
    --------
    >>> by_smaller(np.array([4.0]), np.array([12.0])).tolist()
    [3.0]
    """
    return bits_of_smaller / np.maximum(bits, 1e-9)


def by_zlib(bits: _Bits, texts: Sequence[str]) -> _Bits:
    """Score texts by the ratio of their size under zlib, in bits, to their log-perplexity.

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
    """Score texts by the log-perplexity of the text in lower case over that as written.

    Implements Carlini et al. (2021), §5.2 “Lowercase”. Differs from the paper: nothing.

    Examples
    --------
    >>> by_lower_case(np.array([5.0]), np.array([10.0])).tolist()
    [2.0]
    """
    return bits_of_lower / np.maximum(bits, 1e-9)


def top_k_logits(logits: Tensor, k: int = TOP_K) -> Tensor:
    """Return logits with all but the k highest of each text set to −∞ (top-k sampling).

    Implements Carlini et al. (2021), §4.1: top-n sampling, n = 40.
    """
    k = min(k, logits.shape[-1])
    least = logits.topk(k, -1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def decaying_temperature(i: int) -> float:
    """Return the sampling temperature of token i (from 0): from 10 down to 1 over 20 tokens.

    Implements Carlini et al. (2021), §5.1.1: t = 10 at the start, decaying to 1 over the first 20
    tokens. Differs from the paper: linearly, which it leaves open.

    Examples
    --------
    >>> decaying_temperature(0), decaying_temperature(10), decaying_temperature(99)
    (10.0, 5.5, 1.0)
    """
    return max(1.0, _HOT - (_HOT - 1.0) * i / _COOLING)


@torch.no_grad()
def draw_texts(
    network: Network,
    tokens: Tokens,
    sampler: str,
    prefixes: Sequence[str],
    *,
    max_length: int,
    seed: int,
) -> list[str]:
    """Sample a text from a model after each prefix, token by token until the model ends it.

    Parameters
    ----------
    sampler : str
        `top_k`; `temperature`, which decays; or `prefix`: top-k after a known beginning.
    prefixes : sequence of str
        The beginning of each text; empty to let the model begin.
    """
    network.eval()
    generator = torch.Generator().manual_seed(seed)
    narrowed: Callable[[Tensor, int], Tensor] = lambda logits, i: top_k_logits(logits)  # noqa: E731
    if sampler == "temperature":
        narrowed = lambda logits, i: logits / decaying_temperature(i)  # noqa: E731
    found: list[str] = [""] * len(prefixes)
    for prefix in dict.fromkeys(prefixes):
        rows = [row for row, other in enumerate(prefixes) if other == prefix]
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            begun = tokens.encode(prefix)
            drawn = _sample_continuations(
                network, tokens, begun, len(part), max_length, narrowed, generator
            )
            for row, ids in zip(part, drawn, strict=True):
                found[row] = tokens.decode(ids)
    return found


def _sample_continuations(
    network: Network,
    tokens: Tokens,
    begun: list[int],
    n: int,
    max_length: int,
    narrowed: Callable[[Tensor, int], Tensor],
    generator: torch.Generator,
) -> list[list[int]]:
    """Sample n continuations of one token sequence in a batch; return whole token lists."""
    device = network.output.weight.device
    state, logits = network.begin(1), torch.empty(0)
    for token in [tokens.start, *begun]:
        logits, state = network.step(torch.tensor([token], device=device), state)
    open_rows = torch.zeros(n, dtype=torch.long, device=device)
    logits, state = logits[open_rows], select_states(state, open_rows)
    texts = [list(begun) for _ in range(n)]
    left = list(range(n))
    for i in range(max_length - len(begun)):
        chances = torch.softmax(narrowed(logits.float(), i), -1).cpu()
        chosen = torch.multinomial(chances, 1, generator=generator)[:, 0]
        going = [place for place, token in enumerate(chosen.tolist()) if token != tokens.end]
        left = [left[place] for place in going]
        if not left:
            break
        chosen = chosen[going]
        for row, token in zip(left, chosen.tolist(), strict=True):
            texts[row].append(token)
        rows = torch.tensor(going, device=device)
        logits, state = network.step(chosen.to(device), select_states(state, rows))
    return texts
