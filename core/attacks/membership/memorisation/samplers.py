"""Sample texts from a language model for extraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leakscope.core.attacks.membership.memorisation.network import Network, select_states
from leakscope.core.attacks.membership.memorisation.tokens import Tokens

TOP_K = 40
_HOT, _COOLING = 10.0, 20
_AT_ONCE = 256


def top_k_logits(logits: Tensor, k: int = TOP_K) -> Tensor:
    """Set all but the k highest logits of each text to −∞ (top-k sampling).

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
    """Sample a text after each prefix, token by token until the model ends it.

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
    """Sample n continuations of one token sequence in a batch."""
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
